"""Creates that a successor reads again: what is written already is found, and each message is sent once (DESIGN 5)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.stories.stage import comes_through_the_inbox
from tests.support.builders import MINUTE, REQUESTS, REQUESTS_ID, SECOND, a_cancel, a_send
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.sending_bench import an_inboxed, messages, timers
from tidegate_core.engine.actor_inputs import RecordsArrived, Woken
from tidegate_core.rows.effects import Commit, EndOffsets, ReadEndOffsets
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.message import Message
from tidegate_core.rows.store_operations import Delete, Key, Put


def crashed_with_rows_written(after: str) -> ActorHarness:
    """Rows are written, the position is not: the successor replays the create."""
    bench = ActorHarness()
    bench.run(SECOND)
    bench.lose(lambda effect: getattr(getattr(effect, "transaction", None), "name", "") == "cursor", times=1_000)
    bench.request(a_send("m-1", after=after))
    assert len(messages(bench)) == 1
    bench._rules.clear()
    return bench


def test_given_a_replay_within_time_then_the_slot_stays_and_nothing_is_doubled() -> None:
    bench = crashed_with_rows_written("10s")
    before = timers(bench)
    bench.crash()
    bench.run(SECOND)
    assert timers(bench) == before
    bench.run(20 * SECOND)
    assert len(bench.on("out")) == 1


def test_given_a_replay_after_its_time_then_it_is_delivered_late_and_once() -> None:
    bench = crashed_with_rows_written("2s")
    bench.crash()
    bench.now += MINUTE
    bench.run(10 * SECOND)
    assert len(bench.on("out")) == 1


def test_given_a_replay_whose_slot_was_passed_meanwhile_then_it_moves_to_a_new_one() -> None:
    """The successor delivered others and checkpointed beyond the slot before the replayed record came."""
    bench = crashed_with_rows_written("2s")
    (old,) = timers(bench)
    shard = int(str(bench.rows("D#")[0]["pk"])[3:])
    bench.crash()
    log = bench._logs.pop((REQUESTS, 0))
    bench.run()
    (progress,) = [row for row in bench.rows("PROGRESS") if row["pk"] == f"SH#{shard:04d}"]
    plane = bench.actor.planes[shard]
    plane.checkpoints.promised = (old.slot + 5 * SECOND, "-", "")
    assert progress["fired_slot"] == 0
    bench._logs[(REQUESTS, 0)] = log
    bench.give(RecordsArrived(REQUESTS, 0, tuple(log), REQUESTS_ID))
    assert {timer.slot for timer in timers(bench)} == {old.slot, old.slot + 5 * SECOND + 1}
    bench.run(20 * SECOND)
    assert len(bench.on("out")) == 1


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("missing", ["D#", "M#"])
def test_given_half_of_a_batch_from_a_predecessor_then_its_replay_makes_it_whole_and_once(
    missing: str, others: int
) -> None:
    """A batch has no order, and its author may fall in the middle: the message is neither given up nor written twice."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    for _ in range(others):
        bench.request(a_send("m-0", after="4s"))  # Sent before the replay comes to the other one.
    row = an_inboxed(a_send("m-1", after="3s"), at=bench.now)
    bench.lose(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "inboxed", times=1_000)
    bench.store.write([Put(row.key(0), {**to_item(row, row.key(0)), "rev": 1})])
    bench.give(Woken(0))
    (message,) = [each for each in bench.rows("M#") if each["request_id"] == "m-1"]
    message_id = from_item(Message, message).id
    (gone,) = [each for each in bench.rows(missing) if f"#{message_id}#" in str(each["sk"])]
    bench.store.write([Delete(Key(str(gone["pk"]), str(gone["sk"])))])
    bench._rules.clear()
    bench.crash()
    bench.now += 5 * SECOND
    bench.run(20 * SECOND)
    assert sorted(str(sent.document["of"]) for sent in bench.on("out")) == ["m-0"] * others + ["m-1"]


def test_given_a_late_row_of_a_former_owner_at_another_slot_then_the_message_is_delivered_once() -> None:
    """Its batch landed after the create was replayed and written again."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m-1", after="5s"))
    (timer,) = timers(bench)
    late = replace(timer, slot=timer.slot + 7)
    bench.store.write([Put(late.key(0), to_item(late, late.key(0)))])
    bench.crash()
    bench.run(20 * SECOND)
    assert len(bench.on("out")) == 1


def test_given_rows_of_two_records_of_a_request_at_two_slots_then_the_message_is_delivered_once() -> None:
    """A former owner's late batch wrote what it had made of the second record over what was made of the first, which its
    successor is sending when it comes to the second one (seed 3 of black-outs).
    """
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    request = a_send("m-1", after="5s")
    bench.request(request)
    bench.lose(a_commit("cursor"), times=1_000)
    bench.request(request)
    (timer,) = timers(bench)
    (message,) = messages(bench)
    append_time, topic, topic_partition, _ = message.origin.split(".")
    origin = f"{append_time}.{topic}.{topic_partition}.{1:020}"
    late = replace(timer, slot=timer.slot + MINUTE, origin=origin)
    written = replace(message, slot=late.slot, nominal=late.slot, origin=origin)
    rows = [(row.key(0), to_item(row, row.key(0))) for row in (late, written)]
    bench.store.write([Put(key, item) for key, item in rows])
    bench._rules.clear()
    bench.crash()
    log = bench._logs.pop((REQUESTS, 0))
    bench.run(6 * SECOND)
    assert len(bench.on("out")) == 1
    bench._logs[(REQUESTS, 0)] = log
    bench.give(RecordsArrived(REQUESTS, 0, tuple(log), REQUESTS_ID))
    bench.run(2 * MINUTE)
    assert len(bench.on("out")) == 1
    assert timers(bench) == [timer]


def test_given_a_create_whose_position_is_not_durable_then_it_is_not_delivered_yet() -> None:
    """A row fires only after the position that contains its create is durable."""
    bench = crashed_with_rows_written("1s")
    bench.lose(lambda effect: getattr(getattr(effect, "transaction", None), "name", "") == "cursor", times=1_000)
    bench.run(10 * SECOND)
    assert bench.on("out") == []


@pytest.mark.parametrize("brokers_lag", [False, True])
def test_given_a_cancel_by_printed_id_of_a_create_without_an_id_then_its_replay_finds_it_cancelled(
    brokers_lag: bool,
) -> None:
    """Found in review: nobody looked for the guard of a create without an id, and what was cancelled was delivered; so it was where
    the brokers did not tell the successor of the topic partition yet, by which the topic had grown just before.
    """
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.hold_back(a_commit("cursor"), times=1_000)
    bench.request(a_send(None, after="30s"))
    bench.run(SECOND)
    (item,) = bench.rows("M#")
    printed = f"0000-{from_item(Message, item).id}"
    comes_through_the_inbox(bench, a_cancel(message_id=printed), bench.now)
    bench.give(Woken(0))
    bench.run(2 * SECOND)
    assert bench.status_of("c-1") == "cancelled"
    bench._rules.clear()
    bench.crash()
    if brokers_lag:
        bench.answer_with(
            lambda effect: effect == ReadEndOffsets(REQUESTS), EndOffsets({f"{REQUESTS_ID}/1": 0}), times=3
        )
    bench.run(5 * MINUTE)
    assert bench.on("out") == []
