"""TS-09, the soak of a day: `make soak` is a campaign of all kinds of strikes for so many hours.

`tests/chaos/test_phase.py` runs a phase of it on a real cluster, and judges it as the soak is judged.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.chaos.__main__ import _parser
from tests.support.checkers.events import judge_counts

ROOT = Path(__file__).parents[4]
MAKE_TIMEOUT_S = 150


def asked_of_the_campaign(folder: Path, *variables: str) -> list[str]:
    """Returns the arguments of the campaign, by the recipe itself, with something in Python's place that prints them."""
    python = folder / "python"
    python.write_text('#!/bin/sh\necho "$@"\n')
    python.chmod(0o755)
    made_before = [f"--old-file={name}" for name in ("setup", "require-java")]
    command = ["make", "--silent", *made_before, "soak", f"BIN={folder}", *variables]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=MAKE_TIMEOUT_S)
    module, campaign, *arguments = done.stdout.split()
    assert (module, campaign) == ("-m", "tests.chaos")
    return arguments


@pytest.mark.parametrize(("variables", "hours"), [((), 24), (("HOURS=2",), 2)])
def test_given_a_soak_then_every_kind_of_strike_comes_for_so_many_hours(
    tmp_path: Path, variables: tuple[str, ...], hours: int
) -> None:
    """TS-09: 24 hours with fault injection."""
    options = _parser().parse_args(asked_of_the_campaign(tmp_path, *variables))
    assert options.minutes == hours * 60
    assert not options.nemesis, "none is left out"
    assert (options.messages > 0, options.events > 0) == (True, True)


def test_given_an_event_that_no_run_of_the_soak_consumed_then_its_judge_calls_it_lost() -> None:
    """TS-09: events in are events consumed. The soak's trigger drops none: it takes all, and its runs are topped up."""
    assert [fault.kind for fault in judge_counts("tally", 1, ["event-1"], [])] == ["lost"]
