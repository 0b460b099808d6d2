"""The fires of a recurring message as a pure function: nothing twice, nothing left out, alike for everybody (DESIGN 5)."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import HOUR, NOW, SECOND
from tidegate_core.language.triggers import AtTrigger, CronTrigger, EveryTrigger, TimesTrigger, TimeTrigger
from tidegate_core.language.triggers.search import STEPS_PER_SEARCH, Search
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.messages.recurring import fire_series
from tidegate_core.messages.recurring.fire_series import Covered, Fire, FireSeries, Gap, gaps_of
from tidegate_core.messages.wire.due_queue import NOWHERE, Place
from tidegate_core.messages.wire.payload_budget import LruCache
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.recurring_message import Interval

PERIOD = 10 * SECOND


def an_interval(trigger: TimeTrigger | None = None, **more: Any) -> Interval:
    times = trigger or EveryTrigger.model_validate({"period": "10s"})
    fields: dict[str, Any] = {"generation": 1, "version": 1, "incarnation": "I1", "origin": "o", "size": 4}
    return Interval(**{**fields, "begin": NOW, "since": NOW, "trigger": times.canonical_json(), **more})


def a_series(*outages: tuple[int, int], **more: Any) -> FireSeries:
    return FireSeries("flights", "ping", an_interval(**more), [Outage(begin, end) for begin, end in outages])


def first(series: FireSeries, number: int, behind: Place = NOWHERE) -> list[Fire]:
    found: list[Fire] = []
    while len(found) < number and (fire := series.after(behind)) is not None:
        found.append(fire)
        behind = fire.place
    return found


def test_given_no_outage_then_each_nominal_is_a_fire_at_its_own_slot() -> None:
    fires = first(a_series(), 3)
    assert [(fire.slot, fire.nominal, fire.covered) for fire in fires] == [
        (NOW + number * PERIOD, NOW + number * PERIOD, None) for number in range(3)
    ]


def test_given_a_place_within_a_slot_then_only_what_lies_behind_it_is_a_fire() -> None:
    """Two schedules share an instant, and the position stands between them."""
    (fire,) = first(a_series(), 1)
    slot, series_id, version = fire.place
    assert a_series().after((slot, series_id, "")) == fire
    following = a_series().after((slot, series_id, version))
    assert following is not None
    assert following.slot == NOW + PERIOD


def test_given_an_outage_then_one_fire_stands_for_all_in_it_at_the_place_of_the_first() -> None:
    fires = first(a_series((NOW + PERIOD - 1, NOW + 4 * PERIOD)), 3)
    assert [fire.slot for fire in fires] == [NOW, NOW + PERIOD, NOW + 4 * PERIOD]
    assert fires[1].nominal == NOW + 3 * PERIOD
    assert fires[1].covered == Covered(NOW + PERIOD, NOW + 3 * PERIOD, 3)


def test_given_an_outage_with_one_nominal_then_it_stands_for_itself() -> None:
    fires = first(a_series((NOW + 1, NOW + PERIOD + 1)), 3)
    assert [fire.covered for fire in fires] == [None, None, None]


def test_given_a_position_at_the_begin_of_an_outage_then_what_stands_there_is_no_part_of_it() -> None:
    """It may have been delivered: a fire at its place that stood for later ones would take these with it."""
    series = a_series((NOW + PERIOD, NOW + 4 * PERIOD))
    at_begin = first(series, 2)[1]
    assert at_begin.covered is None
    behind = series.after(at_begin.place)
    assert behind is not None
    assert behind.covered == Covered(NOW + 2 * PERIOD, NOW + 3 * PERIOD, 2)


def test_given_a_place_inside_of_an_outage_then_what_stood_for_it_is_done() -> None:
    """The checkpoint passed the first of the covered occurrences, hence the delivery that stood for all."""
    series = a_series((NOW, NOW + 5 * PERIOD))
    fire = series.after((NOW + 2 * PERIOD, "~", ""))
    assert fire is not None
    assert (fire.slot, fire.covered) == (NOW + 5 * PERIOD, None)


def test_given_all_as_catch_up_then_each_is_sent(  # SEMANTICS 3
) -> None:
    fires = first(a_series((NOW, NOW + 3 * PERIOD), catch_up="all"), 4)
    assert [fire.slot for fire in fires] == [NOW + number * PERIOD for number in range(4)]


def test_given_none_as_catch_up_then_the_span_is_skipped_and_counted() -> None:
    fires = first(a_series((NOW - 1, NOW + 3 * PERIOD), catch_up="none"), 2)
    assert [(fire.slot, fire.skipped, fire.count) for fire in fires] == [
        (NOW, True, 3),
        (NOW + 3 * PERIOD, False, 1),
    ]


def test_given_more_in_an_outage_than_one_delivery_stands_for_then_a_further_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fire_series, "COVERED_MAX", 4)
    fires = first(a_series((NOW - 1, NOW + 10 * PERIOD)), 4)
    assert [fire.count for fire in fires] == [4, 4, 2, 1]


def test_given_an_end_then_nothing_from_it_on_is_sent_and_what_was_due_is_cancelled() -> None:
    series = FireSeries("flights", "ping", an_interval().closed(NOW + 2 * PERIOD, NOW + 4 * PERIOD + 1))
    assert [fire.slot for fire in first(series, 9)] == [NOW, NOW + PERIOD]
    assert [fire.slot for fire in series.cancelled(NOWHERE)] == [NOW + number * PERIOD for number in (2, 3, 4)]
    assert list(series.cancelled((NOW + 4 * PERIOD, "~", ""))) == []


def test_given_an_end_before_an_undelivered_catch_up_then_all_of_it_is_cancelled() -> None:
    outage = Outage(NOW - 1, NOW + 3 * PERIOD)
    series = FireSeries("flights", "ping", an_interval().closed(NOW, NOW + 3 * PERIOD + 5), [outage])
    assert first(series, 1) == []
    assert [fire.count for fire in series.cancelled(NOWHERE)] == [3, 1]


def test_given_an_outage_after_the_end_then_what_was_sent_before_is_counted_one_by_one() -> None:
    outage = Outage(NOW, NOW + HOUR)
    series = FireSeries("flights", "ping", an_interval().closed(NOW + 3 * PERIOD, NOW + 3 * PERIOD), [outage])
    assert [fire.covered for fire in first(series, 9)] == [None, None, None]


def test_given_an_at_that_had_passed_then_it_fires_at_the_begin_with_its_own_nominal() -> None:
    at = AtTrigger.model_validate({"instant": "2025-11-01T00:00:00Z"})
    series = a_series(trigger=at, since=at.instant)
    assert [(fire.slot, fire.nominal) for fire in first(series, 9)] == [(NOW, at.instant)]
    assert series.last_before(NOW) is None
    assert series.last_before(NOW + 1) == at.instant


def test_given_decades_left_out_before_the_first_nominal_then_the_last_one_is_not_searched_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request waits for it in the shard writer: 47,000 comparisons, 0.1 s, to find that there is none."""
    out = {"type": "cron", "expression": "0 * * * * ? 1970-2025", "dialect": "quartz"}
    minutes = CronTrigger.model_validate({"expression": "* * * * *", "exclude": [out]})
    begin = parse_instant("2026-01-01T00:00:00Z")
    series = a_series(trigger=minutes, begin=begin, since=begin)
    searches: list[Search] = []

    def recorded(steps: int, floor: int = 0) -> Search:
        searches.append(Search(steps, floor=floor))
        return searches[-1]

    monkeypatch.setattr(fire_series, "Search", recorded)
    assert series.last_before(begin) is None
    assert series.last_before(begin + 1) == begin
    assert series.last_before(begin + 61 * SECOND) == begin + 60 * SECOND
    assert min(search.steps or 0 for search in searches) > STEPS_PER_SEARCH - 2_000


def test_given_an_at_that_had_passed_and_an_outage_over_its_begin_then_it_fires_once() -> None:
    at = AtTrigger.model_validate({"instant": "2025-11-01T00:00:00Z"})
    series = a_series((NOW - 5, NOW + 5), trigger=at, since=at.instant)
    assert [(fire.slot, fire.nominal) for fire in first(series, 9)] == [(NOW, at.instant)]


@pytest.mark.parametrize(("day", "fires"), [("2026-03-29", ["01:00"]), ("2026-10-25", ["00:30"])])
def test_given_a_clock_change_then_it_fires_by_the_rules_of_the_zone(day: str, fires: list[str]) -> None:
    """SEMANTICS 2: 02:30 does not exist in spring (fires at the first instant after the gap), and is there twice in autumn."""
    from tidegate_core.language.values.instants import format_instant, parse_instant

    cron = CronTrigger.model_validate({"expression": "30 2 * * *", "zone": "Europe/Berlin"})
    midnight = parse_instant(f"{day}T00:00:00Z") - 2 * HOUR
    series = a_series(trigger=cron, begin=midnight, since=midnight)
    assert [format_instant(fire.nominal)[11:16] for fire in first(series, 1)] == fires
    following = first(series, 2)[1].nominal
    assert following - midnight > 24 * HOUR


def test_given_two_schedules_with_the_same_nominal_then_places_and_ids_differ() -> None:
    one, other = (FireSeries("flights", name, an_interval(incarnation=name)).after(NOWHERE) for name in ("a", "b"))
    assert one is not None
    assert other is not None
    assert one.nominal == other.nominal
    assert one.place != other.place
    assert one.message_id != other.message_id


def test_given_another_life_of_the_name_then_its_ids_are_others() -> None:
    """Delete and create again: nothing of it is taken for a repeat."""
    one, other = (a_series(incarnation=life).after(NOWHERE) for life in ("I1", "I2"))
    assert one is not None
    assert other is not None
    assert one.message_id != other.message_id


spans = st.tuples(st.integers(0, 40), st.integers(1, 40)).map(lambda each: (NOW + each[0] * 7_000, each[1] * 7_000))
facts = st.lists(spans.map(lambda each: Outage(each[0], each[0] + each[1])), max_size=4)


@given(outages=facts)
def test_given_outages_that_overlap_then_gaps_do_not_and_cover_the_same(outages: list[Outage]) -> None:
    gaps = gaps_of(outages)
    assert all(earlier.end <= later.begin for earlier, later in pairwise(gaps))
    inside = {slot for gap in gaps for slot in range(*gap)}
    assert inside == {slot for outage in outages for slot in range(outage.begin + 1, outage.end)}


@given(outages=facts, more=spans)
def test_given_a_further_outage_then_earlier_ones_keep_what_is_theirs(
    outages: list[Outage], more: tuple[int, int]
) -> None:
    """What was delivered for one must not become a part of another."""
    later = gaps_of([*outages, Outage(more[0], more[0] + more[1])])
    assert set(gaps_of(outages)) <= set(later)


@given(outages=facts, period=st.integers(1, 90), looks=st.lists(st.integers(0, 600), max_size=5))
def test_given_any_outages_then_each_nominal_belongs_to_exactly_one_fire_from_wherever_it_is_looked_at(
    outages: list[Outage], period: int, looks: list[int]
) -> None:
    """A successor begins at any position, and sees the rest of the very same fires."""
    interval = an_interval(EveryTrigger.model_validate({"period": f"{period}s"}))
    series = FireSeries("flights", "ping", interval, outages)
    all_of_them = first(series, 60)
    counted = [each for fire in all_of_them for each in nominals(fire, period)]
    times = range(-(-NOW // (period * SECOND)) * period * SECOND, max(counted) + 1, period * SECOND)
    assert sorted(counted) == list(times)
    assert [fire.place for fire in all_of_them] == sorted(fire.place for fire in all_of_them)
    for look in looks:
        behind = (NOW + look * SECOND, "~", "")
        assert series.after(behind) == next((fire for fire in all_of_them if fire.place > behind), series.after(behind))


def nominals(fire: Fire, period: int) -> list[int]:
    covered = fire.covered or Covered(fire.nominal, fire.nominal, 1)
    found = list(range(covered.first, covered.last + 1, period * SECOND))
    if len(found) != covered.count:  # Another fact lies inside of this one: what is left of it is around that.
        raise AssertionError(f"{fire} stands for {covered.count} of {len(found)}")
    return found


def test_given_gaps_then_they_are_spans() -> None:
    assert gaps_of([Outage(10, 20), Outage(5, 30)]) == [Gap(6, 11), Gap(11, 20), Gap(20, 30)]


class Parsing:
    """Stands in for what parses triggers, and counts."""

    def __init__(self) -> None:
        self._real, self.parsed = fire_series._TRIGGERS, 0

    def validate_json(self, text: str) -> Any:
        self.parsed += 1
        return self._real.validate_json(text)


@pytest.fixture
def parsing(monkeypatch: pytest.MonkeyPatch) -> Parsing:
    counted = Parsing()
    monkeypatch.setattr(fire_series, "_TRIGGERS", counted)
    monkeypatch.setattr(fire_series, "_KEPT", LruCache[str, TimeTrigger](100_000))
    return counted


def with_exclusions(seconds: int, number: int) -> TimeTrigger:
    out = [{"type": "cron", "expression": "0 4 1 1 *"}] * min(number, 50)
    spec = {"type": "every", "period": f"{seconds}s", "exclude": out}
    return TimesTrigger.model_validate({"specs": [spec] * max(1, number // 50)})


def test_given_triggers_with_many_exclusions_then_no_more_of_them_are_kept_than_there_is_room_for(
    parsing: Parsing,
) -> None:
    """Ten thousand of the largest would be 8 GB."""
    for seconds in range(10, 16):
        assert a_series(trigger=with_exclusions(seconds, 400)).after(NOWHERE) is not None
    assert 0 < len(fire_series._KEPT) < 6
    assert fire_series._KEPT.size <= 100_000


def test_given_short_triggers_then_each_counts_as_much_as_one_of_some_exclusions(parsing: Parsing) -> None:
    """Each costs a place of its own: 10,000 of them are kept."""
    for seconds in range(10, 310):
        assert a_series(trigger=with_exclusions(seconds, 1)).after(NOWHERE) is not None
    assert len(fire_series._KEPT) == 100_000 // fire_series.TRIGGER_CHARACTERS_MIN
    assert fire_series.TRIGGERS_KEPT_CHARACTERS // fire_series.TRIGGER_CHARACTERS_MIN == 10_000


def test_given_a_long_trigger_then_no_fire_parses_it_anew(parsing: Parsing) -> None:
    """Of 24,000 characters it would cost 5 ms, and each fire asks several times."""
    assert len(first(a_series(trigger=with_exclusions(10, 400)), 20)) == 20
    assert parsing.parsed == 1


def test_given_an_interval_then_it_reads_back_from_its_text() -> None:
    import json

    for interval in (an_interval(), replace(an_interval(), catch_up="all").closed(NOW + 1, NOW + 2)):
        assert Interval(**json.loads(interval.text())) == interval
