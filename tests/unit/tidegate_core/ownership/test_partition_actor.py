"""Take-over and end of a holding: raise, acquire, read, serve, in that order and no other (DESIGN 3, protocol H7)."""

from __future__ import annotations

import pytest

from tests.support.builders import (
    EVENTS,
    MINUTE,
    RECEIPTS,
    REQUESTS,
    REQUESTS_ID,
    SECOND,
    a_cancel,
    a_request,
    a_send,
    a_spec,
    an_apply,
    an_event,
    every,
    on_data,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.two_owners import BenchPair, ConcurrentOwner
from tidegate_core.engine.actor_inputs import OffsetOutOfRange
from tidegate_core.language.values.derived_ids import message_shard
from tidegate_core.ownership.acquisition import ACQUIRED_TOGETHER
from tidegate_core.rows import keys
from tidegate_core.rows.effects import (
    Commit,
    Drained,
    Effect,
    EndOffsets,
    Items,
    ProveMembership,
    Read,
    ReadEndOffsets,
    ReadRange,
    StartReading,
    StopReading,
)
from tidegate_core.rows.store_operations import Key, Put
from tidegate_core.shard.map_transition import HAND_OVER_MS
from tidegate_core.writes.fencing import acquire_shard
from tidegate_core.writes.partition_map import Cut


def names(bench: ActorHarness) -> list[str]:
    """What the actor did, in words, leaving repeats out."""
    words: list[str] = []
    for effect in bench.asked:
        word = _word(effect)
        if word and (not words or words[-1] != word):
            words.append(word)
    return words


def _word(effect: Effect) -> str | None:
    match effect:
        case Commit(transaction):
            return transaction.name
        case ReadEndOffsets():
            return "ends"
        case ReadRange():
            return "recover"
        case StartReading():
            return "read the logs"
        case _:
            return None


def successor_of(bench: ActorHarness, owner: str = "node-x") -> ActorHarness:
    other = ActorHarness()
    other.store, other._logs, other.now = bench.store, bench._logs, bench.now
    other.new_actor(owner)
    return other


# -- order --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("again", [False, True], ids=["first", "successor"])
def test_given_a_take_over_then_its_order_is_raise_acquire_look_at_the_end_recover_serve(again: bool) -> None:
    bench = ActorHarness()
    bench.run()
    if again:
        bench.asked.clear()
        bench.crash()
        bench.run()
    of_requests = ["raise", "acquire", "ends", "recover", "read the logs"]
    assert names(bench) == [*of_requests, "ends", "raise", "read the logs"]  # And then those of events.
    assert bench.actor.is_serving


def test_given_a_slow_acquire_then_nothing_of_any_shard_is_read_before_all_are_fenced() -> None:
    bench = ActorHarness()
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "acquire")
    bench.run(SECOND)
    assert not [effect for effect in bench.asked if isinstance(effect, ReadRange | ReadEndOffsets | StartReading)]
    assert not bench.actor.is_serving
    bench.release()
    assert bench.actor.is_serving


def test_given_a_slow_raise_then_no_shard_is_acquired_before_the_position_of_the_requests_is_raised() -> None:
    bench = ActorHarness()
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "raise")
    bench.run(SECOND)
    assert bench.holds_something
    assert bench.commits("acquire") == []
    bench.release()
    assert bench.actor.is_serving


def test_given_many_shards_then_a_few_are_acquired_at_once() -> None:
    bench = ActorHarness(shards=40)
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "acquire", times=1_000)
    bench.run(SECOND)
    assert len(bench.commits("acquire")) == ACQUIRED_TOGETHER
    for _ in range(3):
        bench.release()
    bench.run()
    assert len(bench.commits("acquire")) == 40
    assert bench.actor.is_serving
    assert len({str(row["pk"]) for row in bench.rows("LEASE")}) == 40


@pytest.mark.parametrize(("number", "shards", "events"), [(0, [0, 2], [0, 2, 4]), (1, [1, 3], [1, 3])])
def test_given_one_of_two_topic_partitions_then_shards_and_event_positions_follow_from_it(
    number: int, shards: list[int], events: list[int]
) -> None:
    bench = ActorHarness(topic_partitions=2, topic_partition=number, event_topic_partitions=5)
    bench.run()
    assert sorted(bench.actor.shards) == shards
    read = {(effect.topic, effect.topic_partition) for effect in bench.all_asked(StartReading)}
    assert read == {(REQUESTS, number), *((EVENTS, each) for each in events)}


def test_given_a_position_then_the_logs_are_read_from_there() -> None:
    bench = ActorHarness()
    bench.run()
    assert {effect.offset for effect in bench.all_asked(StartReading)} == {None}
    for number in range(3):
        bench.request(a_send(f"m-{number}"))
    bench.crash()
    bench.run()
    offsets = {(effect.topic, effect.offset) for effect in bench.all_asked(StartReading)[2:]}
    assert offsets == {(REQUESTS, 3), (EVENTS, None)}


def test_given_lost_answers_during_the_take_over_then_it_succeeds_all_the_same() -> None:
    bench = ActorHarness()
    bench.lose_answer_of(lambda effect: isinstance(effect, Commit), times=6)
    bench.lose(lambda effect: isinstance(effect, Read | ReadRange), times=6)
    bench.run(MINUTE)
    assert bench.actor.is_serving
    assert bench.notices("fenced") == []


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        pytest.param(EndOffsets({f"{REQUESTS_ID}/1": 5}), 4, id="of others of its topic"),
        pytest.param(EndOffsets({f"{'c' * 32}/0": 5}), 1, id="of another topic"),
        pytest.param(EndOffsets({}), 1, id="of none"),
    ],
)
def test_given_brokers_that_do_not_tell_where_the_log_ends_then_it_is_served_and_they_are_asked_until_they_do(
    told: EndOffsets, asked: int
) -> None:
    bench = ActorHarness()
    bench.answer_with(lambda effect: effect == ReadEndOffsets(REQUESTS), told, times=3)
    bench.run(500)
    assert bench.actor.is_serving
    bench.request(a_send(None, after="1h"))
    assert looked_up(bench) == (asked > 1)
    bench.run(MINUTE)
    assert bench.all_asked(ReadEndOffsets).count(ReadEndOffsets(REQUESTS)) == asked
    before = len(bench.asked)
    bench.request(a_send(None, after="1h"))
    assert not looked_up(bench, before)


def looked_up(bench: ActorHarness, since: int = 0) -> bool:
    """Whether somebody asked what there is of a message; of one without id or key only what is read again has to be asked for."""
    reads = [each for each in bench.asked[since:] if isinstance(each, Read)]
    return any(key.sk.startswith("M#") for each in reads for key in each.keys)


# -- others -------------------------------------------------------------------------------------------------------------------


def test_given_a_successor_then_the_former_holder_changes_nothing_any_more() -> None:
    """I5."""
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("1m"))))
    other = successor_of(bench)
    other.run()
    bench.is_member = False
    before = bench.rows("J#") + bench.rows("S#")
    bench.run(2 * MINUTE)
    assert bench.rows("J#") + bench.rows("S#") == before
    assert bench.actor.has_ended
    other.run(2 * MINUTE)
    assert [entry[0] for entry in other.ledger()] == ["launched", "launched"]


@pytest.mark.parametrize("holds", [False, None, True])
def test_given_a_fence_then_membership_decides_what_follows(holds: bool | None) -> None:
    """H7: a member starts again from the first step, one that is not one ends, one that cannot know asks again."""
    bench = ActorHarness()
    bench.run(SECOND)
    successor_of(bench).run()
    bench.is_member = holds
    bench.asked.clear()
    bench.request(a_send("m-1"))
    assert bench.all_asked(ProveMembership) == []
    bench.run(10 * SECOND)
    proofs = len(bench.all_asked(ProveMembership))
    assert {StopReading(REQUESTS, 0), StopReading(EVENTS, 0)} <= set(bench.all_asked(StopReading))
    if holds is False:
        assert bench.actor.has_ended
        assert len(bench.notices("not_a_member")) == proofs == 1
    elif holds is None:
        assert not bench.actor.has_ended
        assert not bench.actor.is_serving
        assert proofs > 3
    else:
        assert bench.actor.is_serving
        assert proofs == 2, "before the first step, and once the shards are fenced"
        bench.run(20 * SECOND)
        assert len(bench.on("out")) == 1


@pytest.mark.parametrize("holds", [False, None])
def test_given_no_proof_of_membership_after_the_fence_then_nothing_is_read_or_answered(holds: bool | None) -> None:
    """I7: frozen since it was given its share, it wakes up when another one has it and sends."""
    bench = ActorHarness()
    bench.is_member = holds
    bench.request(a_request("suspend"))
    bench.run(5 * SECOND)
    assert len(bench.commits("acquire")) == 4
    assert bench.all_asked(StartReading) == []
    assert bench.on(RECEIPTS) == []
    assert bench.actor.has_ended is (holds is False)
    bench.is_member = True
    bench.run(5 * SECOND)
    assert bench.actor.is_serving is (holds is None)


def test_given_a_late_raise_by_a_former_holder_then_the_rightful_one_comes_back() -> None:
    """H7, the interleaving that the simulation found: the old owner's raise comes after the new owner serves."""
    bench = ActorHarness()
    bench.run(SECOND)
    rightful = successor_of(bench)
    rightful.run(SECOND)
    late = successor_of(rightful, "node-late")
    late.is_member = False
    late.run()
    rightful.request(a_send("m-1", after="1s"))
    rightful.run(MINUTE)
    assert rightful.actor.is_serving
    assert len(rightful.on("out")) == 1


def test_given_a_late_raise_under_the_next_map_then_nobody_takes_the_shards_of_the_rightful_one_who_goes_by_the_one_before() -> (
    None
):
    """Review: another holder saw the position carry the next map, took a shard that follows from it now, and answered `cancelled`; who had the
    position, a member that had not read the map yet, sent the message.
    """
    second_of_two = {
        "map_version": 2,
        "topic_partitions": 2,
        "topic_partition": 1,
        "former_maps": (Cut(1, 1, REQUESTS_ID),),
    }
    of_the_second = next(key for key in map(str, range(100)) if message_shard("orders", key, "", 4) % 2 == 1)
    pair = BenchPair(shards=4, others=second_of_two)
    pair.run(SECOND)
    pair.request(a_send("m-1", key=of_the_second, after="10s"))
    pair.run(SECOND)
    late = ConcurrentOwner(pair.first, "node-late", None, **{**second_of_two, "topic_partition": 0, "shards": 4})
    late.is_member = False
    late.run()
    assert late.actor.has_ended
    assert len(late.notices("not_a_member")) == 1
    pair.begin_second()
    pair.run(SECOND)
    pair.append(REQUESTS, 1, a_cancel("c-1", key=of_the_second))
    pair.run(10 * SECOND)
    assert pair.delivered() == ["m-1"]
    assert pair.status_of("c-1") is None, (
        "it is answered by who has the shard once its holder of before has handed over, or is fenced"
    )
    pair.run(2 * HAND_OVER_MS)
    assert pair.status_of("c-1") == "too_late"


@pytest.mark.parametrize("what", ["TP", "LEASE"])
def test_given_a_newer_map_then_a_holder_of_the_older_one_does_not_serve(what: str) -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    for row in bench.rows(what):
        bench.store.write([Put(Key(str(row["pk"]), str(row["sk"])), {**row, "map": 2})])
    bench.crash()
    bench.is_member = False
    bench.run(10 * SECOND)
    assert not bench.actor.is_serving
    assert bench.actor.has_ended
    assert len(bench.commits("acquire")) == 4


# -- the end --------------------------------------------------------------------------------------------------------------------


def test_given_a_drain_then_reading_stops_first_and_drained_comes_last() -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(a_send("m-1", after="1s"))
    bench.run(2 * SECOND)
    bench.asked.clear()
    bench.drain()
    bench.run(SECOND)
    assert isinstance(bench.asked[0], StopReading)
    assert isinstance(bench.asked[-1], Drained)
    assert len(bench.commits("checkpoint")) == 1
    assert bench.actor.has_ended


def test_given_a_transaction_under_way_then_a_drain_waits_for_it() -> None:
    """CD-109: no half launched job."""
    bench = ActorHarness()
    bench.run(SECOND)
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "control")
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.drain()
    bench.run(500)
    assert bench.all_asked(Drained) == []
    bench.release()
    bench.run(500)
    assert len(bench.all_asked(Drained)) == 1
    assert bench.state_of() is not None


def test_given_a_drain_during_the_take_over_then_nothing_is_begun() -> None:
    bench = ActorHarness()
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "acquire", times=4)
    bench.run()
    bench.drain()
    bench.release()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    assert bench.all_asked(StartReading) == []
    assert bench.actor.has_ended


def test_given_a_drain_while_one_shard_is_served_and_another_is_not_then_the_ones_transaction_is_waited_for() -> None:
    """Found beside seed 29003670: before all shards of a topic partition were served none of them was told."""
    bench = ActorHarness(shards=2)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("10s"))))
    (state,) = bench.rows("S#")
    bench.crash()
    bench.hold_back(
        lambda effect: isinstance(effect, ReadRange) and effect.range.low == "J#" and effect.range.pk != state["pk"],
        times=1_000,
    )
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "fire")
    bench.run(15 * SECOND)
    assert not bench.actor.is_serving
    bench.drain()
    bench.run(500)
    assert bench.all_asked(Drained) == []
    bench.as_usual()
    fires = len(bench.commits("fire"))
    bench.run(15 * SECOND)
    assert len(bench.all_asked(Drained)) == 1
    assert len(bench.commits("fire")) == fires == 1


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_given_a_fence_while_draining_then_it_is_over() -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "control")
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    successor_of(bench).run()
    bench.asked.clear()
    bench.drain()
    bench.release()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    assert bench.actor.has_ended
    assert bench.all_asked(ProveMembership) == []


def test_given_a_position_that_the_log_no_longer_has_then_it_is_said_and_nothing_jumps() -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    before = bench.rows("TP")
    bench.give(OffsetOutOfRange(REQUESTS, 0, 7))
    assert [dict(notice.fields) for notice in bench.notices("position_gone")] == [
        {"topic": REQUESTS, "topic_partition": 0, "offset": 7}
    ]
    assert bench.rows("TP") == before


def test_given_a_clock_that_goes_back_then_the_actors_does_not() -> None:
    bench = ActorHarness(behaviour=Behaviour(runs_for=10))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("10s"))))
    bench.run(15 * SECOND)
    bench.now -= 10 * SECOND
    bench.run(30 * SECOND)
    nominals = [entry[2] for entry in bench.ledger()]
    assert len(nominals) == len(set(nominals))


def test_given_a_life_with_everything_then_the_successor_goes_on_with_all_of_it() -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(an_apply(a_spec("timed", every("1m"))))
    bench.request(an_apply(a_spec("data", on_data(count=2))))
    bench.request(a_send("m-1", after="90s"))
    bench.event(an_event("d1"))
    bench.crash()
    bench.run(SECOND)
    bench.event(an_event("d2"))
    bench.request(a_request("trigger", "timed"))
    bench.run(2 * MINUTE)
    assert sorted(entry[1] for entry in bench.ledger()) == ["data", "timed", "timed", "timed"]
    assert len(bench.on("out")) == 1


def test_given_a_holder_that_comes_between_the_reads_of_lease_and_position_then_the_former_one_is_fenced() -> None:
    """One read of two items is no snapshot: the epoch of the other's position is none to write under (I5)."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.new_actor("node-2")
    taken: list[Effect] = []

    def reads_what_it_acquired(effect: Effect) -> bool:
        mine = isinstance(effect, Read) and keys.progress(0) in effect.keys and len(bench.commits("acquire")) == 2
        if mine and not taken:
            taken.append(effect)
            lease, progress = (bench.store.peek(key) for key in (keys.lease(0), keys.progress(0)))
            assert lease is not None
            assert progress is not None
            bench.transact(acquire_shard(0, lease, progress, 1, 9, "node-3", "between"))
            newer = bench.store.peek(keys.progress(0))
            assert newer is not None
            bench.answer_with(lambda each: each is effect, Items({keys.lease(0): lease, keys.progress(0): newer}))
        return False

    bench.answer_with(reads_what_it_acquired, Items({}))
    bench.is_member = False
    bench.run(5 * SECOND)
    assert taken != []
    assert len(bench.notices("fenced")) == 1
    assert bench.actor.has_ended
