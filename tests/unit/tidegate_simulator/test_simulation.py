"""What the simulator tells: each policy's own behaviour, to the millisecond, and one hash for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tidegate_core.model.instants import parse_instant
from tidegate_core.model.problems import InvalidInput
from tidegate_simulator import (
    DefinitionRefused,
    Happening,
    Occurrence,
    Outage,
    PlannedRun,
    Report,
    RunPlan,
    happenings_of,
    simulate,
)
from tidegate_testkit.builders import HOUR, MINUTE, all_of, at_most, every, on_data, on_run_of

BEGIN = parse_instant("2026-01-01T00:00:00Z")
DAY = 24 * HOUR


def a_schedule(name: str = "load", trigger: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    program = {"type": "python", "file": "jobs/load.py"}
    target = {"type": "program", "program": program}
    named = {"kind": "schedule", "namespace": "flights", "name": name}
    return {**named, "target": target, "trigger": trigger or every("1h"), **more}


def ran(*schedules: dict[str, Any], hours: float = 6, takes: str = "1m", **more: Any) -> Report:
    """Simulates so many hours of 1 January 2026; runs take a minute unless told otherwise."""
    runs = more.pop("runs", RunPlan(otherwise=PlannedRun.read({"duration": takes})))
    return simulate(schedules, BEGIN, BEGIN + int(hours * HOUR), runs=runs, **more)


def happenings(*lines: dict[str, Any], hours: float = 6) -> list[Happening]:
    return [each for line in lines for each in happenings_of(line, BEGIN + int(hours * HOUR))]


def a_partition(at: str, name: str, dataset: str = "raw") -> dict[str, Any]:
    where = {"namespace": "flights", "dataset": dataset, "partition": name}
    return {"at": f"2026-01-01T{at}:00Z", "type": "data.partition", **where}


def told(report: Report) -> list[tuple[str, str, str, list[tuple[str, str]]]]:
    """Returns of each occurrence: schedule, nominal (minutes), result, and how long it waited for what."""
    return [
        (each.schedule.partition("/")[2], clock(each.nominal), each.result, [*waited(each)])
        for each in report.occurrences
    ]


def waited(each: Occurrence) -> list[tuple[str, str]]:
    return [("+".join(wait.codes), "..." if wait.end is None else clock(wait.end)) for wait in each.waits]


def clock(instant: int | None) -> str:
    minutes = ((instant or 0) - BEGIN) // MINUTE
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


# -- the span -----------------------------------------------------------------------------------------------------------


def test_given_a_span_then_its_begin_is_in_it_and_its_end_is_not() -> None:
    assert [clock(each.nominal) for each in ran(a_schedule(), hours=3).occurrences] == ["00:00", "01:00", "02:00"]


def test_given_a_schedule_by_day_then_a_year_has_365_occurrences_with_zone_and_clock_changes() -> None:
    daily = a_schedule(trigger={"type": "cron", "expression": "30 2 * * *", "zone": "Europe/Rome"})
    report = simulate([daily], BEGIN, BEGIN + 365 * DAY)
    assert report.tally() == {"succeeded": 365}
    by_date = {each.local[4:14]: each for each in report.occurrences}
    assert by_date["2026-01-01"].local == "Thu 2026-01-01 02:30:00+01:00"
    assert by_date["2026-03-29"].local == "Sun 2026-03-29 03:00:00+02:00"
    assert {each.zone for each in report.occurrences} == {"Europe/Rome"}


def test_given_an_end_then_what_is_on_its_way_is_told_as_it_stands() -> None:
    night = {"type": "time_window", "opens": "22:00", "closes": "23:00", "zone": "UTC"}
    report = ran(a_schedule(), a_schedule("later", constraints=[night]), hours=0.5, takes="2h")
    assert told(report) == [
        ("later", "00:00", "pending_constraint", [("window_closed", "...")]),
        ("load", "00:00", "running", []),
    ]


def test_given_no_schedule_then_there_is_nothing_to_tell() -> None:
    assert ran().occurrences == ()


def test_given_a_run_that_was_forced_then_it_says_in_spite_of_what() -> None:
    delay = {"type": "delay", "after": "2h"}
    forced = {"pending_timeout": "1h", "pending_timeout_action": "force"}
    (first, *_) = ran(a_schedule(trigger=every("6h"), constraints=[delay], **forced), hours=2).occurrences
    assert (first.result, clock(first.admitted_at)) == ("succeeded", "01:00")
    assert "2h" in str(first.forced)
    assert first.document()["forced"] == first.forced


@pytest.mark.parametrize(
    "kept_apart_by", [{"or_mode": "each"}, {"window": {"every": "day", "zone": "UTC"}}, {"correlate": "data_partition"}]
)
def test_given_evidence_that_is_kept_apart_then_it_has_a_key_only_where_a_value_pairs_it(
    kept_apart_by: dict[str, Any],
) -> None:
    """A stranger's finding: the key was shown as `["0"]`, which is how the groups are told apart inside."""
    kind = "any_of" if "or_mode" in kept_apart_by else "all_of"
    trigger = {"type": kind, "triggers": [on_data("raw"), on_data("other")], **kept_apart_by}
    arrived = [a_partition("01:00", "x"), a_partition("01:30", "x", "other"), a_partition("02:00", "y")]
    report = ran(a_schedule(trigger=trigger), happenings=happenings(*arrived))
    keys = {each.correlation for each in report.occurrences}
    assert keys == ({"x", "y"} if "correlate" in kept_apart_by else {None})


# -- policies -----------------------------------------------------------------------------------------------------------


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
    assert wait.reason == "1 of 1 runs of schedule flights/load are running: flights/load 2026-01-01T00:00:00Z"
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


# -- events and requests ------------------------------------------------------------------------------------------------


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
    lines = [
        {"at": "2026-01-01T00:30:00Z", "type": "schedule.suspend", "namespace": "flights", "name": "load"},
        {"at": "2026-01-01T02:30:00Z", "type": "schedule.resume", "namespace": "flights", "name": "load"},
        {"at": "2026-01-01T02:45:00Z", "type": "schedule.trigger", "namespace": "flights", "name": "load"},
        {"at": "2026-01-01T02:50:00Z", "type": "schedule.delete", "namespace": "flights", "name": "none"},
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


# -- what is refused ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("schedules", "index", "field"),
    [
        ([a_schedule(), a_schedule("b", {"type": "every", "period": "soon"})], 1, "trigger.period"),
        ([a_schedule(trigger=every("2s"))], 0, "trigger.period"),
        ([a_schedule(), a_schedule()], 1, "name"),
        ([a_schedule(), a_schedule("b"), a_schedule(overlap="skip")], 2, "name"),
    ],
)
def test_given_a_definition_that_no_cluster_would_take_then_it_is_named(
    schedules: list[dict[str, Any]], index: int, field: str
) -> None:
    with pytest.raises(DefinitionRefused) as refused:
        ran(*schedules)
    assert (refused.value.index, refused.value.problems[0].field) == (index, field)


@pytest.mark.parametrize(
    "more",
    [
        {"hours": 0},
        {"happenings": [Happening(BEGIN - 1, "events", b"{}")]},
        {"outages": [Outage(BEGIN, BEGIN + 7 * HOUR)]},
        {"outages": [Outage(BEGIN, BEGIN + 2 * HOUR), Outage(BEGIN + HOUR, BEGIN + 3 * HOUR)]},
    ],
)
def test_given_something_outside_of_the_span_then_it_is_refused(more: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="span"):
        ran(a_schedule(), **more)


# -- the hash -----------------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
from tests.unit.tidegate_simulator.test_simulation import mixed
sys.stdout.write(mixed().digest)
"""


def mixed(hours: int = 24) -> Report:
    """Returns a world with something of everything."""
    one = at_most(1, "program")
    both = all_of(on_data("flights"), on_data("weather"), correlate="data_partition")
    schedules = [
        a_schedule("a", constraints=[one], priority="high", overlap="allow"),
        a_schedule("b", every("40m"), constraints=[{"type": "rate", "max": 3, "per": "3h"}], overlap="coalesce"),
        a_schedule("c", both, constraints=[one], overlap="allow"),
        a_schedule("d", on_run_of("a", "succeeded", "failed"), overlap="allow"),
        a_schedule("e", {"type": "cron", "expression": "H H * * *", "zone": "Asia/Kolkata"}),
    ]
    lines = [
        {**a_partition("00:10", "p-${number}", dataset), "every": period}
        for dataset, period in (("flights", "25m"), ("weather", "35m"))
    ]
    runs = RunPlan.of([PlannedRun.read({"duration": "5m..50m"})])
    away = Outage(BEGIN + 4 * HOUR, BEGIN + 6 * HOUR)
    return ran(*schedules, hours=hours, happenings=happenings(*lines, hours=hours), runs=runs, outages=[away])


def digest_in(**environment: str) -> str:
    """Returns the hash that another process comes to."""
    given = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=given, capture_output=True, text=True, check=True)
    return done.stdout


def test_given_other_hash_seeds_zones_and_locales_then_the_hash_is_the_same() -> None:
    expected = mixed().digest
    assert digest_in(PYTHONHASHSEED="1", TZ="Asia/Tokyo", LC_ALL="C") == expected
    assert digest_in(PYTHONHASHSEED="2", TZ="America/New_York", LC_ALL="C.UTF-8") == expected


def test_given_the_routine_is_not_passed_over_then_the_same_runs_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Alarms that look for what got lost find nothing where nothing gets lost. Only words may differ: at which of the
    decisions of one instant a job was told what stands in its way.
    """

    def outcome() -> list[tuple[object, ...]]:
        return [
            (each.schedule, each.nominal, each.result, each.covered, each.made_at, each.started_at, each.ended_at)
            for each in mixed(8).occurrences
        ]

    expected = outcome()
    monkeypatch.setattr("tidegate_simulator.world.SKIPS_ROUTINE", False)
    assert outcome() == expected


def test_given_a_report_then_its_hash_is_that_of_its_document() -> None:
    report = ran(a_schedule(), hours=2)
    assert json.loads(json.dumps(report.document())) == report.document()
    assert report.digest == ran(a_schedule(), hours=2).digest
    assert report.digest != ran(a_schedule(), hours=3).digest


# -- what does not hold a job, and what no run can do -------------------------------------------------------------------


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


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"error_class": "banana"}, "error_class"),
        ({"outputs": {"rows": "x" * 70_000}}, "outputs"),
        ({"reports": [{"type": "nonsense"}]}, "reports[0].type"),
    ],
)
def test_given_a_run_that_no_program_could_be_then_its_line_is_refused(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refusal:
        PlannedRun.read(fields)
    assert [each.field for each in refusal.value.problems] == [field]


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
