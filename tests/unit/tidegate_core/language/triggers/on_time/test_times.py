"""The union of several times: one sequence of instants (SEMANTICS 1.6)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tidegate_core.language.triggers import EveryTrigger, TimesTrigger
from tidegate_core.language.triggers.search import Search
from tidegate_core.language.values.instants import format_instant, parse_instant


def cron(expression: str, **fields: Any) -> dict[str, Any]:
    return {"type": "cron", "expression": expression, "zone": "Europe/Rome", **fields}


def every(period: str) -> dict[str, Any]:
    return {"type": "every", "period": period}


def times(*specs: dict[str, Any], **fields: Any) -> TimesTrigger:
    return TimesTrigger.model_validate({"type": "times", "specs": list(specs), **fields})


@given(st.lists(st.integers(1, 60), min_size=1, max_size=6), st.integers(0, 4_000_000_000_000))
def test_given_periods_then_their_instants_are_merged_and_what_is_identical_collapses(
    periods: list[int], after: int
) -> None:
    union = times(*(every(f"{period}s") for period in periods))
    singles = [EveryTrigger.model_validate(every(f"{period}s")) for period in periods]
    found, expected = list[int](), set[int]()
    for single in singles:
        instant = after
        for _ in range(20):
            instant = single.next_after(instant, "n/a") or 0
            expected.add(instant)
    instant = after
    for _ in range(20):
        following = union.next_after(instant, "n/a")
        assert following is not None
        assert not found or union.interval(following, "n/a") == (instant, following)
        found.append(following)
        instant = following

    assert found == sorted(expected)[:20]


def test_given_specs_of_several_kinds_then_intervals_are_contiguous_between_them() -> None:
    union = times(cron("0 6 * * *"), every("12h"), {"type": "at", "instant": "2026-01-01T07:00:00Z"})
    instant, found = parse_instant("2026-01-01T00:00:00Z"), list[str]()
    for _ in range(4):
        following = union.next_after(instant, "n/a")
        assert following is not None
        assert union.interval(following, "n/a") == (instant, following)
        found.append(format_instant(following)[11:16])
        instant = following

    assert found == ["05:00", "07:00", "12:00", "00:00"]


def test_given_bounds_of_a_spec_then_they_hold_also_backwards() -> None:
    union = times(cron("0 6 * * *", end="2026-01-02T00:00:00Z"), cron("0 12 * * *"))
    noon = parse_instant("2026-01-03T11:00:00Z")

    assert union.next_after(parse_instant("2026-01-02T11:00:00Z"), "n/a") == noon
    assert union.interval(noon, "n/a") == (noon - 86_400_000, noon)


def test_given_exclusion_beside_the_specs_then_it_holds_for_all_of_them() -> None:
    left_out = {"type": "dates", "first": "2026-12-25", "zone": "Europe/Rome"}
    union = times(cron("0 6 * * *"), cron("0 18 * * *"), exclude=[left_out])

    assert union.next_after(parse_instant("2026-12-24T17:00:00Z"), "n/a") == parse_instant("2026-12-26T05:00:00Z")


MINUTES_OF_DECEMBER = {"type": "cron", "expression": "* * 1-20 12 *"}
EVEN_MINUTES_OF_TWO_YEARS = {"type": "cron", "expression": "0 */2 * * * ? 2026-2027", "dialect": "quartz"}


def test_given_spec_that_leaves_out_long_then_the_union_does_not_pass_over_it() -> None:
    """More than an apply would search: to give up would lose what comes after, and to take the other spec's as well."""
    sparse = {**every("2m"), "exclude": [EVEN_MINUTES_OF_TWO_YEARS]}
    union = times(sparse, cron("0 1 1 6 *", start="2028-01-01T00:00:00Z"))
    first = parse_instant("2028-01-01T00:00:00Z")

    assert union.next_after(parse_instant("2027-06-30T23:59:00Z"), "n/a") == first
    assert EveryTrigger.model_validate(sparse).next_after(parse_instant("2027-06-30T23:59:00Z"), "n/a") == first


def test_given_specs_under_exclusions_then_none_is_searched_beyond_what_another_names() -> None:
    sparse = {**every("2m"), "exclude": [EVEN_MINUTES_OF_TWO_YEARS]}
    union, begin = times(sparse, sparse, sparse, every("10s")), parse_instant("2026-06-01T00:00:00Z")
    forth, back = Search(500), Search(500)

    assert union.next_after(begin, "n/a", forth) == begin + 10_000
    assert union.last_before(begin + 10_000, "n/a", back) == begin
    assert not forth.gave_up
    assert not back.gave_up
    assert union.zone_at(begin + 10_000, "n/a") == "UTC"


def test_given_days_left_out_of_a_spec_then_they_are_no_occurrences_in_either_direction() -> None:
    union = times(cron("0 * * * *", zone="UTC", exclude=[MINUTES_OF_DECEMBER]), cron("30 12 10 12 *", zone="UTC"))
    last, noon, first = (parse_instant(f"2026-{text}:00Z") for text in ("11-30T23:00", "12-10T12:30", "12-21T00:00"))

    assert union.next_after(last, "n/a") == noon
    assert union.next_after(noon, "n/a") == first
    assert union.interval(first, "n/a") == (noon, first)
    assert union.interval(noon, "n/a") == (last, noon)


def test_given_specs_that_skip_in_one_gap_then_it_is_told_once() -> None:
    union = times(cron("15 2 * * *", dst_gap="skip"), cron("45 2 * * *", dst_gap="skip"), cron("0 6 * * *"))
    begin = parse_instant("2026-03-28T12:00:00Z")
    (skip,) = union.skips(begin, begin + 86_400_000, "n/a")

    assert skip.last - skip.first == 30 * 60


def test_given_instant_then_the_note_is_of_the_spec_that_names_it() -> None:
    union = times(cron("30 2 * * *"), cron("0 6 * * *"))

    assert "skips the local time" in union.note(parse_instant("2026-03-29T01:00:00Z"), "n/a")
    assert union.note(parse_instant("2026-03-29T04:00:00Z"), "n/a") == ""


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        ({"specs": []}, "at least 1"),
        ({"specs": [every("1m")] * 51}, "at most 50"),
        ({"specs": [{"type": "data_partitions", "dataset": "d"}]}, "data_partitions"),
        ({"specs": [{**every("1m"), "max_fires": 3}]}, "belongs to all times together"),
        ({"specs": [{**every("1m"), "flexible": "3s"}]}, "belongs to all times together"),
        ({"exclude": [{"type": "dates", "first": "2026-12-25"}]}, "has its own zone"),
        ({"zone": "Europe/Rome"}, "zone"),
    ],
)
def test_given_a_fault_then_it_is_refused(fields: dict[str, Any], part: str) -> None:
    with pytest.raises(ValidationError, match=part):
        TimesTrigger.model_validate({"type": "times", "specs": [every("1m")], **fields})
