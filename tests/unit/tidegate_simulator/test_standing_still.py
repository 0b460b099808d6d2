"""Schedules that start each other, with runs that take no time: virtual time would never move on."""

from __future__ import annotations

import pytest

from tests.support.builders import every, on_run_of
from tests.unit.tidegate_simulator.simulated import a_schedule, happenings, ran
from tidegate_simulator import TimeStandsStill, virtual_cluster

BEGUN = {"at": "2026-01-01T00:01:00Z", "type": "schedule.trigger", "namespace": "flights", "name": "a"}
CIRCLE = (a_schedule("a", on_run_of("b")), a_schedule("b", on_run_of("a")))


@pytest.fixture(autouse=True)
def few_circles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual_cluster, "CIRCLES_MAX", 50)


def test_given_a_circle_of_two_without_duration_then_it_is_named_and_the_simulation_ends() -> None:
    """A newcomer's `--duration 0s` never came back."""
    bystander = a_schedule("bystander", every("10s"))
    with pytest.raises(TimeStandsStill, match=r"at 2026-01-01T00:01:00Z: runs of flights/a, flights/b take no time"):
        ran(*CIRCLE, bystander, hours=0.1, takes="0s", happenings=happenings(BEGUN))


def test_given_the_circle_with_a_duration_then_time_goes_on() -> None:
    report = ran(*CIRCLE, hours=0.1, takes="20s", happenings=happenings(BEGUN))
    assert report.tally() == {"succeeded": 14, "running": 1}
