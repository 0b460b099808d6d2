"""`python -m tests.chaos.rig.stepped_clock_node node`: a node whose wall clock is off by what a file says.

The clock is a port of the node's, so another one is put in where `bootstrap` makes the machine's: production has no setting that
could shift a clock. Time since boot, which guards and deadlines go by, stays as it is: steps of a wall clock never move that.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from unittest import mock

from tidegate_cli.main import main
from tidegate_node import bootstrap
from tidegate_ports.clock import SystemClock

VARIABLE = "CHAOS_CLOCK_FILE"
"""Names the file: ms as a whole number, read at every look at the clock."""
DIGITS_MAX = 20


class SteppedClock(SystemClock):
    """The machine's clocks, the wall one off."""

    def __init__(self, file: Path) -> None:
        # Never closed: it is the process's own for life, and a look at the clock must cost next to nothing.
        self._file = os.open(file, os.O_RDONLY)

    def now_ms(self) -> int:
        # An empty file is being written.
        return super().now_ms() + int(os.pread(self._file, DIGITS_MAX, 0) or b"0")


if __name__ == "__main__":
    file = Path(os.environ[VARIABLE])
    with mock.patch.object(bootstrap, "SystemClock", partial(SteppedClock, file)):
        main()
