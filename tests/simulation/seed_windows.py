"""Which seeds the suite runs: a window that moves with each commit, so that a year of builds runs many thousands of seeds.

`test_invariants.py` runs them. `make simulate` takes its seeds from the command line instead.
A tree without its whole history has the fixed window, so that its seeds repeat.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from tests.support.tier import at_night

SEEDS_QUICK: Final = 100
SEEDS_FRESH: Final = 2_000
FRESH_FROM: Final = 60_000_000
"""Above each seed that any published run or earlier campaign had: nobody has run the seeds behind it before."""
COUNT_WITHOUT_HISTORY: Final = 0
ROOT: Final = Path(__file__).parents[2]


def commit_count(root: Path = ROOT) -> int:
    """Returns how many commits lead to the present one, or `COUNT_WITHOUT_HISTORY` where git cannot say so.

    Git cannot say so in an unpacked archive, also not inside of another repository, and in a shallow clone.
    """
    if _git(root, "rev-parse", "--show-toplevel") != str(root.resolve()):
        return COUNT_WITHOUT_HISTORY
    if _git(root, "rev-parse", "--is-shallow-repository") != "false":
        return COUNT_WITHOUT_HISTORY
    count = _git(root, "rev-list", "--count", "HEAD")
    return COUNT_WITHOUT_HISTORY if count is None else int(count)


def quick_window(count: int) -> range:
    """Returns the seeds of `make test`."""
    return _window(0, count, SEEDS_QUICK)


def fresh_window(count: int) -> range:
    """Returns the seeds that `make test-all` runs as well."""
    return _window(FRESH_FROM, count, SEEDS_FRESH)


def seeds_of_suite() -> range:
    """Returns the seeds of this run of the suite."""
    count = commit_count()
    return fresh_window(count) if at_night(1, else_=0) else quick_window(count)


def _window(first: int, count: int, size: int) -> range:
    return range(first + count * size, first + (count + 1) * size)


def _git(root: Path, *arguments: str) -> str | None:
    try:
        answer = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
