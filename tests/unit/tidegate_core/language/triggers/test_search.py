"""A search that is cut finds, piece by piece, what one without an end finds; and each piece has a bound."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tests.support.tier import examples
from tests.unit.tidegate_core.language.triggers.left_out import EXCLUDED, NAMING, UNION, cron
from tidegate_core.language.triggers import Trigger
from tidegate_core.language.triggers.exclusions import ExcludedCron
from tidegate_core.language.triggers.search import STEPS_PER_DECISION, Next, Search
from tidegate_core.language.triggers.trigger import TimeTrigger
from tidegate_core.language.values.instants import Instant, parse_instant

ANY: TypeAdapter[Any] = TypeAdapter(Trigger)
DAY = 86_400_000
ROOT = Path(__file__).parents[5]
SOURCES = [ROOT / "shared", ROOT / "services"]
UNBOUNDED = {"triggers"}
YEARS: dict[str, Any] = {"type": "cron", "dialect": "quartz", "expression": "* * * * * ? 2026-2028"}
BY_HOURS: list[dict[str, Any]] = [{**YEARS, "expression": f"* * {hour} * * ? 2026-2028"} for hour in range(24)]
"""Leave out three years together, hour by hour: each of their days is compared with all of them."""
SPECS: dict[str, Any] = {"type": "times", "specs": [cron(f"{minute} * * * *") for minute in range(50)]}
ADVERSE = [
    pytest.param(cron("* * * * *", *BY_HOURS), id="every minute"),
    pytest.param(cron("* * * * * *", *BY_HOURS, dialect="unix6"), id="every second"),
    pytest.param({"type": "every", "period": "1s", "exclude": BY_HOURS}, id="elapsed seconds"),
    pytest.param(cron("7 3 * * *", *BY_HOURS), id="sparse"),
    pytest.param({**SPECS, "exclude": [{**each, "zone": "UTC"} for each in BY_HOURS]}, id="beside specs"),
    pytest.param({"type": "times", "specs": [{**each, "exclude": BY_HOURS} for each in SPECS["specs"]]}, id="in specs"),
]
"""The last one is searched two days in a piece: 2,500 exclusions."""


def a_trigger(document: dict[str, Any]) -> TimeTrigger:
    trigger: TimeTrigger = ANY.validate_python(document)
    return trigger


def pieces(trigger: TimeTrigger, after: Instant, steps: Callable[[], int]) -> list[Next]:
    """Searches on from each bound, with so many steps each time, up to an instant or to the end of all."""
    found = [trigger.seek(after, "n/a", Search(steps()))]
    while found[-1].is_bound:
        at = found[-1].at
        assert at is not None
        found.append(trigger.seek(at - 1, "n/a", Search(steps())))
    return found


@settings(max_examples=examples(150))
@given(
    trigger=st.one_of(NAMING, UNION),
    exclude=st.lists(EXCLUDED, min_size=1, max_size=3),
    begin=st.sampled_from(["2026-03-27T11:17:00Z", "2026-10-24T23:59:00Z", "2026-06-26T00:00:00Z"]),
    steps=st.lists(st.integers(1, 60), min_size=1, max_size=5),
)
def test_given_a_search_that_is_cut_anywhere_then_it_finds_what_an_uncut_one_finds(
    trigger: dict[str, Any], exclude: list[dict[str, Any]], begin: str, steps: list[int]
) -> None:
    """Each piece comes further, and the instants between two fires are none."""
    parsed = a_trigger({**trigger, "exclude": exclude, "end": "2026-12-01T00:00:00Z"})
    after: Instant | None = parse_instant(begin)
    taken = count()
    for _ in range(5):
        if after is None:
            return
        expected = parsed.next_after(after, "n/a")
        found = pieces(parsed, after, lambda: steps[next(taken) % len(steps)])
        assert found[-1].at == expected
        bounds = [each.at for each in found[:-1]]
        assert bounds == sorted({each for each in bounds if each is not None})
        assert all(after < each and (expected is None or each <= expected) for each in bounds if each is not None)
        after = expected


@settings(max_examples=examples(60))
@given(trigger=st.one_of(NAMING, UNION), exclude=st.lists(EXCLUDED, min_size=1, max_size=3), steps=st.integers(1, 40))
def test_given_what_was_searched_forward_then_the_interval_is_that_of_a_search_all_the_way_back(
    trigger: dict[str, Any], exclude: list[dict[str, Any]], steps: int
) -> None:
    """Also from an instant that is none of the trigger's: an activation."""
    parsed = a_trigger({**trigger, "exclude": exclude, "end": "2026-05-01T00:00:00Z"})
    since = parse_instant("2026-03-27T11:17:00.123Z")
    for _ in range(3):
        nominal = pieces(parsed, since, lambda: steps)[-1].at
        if nominal is None:
            return
        assert parsed.interval(nominal, "n/a", since) == parsed.interval(nominal, "n/a")
        since = nominal


@pytest.mark.parametrize("document", ADVERSE)
def test_given_years_left_out_then_a_piece_takes_no_more_than_its_steps(
    document: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Review finding: such a search took 20 ms to 1 s of its shard's lane for each year, in one go."""
    trigger, spent = a_trigger(document), [0]
    takes = Search.takes

    def counting(search: Search, comparisons: int) -> bool:
        spent[0] += 1 + comparisons
        return takes(search, comparisons)

    monkeypatch.setattr(Search, "takes", counting)
    begin = "2028-12-20T00:00:00Z" if trigger.comparisons > 1_000 else "2026-01-01T00:00:00Z"
    following, most = Next(parse_instant(begin), is_bound=True), 0
    bounds: list[Instant] = []
    while following.is_bound and following.at is not None:
        bounds.append(following.at)
        spent[0] = 0
        following = trigger.seek(following.at - 1, "n/a", Search.of_a_decision())
        most = max(most, spent[0])
    assert following.at is not None
    assert following.at - parse_instant("2029-01-01T00:00:00Z") < DAY
    # The step in which they are used up is the last one.
    assert STEPS_PER_DECISION / 2 < most <= STEPS_PER_DECISION + 2 * (1 + trigger.comparisons)
    assert len(bounds) > 3
    assert min(later - earlier for earlier, later in pairwise(bounds)) > DAY


BESIDE_DECADES = [
    {"type": "cron", "expression": "0 0 1 1 *", "zone": f"+{hour:02}:{minute}"}
    for hour in range(12)
    for minute in (15, 20, 30, 45)
]
DECADES = [{**YEARS, "expression": f"0 {minutes} * * * ? 1970-2026"} for minutes in ("0/2", "1/2")]
IN_A_SPEC = {"type": "times", "specs": [cron("* * * * *", *BESIDE_DECADES, *DECADES)]}


@pytest.mark.parametrize(
    "document", [pytest.param(IN_A_SPEC["specs"][0], id="alone"), pytest.param(IN_A_SPEC, id="in a spec")]
)
@pytest.mark.parametrize("forward", [True, False])
def test_given_a_specs_exclusions_then_each_that_is_looked_at_was_counted(
    document: dict[str, Any], forward: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Review finding: a union counted its specs alone, and 4.7 KB of a schedule held the shard writer for 10 s."""
    trigger, looked_at = a_trigger(document), [0]
    minutes_out = ExcludedCron.minutes_out

    def counting(exclusion: ExcludedCron, day: int) -> int:
        looked_at[0] += 1
        return minutes_out(exclusion, day)

    monkeypatch.setattr(ExcludedCron, "minutes_out", counting)
    search = Search(STEPS_PER_DECISION)
    if forward:
        assert trigger.seek(parse_instant("2020-01-01T00:00:00Z"), "n/a", search).is_bound
    else:
        assert trigger.last_before(parse_instant("2027-01-01T00:00:00Z"), "n/a", search) is None
    # An exclusion's own day, and the two local days that a day of UTC has a part in.
    assert STEPS_PER_DECISION / 2 < looked_at[0] < 3 * (STEPS_PER_DECISION + trigger.comparisons)


def test_given_steps_that_are_used_up_then_nothing_is_searched_and_no_instant_is_claimed() -> None:
    search = Search(0)
    assert a_trigger(cron("* * * * *")).seek(60_000, "n/a", search) == Next(60_001, is_bound=True, since=60_000)
    assert search.steps == 0


def test_given_the_programs_then_none_searches_without_a_bound() -> None:
    """`next_after` goes on for ever where nobody says how long it may; all that keeps others waiting asks `seek`."""
    sources = [path for place in SOURCES for path in place.rglob("*.py") if not UNBOUNDED & set(path.parts)]
    assert len(sources) > 200
    calls = (".next_after(", ".first_after_activation(")
    found = {path.name for path in sources for call in calls if call in path.read_text(encoding="utf-8")}
    assert found == {"schedule_validation.py"}, "an apply's check has steps of its own"
