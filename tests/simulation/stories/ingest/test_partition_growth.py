"""The requests topic grows, or is deleted and created again, while nodes run (docs/internals/protocol.md)."""

from __future__ import annotations

import json
from collections import Counter

from tests.simulation.faults.small_limits import HAND_OVER_MS
from tests.simulation.stories.stage import takes
from tests.support.builders import MINUTE, REQUESTS, REQUESTS_ID, SECOND, Doc, a_cancel, a_holding, a_send
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.recreated_topic import recreate_requests_topic
from tests.support.harness.two_owners import GUARD_LAPSED, BenchPair
from tidegate_core.engine.actor_inputs import TopicFacts
from tidegate_core.engine.membership_lease import MapLease
from tidegate_core.language.values.derived_ids import message_shard
from tidegate_core.rows.effects import Effect, NotProduced, Produce
from tidegate_core.rows.store_operations import Transaction
from tidegate_core.writes.partition_map import ClusterMap, Cut, follow_map, put_first_map
from tidegate_memory.store import MemoryStore

SHARDS = 4
ANOTHER = "f" * 32
SECOND_OF_TWO = {
    "map_version": 2,
    "topic_partitions": 2,
    "topic_partition": 1,
    "former_maps": (Cut(1, 1, REQUESTS_ID),),
}
NAME_OF_THE_SECOND = next(name for name in map(str, range(100)) if message_shard("orders", None, name, SHARDS) % 2 == 1)
"""A message without a key whose shard follows from topic partition 1 of 2."""
KEY_OF_THE_SECOND = next(key for key in map(str, range(100)) if message_shard("orders", key, "", SHARDS) % 2 == 1)


def a_pair() -> BenchPair:
    """The first holder has everything under a map of one topic partition; the second one gets topic partition 1 of two."""
    return BenchPair(shards=SHARDS, others=SECOND_OF_TWO)


def restart_under_the_new_map(pair: BenchPair) -> None:
    """The first holder crashes, and comes back with topic partition 0 of two."""
    pair.first._holding |= {**SECOND_OF_TWO, "topic_partition": 0}
    pair.first.crash()
    pair.join(pair.first)


def test_given_a_grown_map_when_a_holder_of_the_old_one_reads_on_then_its_message_is_delivered() -> None:
    """It writes the rows of a send for a shard of another owner, moves its position, and crashes before the send is due."""
    pair = a_pair()
    pair.run(SECOND)
    pair.begin_second()
    pair.run(SECOND)
    pair.request(a_send(NAME_OF_THE_SECOND, after="30s"))
    pair.run(SECOND)
    restart_under_the_new_map(pair)
    pair.run(MINUTE // 2 + 2 * HAND_OVER_MS)
    assert NAME_OF_THE_SECOND in pair.delivered(), "I1: the message was not delivered"


def test_given_rows_of_the_old_map_when_their_record_is_read_again_after_its_time_then_it_is_sent_once() -> None:
    """The rows are written, the position is not moved, and the next reader of the record comes long after the message is due."""
    pair = a_pair()
    pair.run(SECOND)
    pair.first.hold_back(a_commit("cursor"))
    pair.request(a_send(NAME_OF_THE_SECOND, after="15s"))
    pair.take_over()
    pair.run(MINUTE // 2)
    restart_under_the_new_map(pair)
    pair.run(MINUTE // 2)
    assert pair.delivered() == [NAME_OF_THE_SECOND], "I8: the message was not delivered exactly once"


def test_given_a_holder_that_has_not_read_the_map_for_long_then_it_sends_no_cancelled_message() -> None:
    """Another node raises its position in its place, and the owner that takes the shard under the next map cancels."""
    pair, guard = a_pair(), MapLease()
    guard.read(1, pair.first.now)

    def is_refused(effect: Effect) -> bool:
        return isinstance(effect, Produce) and effect.guarded and not guard.holds(1, pair.first.now)

    pair.first.answer_with(is_refused, NotProduced("guard", "the map was read too long ago"), GUARD_LAPSED)
    pair.run(SECOND)
    pair.request(a_send("m-1", key=KEY_OF_THE_SECOND, after="20s"))
    pair.begin_second()
    pair.run(10 * SECOND)
    pair.request(a_cancel("c-1", key=KEY_OF_THE_SECOND), 1)
    pair.run(MINUTE)
    assert pair.status_of("c-1") == "cancelled"
    assert not pair.delivered(), "I7: what was answered as cancelled was delivered"


def test_given_two_nodes_that_see_different_numbers_then_one_of_them_writes_the_second_map() -> None:
    store = MemoryStore()
    first = ClusterMap.first(SHARDS, a_holding(topic_partitions=2).requests, "brokers")
    store.transact(put_first_map(first, "init"))
    writes: list[Transaction] = [follow_map(first.grown_to(number), f"to {number}") for number in (3, 4)]
    assert [takes(store, write) for write in writes] == [True, False], "I6: one version of the map was written twice"


def test_given_a_requests_topic_that_is_created_again_and_longer_then_each_record_is_read_once() -> None:
    """The client reads on at the old position. Under the next map the whole topic is read."""
    bench = ActorHarness(shards=SHARDS)
    bench.run(SECOND)
    bench.request(unnamed("old"))
    bench.run(5 * SECOND)
    bench.create_topic(REQUESTS, 1, ANOTHER)
    bench.log(REQUESTS, 0).clear()
    for name in ("first", "second"):
        bench.request(unnamed(name))
    bench.run(5 * SECOND)
    another = TopicFacts(REQUESTS, ANOTHER, 1)
    bench._holding |= {"map_version": 2, "former_maps": (Cut(1, 1, REQUESTS_ID),), "requests": another}
    bench.crash()
    bench.run(MINUTE)
    counts = Counter(json.loads(value)["of"] for value in bench.delivered())
    assert counts == {"old": 1, "first": 1, "second": 1}, "I6: a request was not delivered exactly once"


def unnamed(name: str) -> Doc:
    return a_send(None, payload={"of": name}, after="1s")


def test_given_an_unread_request_when_its_topic_is_created_again_then_its_repeat_is_delivered_once() -> None:
    """The rows of the first request are written, its position is not moved, and nobody will ever read its record."""
    bench = ActorHarness(shards=SHARDS)
    bench.run(SECOND)
    bench.hold_back(a_commit("cursor"))
    bench.request(a_send("asked again", after="15s"))
    bench.run(SECOND)
    recreate_requests_topic(bench, 2)
    bench.request(a_send("asked again", after="15s"))
    bench.run(MINUTE)
    assert len(bench.delivered()) == 1, "I8: a request that was repeated in another topic was not delivered once"


def test_given_an_unread_request_when_its_topic_is_created_again_twice_then_it_stays_gone() -> None:
    bench = ActorHarness(shards=SHARDS)
    bench.run(SECOND)
    bench.hold_back(a_commit("cursor"))
    bench.request(a_send("gone", after="40s"))
    bench.run(SECOND)
    recreate_requests_topic(bench, 2)
    bench.run(10 * SECOND)
    recreate_requests_topic(bench, 3)
    bench.run(MINUTE)
    assert bench.delivered() == [], "I6: a record was sent that nobody had read before its topic was gone"
