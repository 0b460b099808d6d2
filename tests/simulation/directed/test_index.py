"""Rows of the event index and their version become visible one after the other; the reader is another node (DESIGN 7, I3)."""

from __future__ import annotations

import pytest

from tests.support.builders import SECOND, a_request, a_spec, an_apply, an_event, on_data
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.effect_matchers import Match, a_batch, a_commit
from tests.support.harness.two_owners import BenchPair
from tidegate_core.language.values.derived_ids import schedule_shard

SHARDS = 4
OTHERS = 1
"""The topic partition that the second node holds: its events are matched there."""


def two_nodes() -> BenchPair:
    """Each holds one of two topic partitions, and both serve."""
    pair = BenchPair(
        shards=SHARDS, topic_partitions=2, others={"topic_partition": OTHERS}, behaviour=Behaviour(starts_after=None)
    )
    pair.run(SECOND)
    pair.begin_second()
    pair.run(SECOND)
    return pair


def of_the_first_node() -> str:
    """A schedule whose owner is the first node."""
    return next(name for name in map(str, range(100)) if schedule_shard("flights", name, SHARDS) % 2 != OTHERS)


@pytest.mark.parametrize(
    "held",
    [
        pytest.param(a_batch("index"), id="rows"),
        pytest.param(a_commit("raise_index"), id="version"),
        pytest.param(a_batch("vector"), id="end offsets"),
    ],
)
def test_given_a_moment_between_rows_version_and_receipt_then_what_comes_after_the_receipt_counts(held: Match) -> None:
    """Another node that looks in that moment keeps what it saw until the version moves: rows first, then their version,
    then the receipt, or an event produced after the receipt would be matched without the schedule.
    """
    pair, name = two_nodes(), of_the_first_node()
    # The other node has the index in its cache.
    pair.event(an_event("before"), OTHERS)
    pair.first.hold_back(held)
    pair.request(an_apply(a_spec(name, on_data(count=100))))
    assert pair.first.holds_something
    assert pair.status_of(f"apply-{name}") is None, "not before all of it is there"
    pair.event(an_event("meanwhile"), OTHERS)

    pair.first.release()
    pair.run(SECOND)
    assert pair.status_of(f"apply-{name}") == "accepted"
    heard = sum(sum(row["counts"]) for row in pair.first.rows("E#"))  # type: ignore[arg-type, misc]  # a list of numbers
    pair.event(an_event("after"), OTHERS)
    pair.run(15 * SECOND)  # The poke goes to the other process; a sweep does without.
    assert [evidence["counts"] for evidence in pair.first.rows("E#")] == [[heard + 1]], "I3: the event counts once"


def test_given_rows_without_a_version_from_an_owner_that_fell_then_its_successor_raises_it_before_it_answers() -> None:
    """Whoever answers from what a predecessor left first raises the versions: the rows may be there unseen."""
    pair, name = two_nodes(), of_the_first_node()
    pair.event(an_event("before"), OTHERS)
    pair.first.hold_back(a_commit("raise_index"))
    pair.request(an_apply(a_spec(name, on_data(count=100))))
    assert pair.first.rows("data/")
    pair.event(an_event("meanwhile"), OTHERS)
    pair.first.crash()
    pair.run(SECOND)
    assert pair.status_of(f"apply-{name}") == "accepted"
    pair.event(an_event("after"), OTHERS)
    pair.run(15 * SECOND)
    (evidence,) = pair.first.rows("E#")
    assert evidence["counts"] == [1]


def test_given_a_suspend_then_what_the_other_node_still_matches_does_not_count() -> None:
    """Index rows are removed behind the receipt; their matches are dropped by the owner, which knows the generation."""
    pair, name = two_nodes(), of_the_first_node()
    pair.request(an_apply(a_spec(name, on_data(count=100))))
    pair.run(SECOND)
    pair.event(an_event("d1"), OTHERS)
    pair.run(15 * SECOND)
    pair.first.hold_back(a_commit("raise_index"))
    pair.request(a_request("suspend", name))
    pair.run(SECOND)
    assert pair.first.holds_something
    pair.event(an_event("d2"), OTHERS)
    pair.run(15 * SECOND)
    pair.first.release()
    pair.run(15 * SECOND)
    assert pair.status_of(f"suspend-{name}") == "accepted"
    assert pair.first.rows("I#") == []
    assert pair.first.rows("E#") == [], "what was counted before is given up, and nothing is counted after"


@pytest.mark.parametrize("what", ["suspend", "delete"])
def test_given_an_event_after_the_last_listener_left_then_its_repeat_counts_for_who_listens_again(what: str) -> None:
    """Found in review: the other node went on with rows that were gone, and noted the event's id, so that its repeat was one for a day."""
    pair, name = two_nodes(), of_the_first_node()
    pair.request(an_apply(a_spec(name, on_data(count=100))))
    pair.run(SECOND)
    pair.event(an_event("before"), OTHERS)
    pair.run(15 * SECOND)
    pair.request(a_request(what, name))
    pair.run(15 * SECOND)
    pair.event(an_event("d1", event_id="landed-1"), OTHERS)
    pair.run(15 * SECOND)

    pair.request(
        {**an_apply(a_spec(name, on_data(count=100))), "id": "again"} if what == "delete" else a_request("resume", name)
    )
    pair.run(15 * SECOND)
    pair.event(an_event("d1", event_id="landed-1"), OTHERS)
    pair.run(15 * SECOND)
    (evidence,) = pair.first.rows("E#")
    assert evidence["counts"] == [1]


def test_given_an_owner_that_fell_as_it_left_the_index_then_its_successor_leaves_it_whole() -> None:
    pair, name = two_nodes(), of_the_first_node()
    pair.request(an_apply(a_spec(name, on_data(count=100))))
    pair.run(SECOND)
    pair.event(an_event("before"), OTHERS)
    pair.first.hold_back(a_commit("raise_index"))
    pair.request(a_request("delete", name))
    pair.run(SECOND)
    pair.first.crash()
    pair.run(15 * SECOND)
    assert pair.first.rows("data/") == []
    pair.event(an_event("d1", event_id="landed-1"), OTHERS)
    pair.run(15 * SECOND)
    pair.request({**an_apply(a_spec(name, on_data(count=100))), "id": "again"})
    pair.run(15 * SECOND)
    pair.event(an_event("d1", event_id="landed-1"), OTHERS)
    pair.run(15 * SECOND)
    (evidence,) = pair.first.rows("E#")
    assert evidence["counts"] == [1]


@pytest.mark.parametrize("what", ["suspend", "delete"])
def test_given_an_owner_that_has_not_left_the_index_then_nothing_stands_there_that_the_api_answers_from(
    what: str,
) -> None:
    """Found in review: whoever had that answer could announce an event that the other node still matched, with the id of which nobody counted."""
    pair, name = two_nodes(), of_the_first_node()
    pair.request(an_apply(a_spec(name, on_data(count=100))))
    pair.run(SECOND)
    pair.first.hold_back(a_commit("raise_index"))
    pair.request(a_request(what, name))
    pair.run(5 * SECOND)
    assert pair.first.holds_something

    def settled() -> list[object]:
        return [row["settled"] for row in pair.first.rows("RQ#") if what in str(row["request_id"])]

    assert settled() == [False]
    pair.first.release()
    pair.run(SECOND)
    assert settled() == [True]
    assert pair.first.rows("data/") == []
