"""Events, requests, reports and messages in a simulated span: what follows of them, and how it is told."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import MINUTE, all_of, every, on_data, on_run_of
from tests.unit.tidegate_simulator.simulated import BEGIN, a_partition, a_schedule, clock, happenings, ran, told
from tidegate_simulator import Outage, PlannedRun, RunPlan


def test_given_events_then_a_composite_fires_when_all_have_come_and_the_rest_is_told_as_pending() -> None:
    both = all_of(on_data("flights"), on_data("weather"), correlate="data_partition")
    lines = [
        a_partition("01:00", "d1", "flights"),
        a_partition("02:00", "d1", "weather"),
        a_partition("03:00", "d2", "flights"),
    ]
    report = ran(a_schedule(trigger=both), happenings=happenings(*lines))
    assert [(each.correlation, clock(each.nominal), each.result) for each in report.occurrences] == [
        ("d1", "02:00", "succeeded"),
        ("d2", "03:00", "pending_trigger"),
    ]
    assert clock(report.occurrences[0].first_event_at) == "01:00"


def test_given_invented_events_then_each_repetition_has_its_own_name() -> None:
    line = {**a_partition("00:30", "hour-${number}"), "every": "1h"}
    report = ran(a_schedule(trigger=on_data(count=2)), happenings=happenings(line))
    assert [clock(each.nominal) for each in report.occurrences] == ["01:30", "03:30", "05:30"]


def test_given_a_run_that_reports_data_then_what_waits_for_it_follows() -> None:
    report_of_hour = {"type": "data.partition", "namespace": "flights", "dataset": "raw", "partition": "${nominal}"}
    landing = PlannedRun.read({"schedule": "flights/land", "duration": "10m", "reports": [report_of_hour]})
    schedules = [a_schedule("land", every("2h")), a_schedule("join", on_data()), a_schedule("after", on_run_of("join"))]
    report = ran(*schedules, hours=2, runs=RunPlan.of([landing]))
    assert told(report) == [
        ("land", "00:00", "succeeded", []),
        ("join", "00:10", "succeeded", []),
        ("after", "00:11", "succeeded", []),
    ]
    assert report.occurrences[2].correlation == "flights/join 2026-01-01T00:10:00Z"


def test_given_requests_then_they_are_applied_at_their_time_and_answered() -> None:
    message = {"topic": "t", "after": "1s", "payload": 1}
    lines: list[dict[str, Any]] = [
        {"at": "2026-01-01T00:30:00Z", "type": "schedule.suspend", "namespace": "flights", "name": "load"},
        {"at": "2026-01-01T02:30:00Z", "type": "schedule.resume", "namespace": "flights", "name": "load"},
        {"at": "2026-01-01T02:45:00Z", "type": "schedule.trigger", "namespace": "flights", "name": "load"},
        {"at": "2026-01-01T02:50:00Z", "type": "schedule.delete", "namespace": "flights", "name": "none"},
        {"at": "2026-01-01T02:51:00Z", "type": "message.send", "namespace": "flights", **message},
    ]
    report = ran(a_schedule(), hours=4, happenings=happenings(*lines))
    assert [(clock(each.nominal), each.trigger) for each in report.occurrences] == [
        ("00:00", "time"),
        ("02:45", "manual"),
        ("03:00", "time"),
    ]
    assert report.answers == (
        "schedule.suspend flights/load: accepted",
        "schedule.resume flights/load: accepted",
        "schedule.trigger flights/load: accepted",
        "schedule.delete flights/none: not_found",
        "message.send flights: accepted",
    )


def test_given_a_suspend_that_holds_then_jobs_wait_for_its_end_and_are_told_so() -> None:
    suspend = {"type": "schedule.suspend", "namespace": "flights", "name": "load", "mode": "hold"}
    lines = [
        {"at": "2026-01-01T00:30:00Z", **suspend},
        {"at": "2026-01-01T02:30:00Z", "type": "schedule.resume", "namespace": "flights", "name": "load"},
    ]
    report = ran(a_schedule(), hours=3, happenings=happenings(*lines))
    assert told(report)[1:] == [
        ("load", "01:00", "succeeded", [("suspended", "02:30")]),
        ("load", "02:00", "succeeded", [("suspended", "02:30"), ("concurrency", "02:31")]),
    ]


def test_given_a_recurring_message_then_its_deliveries_are_told() -> None:
    target = {"type": "message", "topic": "out", "payload": "ping"}
    report = ran(a_schedule(trigger=every("20m"), target=target, overlap="allow"), hours=1)
    assert [(clock(each.nominal), each.result) for each in report.occurrences] == [
        ("00:00", "delivered"),
        ("00:20", "delivered"),
        ("00:40", "delivered"),
    ]


@pytest.mark.parametrize("seconds", range(0, 75, 15))
def test_given_something_else_that_happens_shortly_before_then_a_message_is_told_at_its_own_time(seconds: int) -> None:
    """What was looked ahead for then ended before its row, and the look at the row itself came too soon: it was told hours late."""
    target = {"type": "message", "topic": "out", "payload": "ping"}
    message = a_schedule("ping", every("1h", phase="2m"), target=target, overlap="allow")
    program = a_schedule(trigger=every("1h", phase=f"{seconds}s"))
    report = ran(message, program, hours=4, takes="30m")
    pings = [each for each in report.occurrences if each.schedule == "flights/ping"]
    assert [each.ended_at for each in pings] == [each.nominal for each in pings]
    assert len(pings) == 4


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"catchup": {"mode": "last"}}, [("01:40", "delivered", 4)]),
        ({"catchup": {"mode": "none"}}, [("01:40", "skipped/outage", 4)]),
        ({"expire_after": "10m"}, [("01:40", "expired", 4)]),
        (
            {"expire_after": "40m", "catchup": {"mode": "all"}},
            [("00:40", "expired", 1), ("01:00", "expired", 1), ("01:20", "delivered", 1), ("01:40", "delivered", 1)],
        ),
    ],
)
def test_given_recurring_messages_of_an_outage_then_those_that_are_not_sent_are_told_as_well(
    more: dict[str, Any], expected: list[tuple[str, str, int]]
) -> None:
    """A stranger's finding: what had expired had no line, as if it had never been due."""
    target = {"type": "message", "topic": "out", "payload": "ping"}
    target |= {name: more.pop(name) for name in ["expire_after"] if name in more}
    schedule = a_schedule(trigger=every("20m"), target=target, overlap="allow", **more)
    outage = Outage(BEGIN + 30 * MINUTE, BEGIN + 110 * MINUTE)
    report = ran(schedule, hours=2, outages=[outage])
    lines = [(clock(each.nominal), each.result, each.covered) for each in report.occurrences]
    assert lines == [("00:00", "delivered", 1), ("00:20", "delivered", 1), *expected]
    assert {each.covered_from for each in report.occurrences if each.covered > 1} <= {BEGIN + 40 * MINUTE}


def test_given_a_time_trigger_among_others_then_its_ticks_meet_what_comes() -> None:
    """CD-067: at the tick with what has come, else when it comes; a tick that meets nothing is told."""
    trigger = all_of({**every("2h"), "ttl": "1h"}, {**on_data(), "ttl": "1h"}, on_timeout="wait")
    events = happenings(a_partition("01:30", "d1"), a_partition("04:20", "d2"))
    report = ran(a_schedule(trigger=trigger), happenings=events)
    assert [(clock(each.nominal), each.result) for each in report.occurrences] == [
        ("00:00", "expired/evidence_expired"),
        ("02:00", "succeeded"),
        ("04:00", "succeeded"),
    ]


def test_given_a_wide_suspend_then_others_go_on_and_what_is_suspended_does_from_the_resume_on() -> None:
    """Rows of what came due in it lie behind us, and must not hide those that come near."""
    wide = {"scope": "namespace", "namespace": "flights"}
    report = ran(
        a_schedule("load"),
        {**a_schedule("other"), "namespace": "orders"},
        happenings=happenings(
            {"at": "2026-01-01T00:30:00Z", "type": "control.suspend", **wide},
            {"at": "2026-01-01T03:30:00Z", "type": "control.resume", **wide},
        ),
    )
    found: dict[str, list[str]] = {}
    for each in report.occurrences:
        found.setdefault(each.schedule, []).append(clock(each.made_at))
    assert found == {
        "flights/load": ["00:00", "04:00", "05:00"],
        "orders/other": ["00:00", "01:00", "02:00", "03:00", "04:00", "05:00"],
    }
