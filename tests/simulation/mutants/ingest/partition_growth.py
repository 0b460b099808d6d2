"""Rules of a map that grows, or whose topic is made anew, while nodes run (docs/protocol.md), each switched off in the interleaving that
it is against.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from tests.simulation.faults.small_limits import HAND_OVER_MS
from tests.simulation.mutants.clauses.clause_mutant import dropped
from tests.simulation.mutants.ingest.sources import taking_all_of_that_name
from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import takes
from tests.support.builders import MINUTE, REQUESTS, REQUESTS_ID, SECOND, Doc, a_cancel, a_holding, a_send
from tests.support.harness.actor_harness import Bench
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.two_owners import GUARD_LAPSED, BenchPair, Beside
from tidegate_core.decisions import former_maps, partition_actor
from tidegate_core.decisions.delivery_plane.read_elsewhere import ReadElsewhere
from tidegate_core.decisions.guard import MapGuard
from tidegate_core.decisions.host import Host
from tidegate_core.decisions.inputs import TopicFacts
from tidegate_core.decisions.partition_actor import PartitionActor
from tidegate_core.decisions.topic_cursor import TopicCursor
from tidegate_core.effects import Effect, NotProduced, Produce
from tidegate_core.model.shards import message_shard
from tidegate_core.store import keys
from tidegate_core.store.keys import MAP_KEY
from tidegate_core.store.values import Transaction
from tidegate_core.transactions.map import ClusterMap, Cut, follow_map, map_of, put_first_map
from tidegate_memory.store import MemoryStore

SHARDS = 4
ANOTHER = "f" * 32
SECOND_OF_TWO = {
    "map_version": 2,
    "topic_partitions": 2,
    "topic_partition": 1,
    "former_maps": (Cut(1, 1, REQUESTS_ID),),
}
OF_THE_SECOND = next(name for name in map(str, range(100)) if message_shard("orders", None, name, SHARDS) % 2 == 1)
"""A message whose shard follows from topic partition 1 of 2."""
KEYED_OF_THE_SECOND = next(key for key in map(str, range(100)) if message_shard("orders", key, "", SHARDS) % 2 == 1)
"""Likewise, by its key."""

# -- bugs -----------------------------------------------------------------------------------------------------------------


def at_once(_: Any) -> Any:
    def nothing_is_carried(*_: Any) -> Any:
        yield from ()
        return {}

    return nothing_is_carried


def named_by_the_first_topic(original: Any) -> Any:
    def begin(cursor: TopicCursor, host: Host, topic: TopicFacts, topic_partition: int, *more: Any) -> None:
        original(cursor, host, topic, topic_partition, *more)
        holding = host.holding
        if topic.name == holding.requests.name and holding.former_maps:
            first = holding.former_maps[0].topic_id
            cursor.key = keys.topic_position(holding.cluster_id, first, topic_partition)

    return begin


def whatever_is_written(_: Any) -> Any:
    return lambda rows, origin: False


def of_the_map_before_alone(original: Any) -> Any:
    def positions(host: Host) -> Any:
        before = host.holding.former_maps[-1:]
        return {
            key: former for key, former in original(host).items() if former.place[0] in {cut.topic_id for cut in before}
        }

    return positions


def whatever_was_read(_: Any) -> Any:
    return lambda rows, timer: False


def unproven(original: Any) -> Any:
    return lambda cursor, may_carry=None: original(cursor)


# -- scenarios --------------------------------------------------------------------------------------------------------------


def a_pair() -> BenchPair:
    """The first one holds all under a map of one topic partition; the second one is to have the second of two."""
    return BenchPair(shards=SHARDS, others=SECOND_OF_TWO)


def the_first_one_of_two(pair: BenchPair) -> None:
    """The holder of before falls, and comes back under the new map."""
    pair.first._holding |= {**SECOND_OF_TWO, "topic_partition": 0}
    pair.first.crash()
    pair.join(pair.first)


def judged(pair: BenchPair, wanted: str) -> Iterable[str]:
    counts = Counter(pair.delivered())
    if not counts[wanted]:
        yield f"I1: {wanted} was not delivered"
    if counts[wanted] > 1:
        yield f"I8: {wanted} was delivered {counts[wanted]} times, without a crash in between"


def a_holder_of_the_old_map_goes_on_reading() -> Iterable[str]:
    """It writes the rows of a send whose shard has another owner by now, moves its position, and falls before it is sent."""
    pair = a_pair()
    pair.run(SECOND)
    pair.begin_second()
    pair.run(SECOND)
    pair.request(a_send(OF_THE_SECOND, after="30s"))
    pair.run(SECOND)
    the_first_one_of_two(pair)
    pair.run(MINUTE // 2 + 2 * HAND_OVER_MS)
    return judged(pair, OF_THE_SECOND)


def its_record_is_read_again_after_its_time() -> Iterable[str]:
    """Rows are written, the position is not moved; the next one who reads the record comes when the message is long due."""
    pair = a_pair()
    pair.run(SECOND)
    pair.first.hold_back(a_commit("cursor"))
    pair.request(a_send(OF_THE_SECOND, after="15s"))
    pair.take_over()
    pair.run(MINUTE // 2)
    the_first_one_of_two(pair)
    pair.run(MINUTE // 2)
    return judged(pair, OF_THE_SECOND)


def a_former_holder_raises_a_position_late() -> Iterable[str]:
    """Under the next map, which its rightful holder has not heard of; another one takes what has followed from it, and cancels."""
    pair = a_pair()
    pair.run(SECOND)
    pair.request(a_send("m-1", key=KEYED_OF_THE_SECOND, after="4s"))
    pair.run(SECOND)
    late = Beside(pair.first, "node-late", None, **{**SECOND_OF_TWO, "topic_partition": 0, "shards": SHARDS})
    late.is_member = False
    late.run()
    pair.begin_second()
    pair.run(SECOND)
    pair.request(a_cancel("c-1", key=KEYED_OF_THE_SECOND), 1)
    pair.run(MINUTE)
    if pair.delivered() and pair.status_of("c-1") == "cancelled":
        yield "I7: what was answered as cancelled was delivered"


def a_holder_has_not_read_the_map_for_long() -> Iterable[str]:
    """Its position is raised in its place; who takes what has followed from it cancels, and is believed."""
    pair, guard = a_pair(), MapGuard()
    guard.read(1, pair.first.now)

    def is_refused(effect: Effect) -> bool:
        return isinstance(effect, Produce) and effect.guarded and not guard.holds(1, pair.first.now)

    pair.first.answer_with(is_refused, NotProduced("guard", "the map was read too long ago"), GUARD_LAPSED)
    pair.run(SECOND)
    pair.request(a_send("m-1", key=KEYED_OF_THE_SECOND, after="20s"))
    pair.begin_second()
    pair.run(10 * SECOND)
    pair.request(a_cancel("c-1", key=KEYED_OF_THE_SECOND), 1)
    pair.run(MINUTE)
    if pair.status_of("c-1") == "cancelled" and pair.delivered():
        yield "I7: what was answered as cancelled was delivered"


def two_who_see_different_numbers() -> Iterable[str]:
    """One saw 3 topic partitions, the other one 4: both write the second map."""
    store = MemoryStore()
    first = ClusterMap.first(SHARDS, a_holding(topic_partitions=2).requests, "brokers")
    store.transact(put_first_map(first, "init"))
    writes: list[Transaction] = [follow_map(first.grown_to(number), f"to {number}") for number in (3, 4)]
    if [takes(store, write) for write in writes] != [True, False]:
        held = map_of(store.get([MAP_KEY])[MAP_KEY])
        yield f"I6: version {held.version} was of 3 topic partitions for some, and is of {held.topic_partitions} now"


def its_topic_is_made_anew_and_longer_than_before() -> Iterable[str]:
    """A client that reads on there hands out what lies behind the old position; under the next map all of it is read."""
    bench = Bench(shards=SHARDS)
    bench.run(SECOND)
    bench.request(_unnamed("old"))
    bench.run(5 * SECOND)
    bench.create_topic(REQUESTS, 1, ANOTHER)
    bench.log(REQUESTS, 0).clear()
    for name in ("first", "second"):
        bench.request(_unnamed(name))
    bench.run(5 * SECOND)
    another = TopicFacts(REQUESTS, ANOTHER, 1)
    bench._holding |= {"map_version": 2, "former_maps": (Cut(1, 1, REQUESTS_ID),), "requests": another}
    bench.crash()
    bench.run(MINUTE)
    counts = Counter(json.loads(value)["of"] for value in bench.delivered())
    for name in ("old", "first", "second"):
        if counts[name] != 1:
            yield f"I6: {name} was delivered {counts[name]} times"


def its_topic_is_made_anew_before_a_position_says_what_was_written() -> Iterable[str]:
    """Its sender has no answer, and asks again: the rows of the first time are there, and nobody will ever read that record."""
    bench = Bench(shards=SHARDS)
    bench.run(SECOND)
    bench.hold_back(a_commit("cursor"))
    bench.request(a_send("asked again", after="15s"))
    bench.run(SECOND)
    of_another_topic(bench, 2)
    bench.request(a_send("asked again", after="15s"))
    bench.run(MINUTE)
    if len(bench.delivered()) != 1:
        yield f"I8: a request that was repeated in another topic was delivered {len(bench.delivered())} times"


def its_topic_is_made_anew_twice() -> Iterable[str]:
    """What was not read of the first one stays gone when the second one has gone as well."""
    bench = Bench(shards=SHARDS)
    bench.run(SECOND)
    bench.hold_back(a_commit("cursor"))
    bench.request(a_send("gone", after="40s"))
    bench.run(SECOND)
    of_another_topic(bench, 2)
    bench.run(10 * SECOND)
    of_another_topic(bench, 3)
    bench.run(MINUTE)
    if bench.delivered():
        yield f"I6: {bench.delivered()} were sent, of records that nobody had read before their topic was gone"


def of_another_topic(bench: Bench, version: int) -> None:
    """The requests topic is made anew, and the holder falls and comes back under the map that follows it."""
    topic_id = f"{version:x}" * 32
    bench.create_topic(REQUESTS, 1, topic_id)
    bench.log(REQUESTS, 0).clear()
    before = Cut(version - 1, 1, bench._holding.get("requests", TopicFacts(REQUESTS, REQUESTS_ID, 1)).id)
    former = (*bench._holding.get("former_maps", ()), before)
    another = TopicFacts(REQUESTS, topic_id, 1)
    bench._holding |= {"map_version": version, "former_maps": former, "requests": another}
    bench.crash()


def _unnamed(name: str) -> Doc:
    return a_send(None, payload={"of": name}, after="1s")


def at_any_time(_holds: Any) -> Any:
    return lambda self, version, now: True


RULES_OF_GROWTH = (
    Mutant(
        "requests of another topic",
        "a request of the topic that was made anew is read under the old id, and once more under its own",
        breaks="I6",
        patches=(Patch(PartitionActor, "_take_records", taking_all_of_that_name),),
        scenario=its_topic_is_made_anew_and_longer_than_before,
    ),
    Mutant(
        "map not carried",
        "a holder of the older map writes rows, and moves its position, for a shard whose new owner has loaded its window",
        breaks="I1",
        patches=(Patch(partition_actor, "carry_over", at_once),),
        scenario=a_holder_of_the_old_map_goes_on_reading,
    ),
    Mutant(
        "a position raised unproven",
        "who was put out by the group has a position carry the next map, beside its holder, who has not heard of that and sends what was cancelled",
        breaks="I7",
        patches=(Patch(TopicCursor, "raise_epoch", unproven),),
        scenario=a_former_holder_raises_a_position_late,
    ),
    Mutant(
        "a map that is trusted for ever",
        "a holder that has not heard of the next map sends what the owner under that one has cancelled, or replaced",
        breaks="I7",
        patches=(Patch(MapGuard, "holds", at_any_time),),
        scenario=a_holder_has_not_read_the_map_for_long,
    ),
    Mutant(
        "rows of another map",
        "what a holder of the older map wrote is sent before its create is read again, and once more after that",
        breaks="I8",
        patches=(Patch(ReadElsewhere, "_is_unread", whatever_was_read),),
        scenario=its_record_is_read_again_after_its_time,
    ),
    Mutant(
        "one position for all topics",
        "a topic that was made anew is read from where the one before was left: what lies before that is read by nobody",
        breaks="I8",
        patches=(Patch(TopicCursor, "__init__", named_by_the_first_topic),),
        trap="requests_topic_made_anew",
        within=4,
    ),
    Mutant(
        "a gone record's rows",
        "a request that nobody has read before its topic was made anew is repeated, and its rows of before say that it is there",
        breaks="I8",
        patches=(Patch(ReadElsewhere, "is_gone", whatever_is_written),),
        scenario=its_topic_is_made_anew_before_a_position_says_what_was_written,
    ),
    Mutant(
        "topics of before forgotten",
        "what was not read of a topic is gone with it, and comes back once the topic that followed it is gone as well",
        breaks="I6",
        patches=(Patch(former_maps, "former_positions", of_the_map_before_alone),),
        scenario=its_topic_is_made_anew_twice,
    ),
    dropped(
        "map_is",
        "#version = :version_seen",
        "two nodes that see different numbers write one version twice, and hold the same shards under both",
        breaks="I6",
        scenario=two_who_see_different_numbers,
    ),
)
