"""The two tiers of the suite: `make test` for everybody, `make test-all` for nights and releases.

Tests marked `nightly` belong to the second tier only. A test that is in both tiers but does more at night takes its size from here.
The option `--all` of pytest selects the second tier.
"""

from __future__ import annotations

import os
import sys

VARIABLE = "TIDEGATE_TEST_TIER"
OPTION = "--all"
ALL = OPTION in sys.argv or os.environ.get(VARIABLE) == "all"
"""Whether this is a run of the whole suite.

Some modules that ask are imported before pytest has parsed its arguments. Workers of xdist and other child processes ask the
environment, which `tests/conftest.py` sets.
"""


def at_night(full: int, *, else_: int) -> int:
    """Returns `full` in a run of the whole suite, else `else_`."""
    return full if ALL else else_


def examples(full: int) -> int:
    """Returns how many examples hypothesis draws for a test that deserves `full` at night.

    A fifth of them in `make test`, at least 5: enough to meet a fault that most inputs show.
    """
    return at_night(full, else_=max(5, full // 5))
