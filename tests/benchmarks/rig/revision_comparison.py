"""Two revisions side by side: the older one in a worktree of its own, and the ratios of what was measured in turn."""

from __future__ import annotations

import statistics
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.rig.result_table import shown
from tests.benchmarks.rig.results import Result, git


class NoSuchRevision(Exception):
    """Git has no such commit."""


@contextmanager
def worktree_of(tree: Path, revision: str) -> Iterator[Path]:
    """Yields a temporary folder with a revision's files; the tree itself stays as it is.

    Raises:
        NoSuchRevision: Git does not know it.
    """
    with tempfile.TemporaryDirectory(prefix="tidegate-bench-base-") as folder:
        base = Path(folder) / "tree"
        try:
            git(tree, "worktree", "add", "--detach", str(base), revision)
        except subprocess.CalledProcessError as refusal:
            raise NoSuchRevision(f"{revision}: {refusal.stderr.strip()}") from refusal
        try:
            yield base
        finally:
            git(tree, "worktree", "remove", "--force", str(base))


def compared(base: Sequence[Result], here: Sequence[Result]) -> list[str]:
    """Returns a table of each figure's medians and their ratio, here divided by base.

    A figure that one of them does not have, or that is 0 in the base, has no ratio.
    """
    lines = ["| workload | figure | base | here | here / base |", "| --- | --- | --- | --- | --- |"]
    for name in dict.fromkeys(result.name for result in here):
        for figure in dict.fromkeys(key for result in here if result.name == name for key in result.figures):
            before, after = _median(base, name, figure), _median(here, name, figure)
            ratio = f"{after / before:.2f}" if before and after is not None else "-"
            lines.append(f"| {name} | {figure} | {shown(before)} | {shown(after)} | {ratio} |")
    return lines


def _median(results: Sequence[Result], name: str, figure: str) -> float | None:
    values = [result.figures.get(figure) for result in results if result.name == name]
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
