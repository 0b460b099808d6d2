"""Records of recurring messages: how much of the past they hold."""

from __future__ import annotations

import json

import pytest

from tests.support.builders import NOW
from tidegate_core.rows.recurring_message import INTERVALS_BYTES_MAX, INTERVALS_KEPT, INTERVALS_MAX, Interval, Recurring

RECORD = Recurring(namespace="flights", name="ping")


def an_interval(generation: int, characters: int, *, closed: bool = True) -> Interval:
    made = Interval(
        generation=generation,
        version=1,
        incarnation="I1",
        origin="o",
        begin=NOW + generation,
        since=NOW + generation,
        trigger="x" * characters,
        size=4,
    )
    return made.closed(NOW + generation + 1, NOW + generation + 1) if closed else made


def kept(characters: int, number: int = 20) -> list[int]:
    """Generations that are left of so many, of which the last one is open."""
    spans = [an_interval(each, characters, closed=each < number - 1) for each in range(number)]
    return [span.generation for span in RECORD.with_spans(spans).spans()]


def test_given_small_intervals_then_the_latest_sixteen_are_kept() -> None:
    assert kept(50) == list(range(20 - INTERVALS_MAX, 20))


@pytest.mark.parametrize(("characters", "number"), [(50_000, 5), (90_000, 3), (140_000, 2)])
def test_given_large_intervals_then_as_many_of_the_latest_are_kept_as_an_item_has_room_for(
    characters: int, number: int
) -> None:
    assert kept(characters) == list(range(20 - number, 20))
    spans = [an_interval(each, characters) for each in range(20)]
    assert sum(len(text) for text in RECORD.with_spans(spans).intervals) <= INTERVALS_BYTES_MAX


def test_given_the_largest_intervals_then_the_open_one_and_the_one_before_it_are_kept_all_the_same() -> None:
    """Whoever owns the shard finds in the latter what it has to cancel."""
    assert kept(190_000) == list(range(20 - INTERVALS_KEPT, 20))


def test_given_an_interval_of_a_newer_release_then_what_this_one_does_not_know_is_overlooked() -> None:
    """As with an item's attributes (decision 26): a further member ended the topic partition of an older node."""
    text = json.dumps({**json.loads(an_interval(1, 50).text()), "later": 1})
    record = Recurring(namespace="flights", name="ping", intervals=(text,))
    assert record.spans() == [an_interval(1, 50)]
