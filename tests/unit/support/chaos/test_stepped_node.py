from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.rig.stepped_clock_node import SteppedClock
from tidegate_ports.clock import SystemClock

SLACK_MS = 60_000
"""Above any pause between two looks at the clock, and far below the steps."""


@pytest.mark.parametrize("step", [3_600_000, -3_600_000])
def test_given_a_step_while_it_runs_then_only_the_wall_clock_moves(tmp_path: Path, step: int) -> None:
    file = tmp_path / "clock"
    file.write_text("0")
    clock, true = SteppedClock(file), SystemClock()
    assert abs(clock.now_ms() - true.now_ms()) < SLACK_MS
    file.write_text(str(step))
    assert abs(clock.now_ms() - true.now_ms() - step) < SLACK_MS
    assert abs(clock.monotonic_ms() - true.monotonic_ms()) < SLACK_MS


def test_given_a_file_that_is_being_written_then_the_clock_is_right(tmp_path: Path) -> None:
    file = tmp_path / "clock"
    file.write_text("")
    assert abs(SteppedClock(file).now_ms() - SystemClock().now_ms()) < SLACK_MS
