"""`driver: time` on a virtual clock: one line for each instant, with what became of its instance (SEMANTICS 6.5, 6.6)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import MINUTE, all_of, every, on_data
from tests.unit.tidegate_simulator.simulated import BEGIN, a_partition, a_schedule, clock, happenings, ran, told
from tidegate_simulator import Outage, Report

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


ROMAN = {"type": "cron", "expression": "0 3 * * *", "zone": "Europe/Rome"}
TOKYO = {"type": "cron", "expression": "0 11 * * *", "zone": "Asia/Tokyo"}
BOTH = {"type": "times", "specs": [ROMAN, {**ROMAN, "expression": "0 4 * * *"}]}
HALF_PAST = happenings(a_partition("01:30", "a1", "a"))
"""At 2:30 in Rome: before the tick of 2:00 UTC, which is 3:00 in Rome and 11:00 in Tokyo."""


def any_of(*leaves: dict[str, Any]) -> dict[str, Any]:
    return {"type": "any_of", "triggers": list(leaves)}


@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        pytest.param(all_of({**ROMAN, "driver": "time"}, on_data("a")), "Thu 2026-01-01 03:00:00+01:00", id="opened"),
        pytest.param(all_of(ROMAN, on_data("a")), "Thu 2026-01-01 03:00:00+01:00", id="latched"),
        pytest.param(all_of(ROMAN, on_data("raw")), "Thu 2026-01-01 03:00:00+01:00", id="waits for data"),
        pytest.param(any_of(ROMAN, on_data("a")), "Thu 2026-01-01 02:30:00+01:00", id="by data alone"),
        pytest.param(any_of(BOTH, on_data("a")), "Thu 2026-01-01 02:30:00+01:00", id="of one zone's times"),
        pytest.param(any_of(ROMAN, every("90m"), on_data("a")), "Thu 2026-01-01 01:00:00+01:00", id="beside elapsed"),
        pytest.param(any_of(TOKYO, ROMAN, on_data("a")), "Thu 2026-01-01 01:30:00+00:00", id="of two zones' clocks"),
        pytest.param(all_of(every("1h"), on_data("a")), "Thu 2026-01-01 00:00:00+00:00", id="of none"),
    ],
)
def test_given_ticks_of_a_zone_then_their_jobs_are_shown_on_its_clock(trigger: dict[str, Any], expected: str) -> None:
    """As those of a time trigger are; a composite's own zone is the one that its time leaves read."""
    (first, *_) = ran(a_schedule(trigger=trigger), hours=3, happenings=HALF_PAST).occurrences
    assert first.local == expected
    assert first.zone == {"+01:00": "Europe/Rome", "+00:00": "UTC"}[expected[-6:]]


def test_given_an_instant_that_one_clock_of_several_names_then_it_is_read_on_that_one() -> None:
    leaves = [TOKYO, {**ROMAN, "expression": "30 2 * * *"}]
    for order in (leaves, leaves[::-1]):
        report = ran(a_schedule(trigger=any_of(*order)), hours=3)
        shown = [each.local[15:] for each in report.occurrences]
        assert shown == ["02:30:00+01:00", "11:00:00+09:00"]
