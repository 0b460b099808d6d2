"""Occurrences more than ten years after the one before: they come, however long that takes (a newcomer's 2047 never did)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.definitions.schedule_validation import check_schedule
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.triggers import TimeTrigger
from tidegate_core.language.triggers.search import Search
from tidegate_core.language.values.instants import format_instant, parse_instant


def cron(expression: str, **more: Any) -> dict[str, Any]:
    return {"type": "cron", "expression": expression, **more}


NOW = parse_instant("2026-01-01T00:00:00Z")
TARGET = {"type": "program", "program": {"type": "python", "file": "jobs/load.py"}}
YEARLY = cron("0 0 1 1 *")
WITHOUT_13_YEARS = [{"type": "dates", "first": "2027-01-02", "last": "2039-12-31"}]
SPARSE = {
    "quartz years": (cron("0 0 0 1 1 ? 2030,2047", dialect="quartz"), ["2030-01-01", "2047-01-01"]),
    "quartz years and a zone": (
        cron("0 0 12 1 7 ? 2027,2055,2099", dialect="quartz", zone="Europe/Rome"),
        ["2027-07-01", "2055-07-01", "2099-07-01"],
    ),
    "dates left out": ({**YEARLY, "exclude": WITHOUT_13_YEARS}, ["2027-01-01", "2040-01-01", "2041-01-01"]),
    "dates left out of a zone's days": (
        {**YEARLY, "zone": "Pacific/Kiritimati", "exclude": WITHOUT_13_YEARS},
        ["2026-12-31", "2039-12-31", "2040-12-31"],
    ),
    "dates left out of one of the specs": (
        {"type": "times", "specs": [{**YEARLY, "exclude": WITHOUT_13_YEARS}]},
        ["2027-01-01", "2040-01-01", "2041-01-01"],
    ),
    "years left out by a cron": (
        {**YEARLY, "exclude": [{"type": "cron", "dialect": "quartz", "expression": "0 * * * * ? 2028-2051"}]},
        ["2027-01-01", "2052-01-01"],
    ),
    "a leap day's Monday": (cron("0 0 29 2 1", day_rule="and"), ["2044-02-29", "2072-02-29", "2112-02-29"]),
}


def spec_of(trigger: dict[str, Any]) -> ScheduleSpec:
    return parse_schedule({"namespace": "ns", "name": "name", "target": TARGET, "trigger": trigger})


def time_trigger(trigger: dict[str, Any]) -> TimeTrigger:
    found = spec_of(trigger).trigger
    assert isinstance(found, TimeTrigger)
    return found


@pytest.mark.parametrize(("trigger", "days"), SPARSE.values(), ids=SPARSE)
def test_given_years_between_two_occurrences_then_none_is_lost_and_the_interval_reaches_back(
    trigger: dict[str, Any], days: list[str]
) -> None:
    times = time_trigger(trigger)
    instants = [NOW]
    for _ in days:
        following = times.next_after(instants[-1], "ns/name")
        assert following is not None
        instants.append(following)
    assert [format_instant(each)[:10] for each in instants[1:]] == days
    for before, instant in pairwise(instants[1:]):
        assert times.interval(instant, "ns/name") == (before, instant)


@pytest.mark.parametrize(
    "trigger",
    [
        cron("0 0 0 1 1 ? 2030,2047", dialect="quartz"),
        {**cron("*/5 * * * *"), "exclude": [{"type": "dates", "first": "2027-01-01", "last": "9999-12-31"}]},
        {**YEARLY, "exclude": [{"type": "dates", "first": "2048-01-01", "last": "9999-12-31"}]},
    ],
    ids=["years", "dates for ever", "dates for ever of a yearly one"],
)
def test_given_nothing_behind_the_last_occurrence_then_the_search_ends_soon(trigger: dict[str, Any]) -> None:
    search = Search(5_000)  # Day by day to 2286 it would be 87,000 days.
    begin = parse_instant("2047-06-01T00:00:00Z")
    assert time_trigger(trigger).next_after(begin, "ns/name", search) is None
    assert not search.gave_up


def test_given_a_first_occurrence_beyond_ten_years_then_it_is_refused_at_its_apply_as_before() -> None:
    for trigger in (cron("0 0 29 2 1", day_rule="and"), cron("0 0 0 1 1 ? 2047", dialect="quartz")):
        (problem,) = check_schedule(spec_of(trigger), now=NOW)
        assert problem.problem == "names no time in the next ten years"
