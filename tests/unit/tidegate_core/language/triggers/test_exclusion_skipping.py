"""What is left out is passed over by days, and nothing that is not left out with it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.support.tier import at_night, examples
from tests.unit.tidegate_core.cpu_time import is_done_within
from tests.unit.tidegate_core.language.triggers.left_out import EXCLUDED, NAMING, ROME, TOKYO, UNION, cron
from tidegate_core.language.triggers import Trigger
from tidegate_core.language.triggers.search import STEPS_PER_SEARCH, Search
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.instants import Instant, format_instant, parse_instant

ANY: TypeAdapter[Any] = TypeAdapter(Trigger)
SPAN = 3 * 86_400_000
EVEN = {"type": "cron", "expression": "0 */2 * * * ? 2027-2034", "dialect": "quartz"}


def even_in(zone: str, minutes: str = "*/2") -> dict[str, Any]:
    return {**EVEN, "expression": EVEN["expression"].replace("*/2", minutes, 1), "zone": zone}


@pytest.mark.parametrize(
    "trigger",
    [
        pytest.param(cron("*/2 * * * *", EVEN), id="cron"),
        pytest.param(cron("*/2 * * * *", EVEN, zone=ROME), id="with clock changes"),
        pytest.param(cron("*/2 * * * *", even_in("Asia/Kolkata"), zone=ROME), id="days of another zone"),
        pytest.param(cron("*/2 * * * *", even_in(TOKYO, "0-59/4"), even_in("UTC", "2-59/4")), id="of two zones"),
        pytest.param({"type": "every", "period": "2m", "exclude": [EVEN]}, id="elapsed"),
        pytest.param({"type": "every", "period": "150s", "phase": "10s", "exclude": [even_in("UTC", "*")]}, id="odd"),
        pytest.param({"type": "times", "specs": [cron("*/2 * * * *", EVEN)] * 3}, id="specs"),
        pytest.param(
            {
                "type": "times",
                "specs": [cron("*/2 * * * *"), cron("*/4 * * * *", zone=ROME)],
                "exclude": [even_in("UTC")],
            },
            id="beside specs",
        ),
    ],
)
def test_given_years_of_every_other_minute_left_out_then_the_search_takes_days_in_a_step(
    trigger: dict[str, Any],
) -> None:
    """Review finding: such a year took a second of the shard's lane, and an apply refused two months of it."""
    parsed: TimeTrigger = ANY.validate_python(trigger)
    last, following = parse_instant("2026-12-30T00:00:00Z"), None

    def walk() -> None:
        nonlocal last, following
        while (following := parsed.next_after(last, "n/a")) is not None and following < parse_instant(
            "2027-01-02T00:00:00Z"
        ):
            last = following

    assert is_done_within(300, walk)
    assert following is not None
    assert format_instant(following)[:13] in {"2034-12-31T15", "2034-12-31T18", "2034-12-31T23", "2035-01-01T00"}
    assert parsed.last_before(following, "n/a") == last
    search = Search(STEPS_PER_SEARCH)
    assert parsed.next_after(last, "n/a", search) == following
    assert not search.gave_up


def naive(trigger: TimeTrigger, after: Instant, until: Instant) -> list[Instant]:
    """Walks what the trigger names, instant by instant."""
    named = until_end(lambda instant: trigger.named_after(instant, "n/a", Search()), after, until)
    return [instant for instant in named if trigger.excluded_at(instant) is None]


def until_end(next_after: Callable[[Instant], Instant | None], after: Instant, until: Instant) -> list[Instant]:
    found, following = list[Instant](), next_after(after)
    while following is not None and following < until:
        found.append(following)
        following = next_after(following)
    return found


@settings(max_examples=at_night(100, else_=8))
@given(
    trigger=st.one_of(NAMING, UNION),
    exclude=st.lists(EXCLUDED, min_size=1, max_size=3),
    begin=st.sampled_from(["2026-03-27", "2026-10-24", "2026-06-26", "2026-10-30"]),
)
def test_given_any_exclusions_then_the_same_instants_are_left_as_one_by_one(
    trigger: dict[str, Any], exclude: list[dict[str, Any]], begin: str
) -> None:
    """Through clock changes, and in either direction.

    Each of the spans has a clock change of one of the zones, or a turn of the days that are left out, well inside: the 29th of
    March and of June, the 25th and 27th of October, and the 1st of November, on which St. John's turns its clocks.
    """
    parsed: TimeTrigger = ANY.validate_python({**trigger, "exclude": exclude})
    after = parse_instant(f"{begin}T11:17:00Z")
    expected = naive(parsed, after, after + SPAN)
    found = until_end(lambda instant: parsed.next_after(instant, "n/a"), after, after + SPAN)
    assert found == expected
    for earlier, later in pairwise(expected):
        assert parsed.last_before(later, "n/a") == earlier


@settings(max_examples=examples(60))
@given(
    trigger=st.one_of(NAMING, UNION),
    exclude=st.lists(EXCLUDED, min_size=0, max_size=2),
    within=st.integers(0, SPAN // 60_000),
    back_ms=st.integers(0, SPAN),
)
def test_given_a_floor_then_what_lies_below_it_is_none_and_all_else_as_it_was(
    trigger: dict[str, Any], exclude: list[dict[str, Any]], within: int, back_ms: int
) -> None:
    parsed: TimeTrigger = ANY.validate_python({**trigger, "exclude": exclude or None})
    before = parse_instant("2026-10-24T11:17:00Z") + within * 60_000
    last = parsed.last_before(before, "n/a")
    for floor in (before - back_ms, before, *(() if last is None else (last, last + 1))):
        found = parsed.last_before(before, "n/a", Search(STEPS_PER_SEARCH, floor=floor))
        assert found == (last if last is not None and last >= floor else None)


ALL_BEFORE = {"type": "cron", "expression": "0 * * * * ? 1970-2034", "dialect": "quartz"}


@pytest.mark.parametrize(
    "trigger",
    [
        pytest.param(cron("*/2 * * * *", ALL_BEFORE), id="cron"),
        pytest.param({"type": "times", "specs": [cron("*/2 * * * *", ALL_BEFORE)] * 3}, id="specs"),
    ],
)
def test_given_a_floor_then_decades_that_are_left_out_before_it_are_not_walked(trigger: dict[str, Any]) -> None:
    """Without one it takes all of its steps, 0.1 s of the shard writer for a request that ends a recurring message."""
    parsed: TimeTrigger = ANY.validate_python(trigger)
    before = parse_instant("2034-12-01T00:00:00Z")
    whole, floored = Search(STEPS_PER_SEARCH), Search(STEPS_PER_SEARCH, floor=before - SPAN)
    assert parsed.last_before(before, "n/a", whole) is None
    assert parsed.last_before(before, "n/a", floored) is None
    assert whole.steps is not None
    assert floored.steps is not None
    assert whole.steps < 10_000 < STEPS_PER_SEARCH - 2_000 < floored.steps
