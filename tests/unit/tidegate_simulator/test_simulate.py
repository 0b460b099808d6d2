"""What the simulator takes and tells: the span, what is on its way at its end, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import HOUR, every, on_data
from tests.unit.tidegate_simulator.simulated import BEGIN, a_partition, a_schedule, clock, happenings, ran, told
from tidegate_core.language.values.problems import InvalidInput
from tidegate_simulator import DefinitionRefused, Happening, Outage, PlannedRun, simulate

DAY = 24 * HOUR


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
