"""What the simulator tells of each policy: its own behaviour, to the millisecond, and why a job waits."""

from __future__ import annotations

import pytest

from tests.support.builders import HOUR, MINUTE, at_most
from tests.unit.tidegate_simulator.simulated import BEGIN, a_schedule, clock, happenings, ran, told, waited
from tidegate_simulator import Occurrence, Outage, PlannedRun, RunPlan


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("allow", ["succeeded 00:00-01:30", "succeeded 01:00-02:30", "running 02:00", "running 03:00"]),
        ("skip", ["succeeded 00:00-01:30", "skipped/overlap", "running 02:00", "skipped/overlap"]),
        ("queue", ["succeeded 00:00-01:30", "succeeded 01:30-03:00", "running 03:00", "pending_constraint"]),
        ("keep_latest", ["succeeded 00:00-01:30", "succeeded 01:30-03:00", "running 03:00", "pending_constraint"]),
        ("cancel_running", ["killed 00:00-01:00", "killed 01:00-02:00", "killed 02:00-03:00", "running 03:00"]),
    ],
)
def test_given_overlap_then_it_acts_as_in_production(policy: str, expected: list[str]) -> None:
    report = ran(a_schedule(overlap=policy), hours=3.5, takes="90m")
    assert [_ran(each) for each in report.occurrences] == expected


def _ran(each: Occurrence) -> str:
    if each.started_at is None:
        return each.result
    end = "" if each.ended_at is None else f"-{clock(each.ended_at)}"
    return f"{each.result} {clock(each.started_at)}{end}"


def test_given_coalesce_then_what_came_meanwhile_is_one_run() -> None:
    report = ran(a_schedule(overlap="coalesce"), hours=4.5, takes="150m")
    assert [(clock(each.nominal), each.result, each.covered) for each in report.occurrences] == [
        ("00:00", "succeeded", 1),
        ("01:00", "coalesced/overlap", 1),
        ("02:00", "running", 2),
        ("03:00", "coalesced/overlap", 1),
        ("04:00", "pending_constraint", 2),
    ]
    assert report.occurrences[1].detail is not None
    assert "flights/load 2026-01-01T02:00:00Z" in report.occurrences[1].detail


def test_given_a_queue_then_each_wait_has_its_reason_and_who_is_in_the_way() -> None:
    report = ran(a_schedule(), hours=3.2, takes="90m")
    assert told(report)[1:3] == [
        ("load", "01:00", "succeeded", [("concurrency", "01:30")]),
        ("load", "02:00", "running", [("concurrency", "03:00")]),
    ]
    wait = report.occurrences[1].waits[0]
    assert wait.reason == "1 of 1 runs of schedule flights/load are open: flights/load 2026-01-01T00:00:00Z"
    assert wait.verdicts[0]["values"]["in_use"] == 1


def test_given_two_before_a_job_then_it_is_behind_them_until_its_turn_comes() -> None:
    report = ran(a_schedule(), hours=3.5, takes="150m")
    assert told(report)[2:] == [
        ("load", "02:00", "pending_constraint", [("behind", "02:30"), ("concurrency", "...")]),
        ("load", "03:00", "pending_constraint", [("behind", "...")]),
    ]


def test_given_a_limit_of_a_program_then_schedules_share_it() -> None:
    one = at_most(1, "program")
    report = ran(a_schedule("a", constraints=[one]), a_schedule("b", constraints=[one]), hours=1, takes="20m")
    assert told(report) == [("a", "00:00", "succeeded", []), ("b", "00:00", "succeeded", [("concurrency", "00:20")])]


def test_given_a_rate_and_a_delay_then_their_reasons_follow_one_another() -> None:
    constraints = [{"type": "rate", "max": 1, "per": "2h"}, {"type": "delay", "after": "10m"}]
    report = ran(a_schedule(constraints=constraints), hours=3)
    assert told(report)[:2] == [
        ("load", "00:00", "succeeded", [("delayed", "00:10")]),
        ("load", "01:00", "succeeded", [("rate_reached+delayed", "02:00"), ("rate_reached", "02:10")]),
    ]


def test_given_a_rate_of_a_group_then_schedules_share_it_and_go_in_turn_as_time_gives_room() -> None:
    shared = {"type": "rate", "max": 1, "per": "3h", "scope": "group", "group": "calls"}
    report = ran(*(a_schedule(name, constraints=[shared]) for name in ("a", "b")), hours=7)
    ends = [entry for entry in told(report) if entry[2] == "succeeded"]
    assert ends == [
        ("a", "00:00", "succeeded", []),
        ("b", "00:00", "succeeded", [("rate_reached", "03:00")]),
        ("a", "01:00", "succeeded", [("rate_reached", "03:00"), ("rate_reached", "06:00")]),
    ]


@pytest.mark.parametrize(("load", "result"), [(0.2, "succeeded"), (0.99, "expired/constraint_timeout")])
def test_given_a_load_then_it_decides(load: float, result: str) -> None:
    busy = {"type": "load", "source": "local", "resource": "cpu", "below": 0.8}
    report = ran(a_schedule(constraints=[busy], pending_timeout="30m"), hours=0.9, load=load)
    assert [each.result for each in report.occurrences] == [result]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("all", ["succeeded"] * 6),
        ("last", ["succeeded", "succeeded", "succeeded", "succeeded"]),
        ("none", ["succeeded", "succeeded", "skipped/outage", "succeeded"]),
    ],
)
def test_given_an_outage_then_it_is_caught_up_as_the_schedule_says(mode: str, expected: list[str]) -> None:
    away = Outage(BEGIN + 90 * MINUTE, BEGIN + 4 * HOUR + 30 * MINUTE)
    report = ran(a_schedule(catchup={"mode": mode}), outages=[away])
    assert [each.result for each in report.occurrences] == expected


def test_given_missed_occurrences_then_they_run_one_at_a_time() -> None:
    away = Outage(BEGIN + 30 * MINUTE, BEGIN + 3 * HOUR + 30 * MINUTE)
    report = ran(a_schedule(overlap="allow"), outages=[away], takes="10m", hours=4.5)
    assert [(clock(each.nominal), clock(each.started_at)) for each in report.occurrences] == [
        ("00:00", "00:00"),
        ("01:00", "03:30"),
        ("02:00", "03:40"),
        ("03:00", "03:50"),
        ("04:00", "04:00"),
    ]
    assert waited(report.occurrences[2]) == [("catch_up_pacing", "03:40")]


def test_given_recorded_runs_then_each_ends_as_it_was_recorded() -> None:
    recorded = [
        PlannedRun.read({"duration": "10m"}),
        PlannedRun.read({"schedule": "flights/load", "duration": "20m"}),
        PlannedRun.read({"schedule": "flights/load", "nominal": "2026-01-01T01:00:00Z", "outcome": "failed"}),
        PlannedRun.read({"schedule": "flights/load", "nominal": "2026-01-01T02:00:00Z", "duration": "none"}),
    ]
    report = ran(a_schedule(), hours=3, runs=RunPlan.of(recorded))
    assert [_ran(each) for each in report.occurrences] == [
        "succeeded 00:00-00:20",
        "failed 01:00-01:01",
        "running 02:00",
    ]


@pytest.mark.parametrize(
    ("error_class", "result"),
    [(None, "failed 4 06:23"), ("transient", "failed 4 06:23"), ("user_code", "failed 1 06:05")],
)
def test_given_a_failed_run_then_it_is_tried_again_as_one_that_says_no_more_than_that_it_failed(
    error_class: str | None, result: str
) -> None:
    """A wrapper reports no class of its own: the nodes take it for `unknown`, which is tried again by default."""
    line = {"schedule": "flights/load", "duration": "5m", "outcome": "failed"}
    planned = PlannedRun.read(line if error_class is None else {**line, "error_class": error_class})
    retried = a_schedule(
        trigger={"type": "at", "instant": "2026-01-01T06:00:00Z"}, retry={"tries": 3, "backoff": "30s"}
    )
    (told,) = ran(retried, hours=8, runs=RunPlan.of([planned])).occurrences
    assert f"{told.result} {told.attempts} {clock(told.ended_at)}" == result


def test_given_a_drain_then_what_waits_has_its_own_reason() -> None:
    window = {"type": "time_window", "opens": "03:00", "closes": "04:00", "zone": "UTC"}
    suspend = {"type": "schedule.suspend", "namespace": "flights", "name": "load", "mode": "drain"}
    report = ran(
        a_schedule(constraints=[window]), happenings=happenings({"at": "2026-01-01T01:30:00Z", **suspend}), hours=3
    )
    assert {code for each in report.occurrences for wait in each.waits for code in wait.codes} <= {
        "window_closed",
        "behind",
    }
