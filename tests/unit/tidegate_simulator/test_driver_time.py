"""`driver: time` on a virtual clock: one line for each instant, with what became of its instance (SEMANTICS 6.5, 6.6)."""

from __future__ import annotations

from typing import Any

import pytest
from tests.unit.tidegate_simulator.test_simulation import (
    BEGIN,
    a_partition,
    a_schedule,
    clock,
    happenings,
    ran,
    told,
)

from tidegate_simulator import Outage, Report
from tidegate_testkit.builders import MINUTE, all_of, every, on_data

DIGEST = "sha256:340442efa22557d727e3cbd37ac54dbe35b748a018ac9573ba0fec5ed8af443a"
"""It changes with `report.FORMAT`, and with what schedules do."""
EVENTS = [a_partition("00:20", "a1", "a"), a_partition("02:10", "a2", "a"), a_partition("02:20", "b1", "b")]
"""Midnight's second half comes at 02:20, when the 02:00 has its first; nothing comes for 01:00 and 03:00."""


def a_day(*, outages: tuple[Outage, ...] = (), **trigger: Any) -> Report:
    hourly = {**every("1h"), "driver": "time"}
    schedule = a_schedule(trigger=all_of(hourly, on_data("a"), on_data("b"), **trigger), overlap="allow")
    return ran(schedule, hours=5.25, happenings=happenings(*EVENTS), outages=outages)


def ends(report: Report) -> list[tuple[str, str, str | None]]:
    """Returns of each occurrence: nominal, result, and when its program began."""
    return [
        (clock(each.nominal), each.result, None if each.started_at is None else clock(each.started_at))
        for each in report.occurrences
    ]


WITHOUT_END = [
    ("00:00", "succeeded", "02:20"),
    ("01:00", "pending_trigger", None),
    ("02:00", "pending_trigger", None),
    ("03:00", "pending_trigger", None),
    ("04:00", "pending_trigger", None),
    ("05:00", "pending_trigger", None),
]


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        pytest.param({"on_timeout": "wait"}, WITHOUT_END, id="wait"),
        pytest.param(
            {"timeout": "150m"},
            [
                ("00:00", "succeeded", "02:20"),
                ("01:00", "expired/trigger_timeout", None),
                ("02:00", "expired/trigger_timeout", None),
                *WITHOUT_END[3:],
            ],
            id="abort",
        ),
        pytest.param(
            {"timeout": "150m", "on_timeout": "partial"},
            [
                ("00:00", "succeeded", "02:20"),
                ("01:00", "succeeded", "03:30"),
                ("02:00", "succeeded", "04:30"),
                *WITHOUT_END[3:],
            ],
            id="partial",
        ),
    ],
)
def test_given_halves_that_come_late_then_each_instant_has_its_own_end(
    trigger: dict[str, Any], expected: list[tuple[str, str, str | None]]
) -> None:
    assert ends(a_day(**trigger)) == expected


def test_given_an_outage_then_the_same_instants_meet_the_same_data() -> None:
    served = a_day(timeout="150m")
    away = a_day(timeout="150m", outages=(Outage(BEGIN + 30 * MINUTE, BEGIN + 200 * MINUTE),))
    assert [result for _, result, _ in ends(away)] == [result for _, result, _ in ends(served)]
    assert ends(away)[0] == ("00:00", "succeeded", "03:20")


def test_given_a_report_then_it_is_this_one_on_every_machine() -> None:
    report = a_day(timeout="150m", on_timeout="partial")
    assert told(report)[1] == ("load", "01:00", "succeeded", [])
    assert report.digest == DIGEST
