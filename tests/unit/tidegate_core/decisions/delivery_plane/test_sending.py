"""Creates of messages: new, repeated, too old, or a replacement; what a replay finds (DESIGN 5, SEMANTICS 14)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from tidegate_core.decisions.delivery_plane import plane
from tidegate_core.decisions.inputs import Poked, RecordsArrived
from tidegate_core.effects import Commit, Drained, Effect, Produce, Read, ReadRange, Refused, Write
from tidegate_core.model.instants import format_instant
from tidegate_core.model.position import Position
from tidegate_core.model.shards import message_shard
from tidegate_core.records.codec import from_item, to_item
from tidegate_core.records.messages import FOR_EVER, Guard, Message, MessageTimer
from tidegate_core.records.run_plane import InboxRow
from tidegate_core.store.values import Delete, Item, Key, Put
from tidegate_testkit.bench import Bench
from tidegate_testkit.bench_matches import a_commit
from tidegate_testkit.builders import (
    MINUTE,
    REQUESTS,
    REQUESTS_ID,
    SECOND,
    Doc,
    a_cancel,
    a_recurring,
    a_send,
    an_apply,
    every,
)


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.run(SECOND)
    return made


def messages(bench: Bench) -> list[Message]:
    return [from_item(Message, row) for row in bench.rows("M#")]


def timers(bench: Bench) -> list[MessageTimer]:
    return [from_item(MessageTimer, row) for row in bench.rows("D#")]


def tally(bench: Bench, name: str) -> int:
    return sum(int(str(row[name])) for row in [*bench.rows("PROGRESS"), *bench.rows("Y#")])


def presences(bench: Bench) -> list[Item]:
    return bench.rows("K#")


def test_given_a_send_then_timer_and_message_row_are_written_once_without_a_look_up_for_nothing(bench: Bench) -> None:
    bench.request(a_send(None, after="10s"))
    (message,), (timer,) = messages(bench), timers(bench)
    assert message.nominal == timer.slot == bench.now + 10 * SECOND
    assert (timer.id, timer.version, timer.attempt) == (message.id, message.version, 1)
    assert presences(bench) == []
    assert [effect.batch.name for effect in bench.all_asked(Write)] == ["messages"]
    assert not [effect for effect in bench.all_asked(ReadRange) if effect.range.low.startswith("M#")]
    assert not [effect for effect in bench.all_asked(Read) if effect.keys[0].sk.startswith(("M#", "K#"))]


def test_given_a_send_under_a_key_then_a_presence_row_says_so_whatever_its_time(bench: Bench) -> None:
    """A late repeat of an older send must not make it expire before a newer one far ahead."""
    bench.request(a_send("m-1", key="k", after="3650d"))
    (far,) = presences(bench)
    bench.request(a_send("m-2", key="k", after="1s"))
    assert presences(bench) == [far]
    assert int(str(far["expires_at"])) > max(message.expires_at or 0 for message in messages(bench))


def test_given_the_time_then_the_payload_is_delivered_as_it_came_with_headers(bench: Bench) -> None:
    due = bench.now + 5 * SECOND
    bench.request(
        a_send("m-1", deliver_at=format_instant(due), payload={"a": [1, 2]}, headers={"k": "v"}, message_key="17")
    )
    bench.run(5 * SECOND - 1)
    assert bench.delivered() == []
    bench.run(1)
    (sent,) = bench.on("out")
    assert (sent.at, sent.key, sent.document) == (due, b"17", {"a": [1, 2]})
    assert {name: sent.headers[name] for name in ("k", "tidegate-attempt", "tidegate-nominal")} == {
        "k": "v",
        "tidegate-attempt": "1",
        "tidegate-nominal": format_instant(due),
    }


def test_given_a_time_in_the_past_then_it_is_delivered_at_once_and_keeps_its_nominal(bench: Bench) -> None:
    past = bench.now - 10 * MINUTE
    bench.request(a_send(deliver_at=format_instant(past)))
    (sent,) = bench.on("out")
    assert sent.headers["tidegate-nominal"] == format_instant(past)


def test_given_a_create_at_or_before_the_checkpoint_then_it_gets_the_next_free_slot(bench: Bench) -> None:
    bench.request(a_send("m-1", after="1s"))
    bench.run(10 * SECOND)
    (progress,) = [row for row in bench.rows("PROGRESS") if row["fired_slot"] != 0]
    fired_through = progress["fired_slot"]
    assert isinstance(fired_through, int)
    same_shard = next(
        name
        for name in (f"n-{number}" for number in range(100))
        if f"SH#{message_shard('orders', None, name, 4):04d}" == progress["pk"]
    )
    bench.request(a_send(same_shard, deliver_at=format_instant(fired_through - 10 * SECOND)))
    late = next(message for message in messages(bench) if message.request_id == same_shard)
    assert late.slot == fired_through + 1
    assert late.nominal == fired_through - 10 * SECOND
    assert len(bench.on("out")) == 2


@pytest.mark.parametrize("receipt", [True, False])
def test_given_an_accepted_send_then_a_receipt_comes_when_it_was_asked_for(bench: Bench, receipt: bool) -> None:
    bench.request(a_send("m-1", receipt=receipt))
    assert bench.status_of("m-1") == ("accepted" if receipt else None)


def test_given_a_delivery_then_its_id_is_the_one_that_the_receipt_named(bench: Bench) -> None:
    bench.request(a_send("m-1", key="k", receipt=True, after="1s"))
    bench.run(SECOND)
    assert bench.on("out")[0].headers["tidegate-id"] == bench.receipts()["m-1"]["id"]


# -- repeats ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("keyed", [{}, {"key": "k"}], ids=["by id", "by key"])
@pytest.mark.parametrize("delivered_before", [False, True])
@pytest.mark.parametrize("together", [False, True])
def test_given_the_same_request_id_again_then_it_is_unchanged_and_delivered_once(
    bench: Bench, keyed: dict[str, str], delivered_before: bool, together: bool
) -> None:
    documents = [a_send("m-1", after="2s", **keyed), a_send("m-1", after="3s", **keyed)]
    if together:
        bench.append(REQUESTS, 0, *documents)
    else:
        bench.request(documents[0])
        bench.run(3 * SECOND if delivered_before else SECOND)
        bench.request(documents[1])
    bench.run(20 * SECOND)
    (sent,) = bench.on("out")
    assert bench.status_of("m-1") == "unchanged"
    assert bench.receipts()["m-1"]["id"] == sent.headers["tidegate-id"]


def test_given_sends_without_id_then_each_is_delivered(bench: Bench) -> None:
    bench.append(REQUESTS, 0, a_send(None, after="1s"), a_send(None, after="1s"))
    bench.run(SECOND)
    assert len(bench.on("out")) == 2


# -- replacements -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("together", [False, True])
def test_given_a_replacement_before_delivery_then_only_the_newer_is_delivered(bench: Bench, together: bool) -> None:
    first, second = a_send("m-1", key="k", after="5s"), a_send("m-2", key="k", after="6s")
    if together:
        bench.append(REQUESTS, 0, first, second)
    else:
        bench.request(first)
        bench.run(SECOND)
        bench.request(second)
    bench.run(20 * SECOND)
    assert [each.document["of"] for each in bench.on("out")] == ["m-2"]
    assert bench.status_of("m-2") == "accepted"


def test_given_a_debounce_of_many_replacements_then_each_costs_the_same(bench: Bench) -> None:
    """DESIGN 5: 3 write units per message under a key, and a guard; nothing of what earlier guards cover."""
    units = []
    for number in range(60):
        before = bench.store.usage["batch"].units
        bench.request(a_send(f"m-{number}", key="k", after="20s"))
        units.append(bench.store.usage["batch"].units - before)
        bench.run(100)
    assert units[1:] == [units[1]] * 59
    bench.run(MINUTE)
    assert [each.document["of"] for each in bench.on("out")] == ["m-59"]


def test_given_a_create_that_is_older_than_its_keys_message_then_it_is_superseded_and_made_no_message() -> None:
    """Two requests topic partitions: the older create comes through the inbox, after the newer one was applied."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    older = an_inboxed({**a_send("m-1", key="k", after="5m")}, at=bench.now)
    bench.run(SECOND)
    bench.request(a_send("m-2", key="k", after="5m"))
    bench.store.write([Put(older.key(0), {**to_item(older, older.key(0)), "rev": 1})])
    bench.run(20 * SECOND)
    receipt = bench.receipts()["m-1"]
    assert (receipt["status"], receipt["id"]) == ("superseded", None)


def test_given_a_guard_that_is_higher_after_all_then_the_create_is_superseded_and_nobody_waits_for_the_wire() -> None:
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.hold_back(lambda effect: isinstance(effect, Produce) and effect.topic == "out")
    bench.run(SECOND)
    (row,) = bench.rows("M#")
    guard = Guard(id=str(row["id"]), live_from=FOR_EVER)
    key = guard.key(0)
    bench.answer_with(
        lambda effect: isinstance(effect, Commit) and effect.transaction.name == "guard",
        Refused(((key, to_item(guard, key)),)),
    )
    bench.request(a_send("m-2", key="k", after="1s"))
    assert bench.status_of("m-2") == "superseded"


def test_given_a_guard_that_a_later_repeat_raised_then_an_earlier_repeat_of_it_is_unchanged() -> None:
    """The rows of the later repeat were never written: its owner fell right after the guard (simulation, seed 205)."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m-1", key="k", after="5m"))
    bench.run(SECOND)
    earlier = an_inboxed({**a_send("m-2", key="k", after="5m")}, at=bench.now)
    (row,) = bench.rows("M#")
    later = Position(bench.now + 1, REQUESTS_ID, 7, 2).text()
    guard = Guard(id=str(row["id"]), live_from=later, request_id="m-2")
    bench.store.write([Put(guard.key(0), {**to_item(guard, guard.key(0))})])
    bench.store.write([Put(earlier.key(0), {**to_item(earlier, earlier.key(0)), "rev": 1})])
    bench.run(20 * SECOND)
    assert bench.receipts()["m-2"]["status"] == "unchanged"


@pytest.mark.parametrize("after_the_accepted", [-MINUTE, MINUTE], ids=["older", "younger"])
def test_given_a_record_that_was_refused_then_rows_of_it_that_come_late_are_not_sent(after_the_accepted: int) -> None:
    """Its first reader fell with the batch on its way; the next owner met the other record first (simulation, seed 352)."""
    bench, other = a_refused_repeat(after_the_accepted)
    rows_come_late(bench, other)
    bench.crash()
    bench.run(10 * MINUTE)
    assert len({each.headers["tidegate-id"] for each in bench.on("out")}) == 1
    assert (tally(bench, "delivered"), tally(bench, "cancelled")) == (1, 0)


@pytest.mark.parametrize("after_the_accepted", [-MINUTE, MINUTE], ids=["older", "younger"])
def test_given_late_rows_of_a_refused_record_then_a_cancel_by_key_means_the_accepted_one(
    after_the_accepted: int,
) -> None:
    bench, other = a_refused_repeat(after_the_accepted)
    bench.run(5 * MINUTE)
    rows_come_late(bench, other)
    bench.run(2 * MINUTE)
    bench.request(a_cancel("c-1", key="k"))
    assert bench.status_of("c-1") == "too_late"
    assert (tally(bench, "delivered"), tally(bench, "cancelled")) == (1, 0)


def test_given_a_refused_record_then_a_later_replacement_keeps_covering_it() -> None:
    bench, other = a_refused_repeat(MINUTE)
    bench.request(a_send("m-2", key="k", after="3m"))
    rows_come_late(bench, other)
    bench.crash()
    bench.run(10 * MINUTE)
    assert [each.document["of"] for each in bench.on("out")] == ["m-2"]
    (guard,) = (from_item(Guard, row) for row in bench.rows("G#"))
    assert guard.refused == frozenset({other.origin})
    assert guard.expires_at is None


def a_refused_repeat(after_the_accepted: int) -> tuple[Bench, InboxRow]:
    """Returns a bench that has accepted one record of a request, and the other one, refused: it came through the inbox."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    document = a_send("m-1", key="k", after="5m")
    bench.request(document)
    bench.run(SECOND)
    other = an_inboxed(document, at=bench.now + after_the_accepted)
    bench.store.write([Put(other.key(0), {**to_item(other, other.key(0)), "rev": 1})])
    bench.run(20 * SECOND)
    assert bench.receipts()["m-1"]["status"] == "unchanged"
    return bench, other


def rows_come_late(bench: Bench, other: InboxRow) -> None:
    """A former owner's batch of the refused record arrives."""
    rows: list[Message | MessageTimer] = [*messages(bench)[:1], *timers(bench)[:1]]
    for row in rows:
        late = replace(row, version=other.origin, origin=other.origin)
        bench.store.write([Put(late.key(0), to_item(late, late.key(0)))])


def an_inboxed(document: Doc, at: int) -> InboxRow:
    """Returns a request's inbox row as the reader of another topic partition writes it."""
    origin = Position(at, REQUESTS_ID, 7, 1).text()
    return InboxRow(namespace="orders", name="x", kind="M", origin=origin, body=json.dumps(document))


def test_given_a_replacement_that_is_due_earlier_then_it_is_delivered_at_its_time(bench: Bench) -> None:
    bench.request(a_send("m-1", key="k", after="5m"))
    bench.run(SECOND)
    bench.request(a_send("m-2", key="k", after="2s"))
    bench.run(10 * MINUTE)
    assert [each.document["of"] for each in bench.on("out")] == ["m-2"]


def test_given_a_replacement_of_one_that_is_not_loaded_yet_then_only_the_newer_is_delivered(bench: Bench) -> None:
    bench.request(a_send("m-1", key="k", after="5m"))
    bench.run(SECOND)
    bench.request(a_send("m-2", key="k", after="6m"))
    bench.run(10 * MINUTE)
    assert [each.document["of"] for each in bench.on("out")] == ["m-2"]
    assert len(timers(bench)) == 1


def test_given_a_send_under_a_key_whose_message_was_delivered_then_both_are_delivered(bench: Bench) -> None:
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.run(2 * SECOND)
    bench.request(a_send("m-2", key="k", after="1s"))
    bench.run(10 * SECOND)
    ids = [each.headers["tidegate-id"] for each in bench.on("out")]
    assert len(set(ids)) == 2


def test_given_keys_of_two_namespaces_then_they_do_not_meet(bench: Bench) -> None:
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.request(a_send("m-2", key="k", after="1s", namespace="others"))
    bench.run(2 * SECOND)
    assert len(bench.on("out")) == 2


# -- cancelled before it came ---------------------------------------------------------------------------------------------------


def test_given_a_create_after_the_cancel_of_its_id_then_it_is_cancelled(bench: Bench) -> None:
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "not_found"
    bench.request(a_send("m-1", after="1s"))
    bench.run(10 * SECOND)
    assert bench.status_of("m-1") == "cancelled"
    assert bench.on("out") == []


def test_given_a_create_after_the_cancel_of_its_key_then_it_is_delivered(bench: Bench) -> None:
    """A key is used again and again: its cancel ends what was sent before it."""
    bench.request(a_cancel(key="k"))
    bench.run(10)
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.run(10 * SECOND)
    assert len(bench.on("out")) == 1


# -- replay -----------------------------------------------------------------------------------------------------------------------


def crashed_with_rows_written(after: str) -> Bench:
    """Rows are written, the position is not: the successor replays the create."""
    bench = Bench()
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
    bench = Bench(shards=1)
    bench.run(SECOND)
    for _ in range(others):
        bench.request(a_send("m-0", after="4s"))  # Sent before the replay comes to the other one.
    row = an_inboxed(a_send("m-1", after="3s"), at=bench.now)
    bench.lose(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "inboxed", times=1_000)
    bench.store.write([Put(row.key(0), {**to_item(row, row.key(0)), "rev": 1})])
    bench.give(Poked(0))
    (message,) = [each for each in bench.rows("M#") if each["request_id"] == "m-1"]
    (gone,) = [each for each in bench.rows(missing) if each["id"] == message["id"]]
    bench.store.write([Delete(Key(str(gone["pk"]), str(gone["sk"])))])
    bench._rules.clear()
    bench.crash()
    bench.now += 5 * SECOND
    bench.run(20 * SECOND)
    assert sorted(str(sent.document["of"]) for sent in bench.on("out")) == ["m-0"] * others + ["m-1"]


def test_given_a_late_row_of_a_former_owner_at_another_slot_then_the_message_is_delivered_once() -> None:
    """Its batch landed after the create was replayed and written again."""
    bench = Bench(shards=1)
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
    bench = Bench(shards=1)
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


def test_given_inbox_rows_that_are_left_as_a_drain_begins_then_those_before_what_was_sent_are_dealt_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seed 840164: a message's row stood before fires that had been sent, and waited for its inbox row, which waited for others."""
    monkeypatch.setattr(plane, "INBOXED_TOGETHER_MAX", 1)
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    rows = [
        an_inboxed(a_send("m-1", after="1h", receipt=True), bench.now),
        an_inboxed(a_send("m-2", after="3s", topic="elsewhere"), bench.now + 1),
    ]
    bench.lose(a_commit("inboxed"), times=1_000)
    bench.store.write([Put(row.key(0), to_item(row, row.key(0))) for row in rows[1:]])
    bench.give(Poked(0))
    assert len(messages(bench)) == 1
    bench._rules.clear()
    bench.store.write([Put(row.key(0), to_item(row, row.key(0))) for row in rows[:1]])
    bench.hold_back(lambda effect: isinstance(effect, Produce) and effect.topic.endswith("receipts"))
    bench.crash()
    bench.run(10 * SECOND)
    assert len(bench.on("out")) == 5
    assert bench.on("elsewhere") == []
    bench.drain()
    bench.run(SECOND)
    assert bench.all_asked(Drained) == []
    bench.release()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    assert len(bench.on("elsewhere")) == 1
    bench.crash()
    bench.run(10 * SECOND)
    sent = [each.headers["tidegate-id"] for each in bench.on("out")]
    assert len(sent) == len(set(sent)) > 8, "a planned hand-over repeats none"


def a_reading_of(low: str, *, but_first: int = 0) -> Callable[[Effect], bool]:
    """Matches reads of the shard's rows from `low` on, but for the first ones."""
    reads = itertools.count(1)
    return lambda effect: isinstance(effect, ReadRange) and effect.range.low == low and next(reads) > but_first


def with_a_row_of(source: str) -> Bench:
    """A successor of an owner that wrote a message's rows, for 3 s from then, and fell before that was durable: the message waits.

    Args:
        source: Of the message's create: `inbox`, where it lies still, or `log`, whose position has not passed it.
    """
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    send = a_send("m-1", after="3s", topic="elsewhere")
    if source == "log":
        bench.lose(a_commit("cursor"), times=1_000)
        bench.request(send)
    else:
        bench.lose(a_commit("inboxed"), times=1_000)
        row = an_inboxed(send, bench.now)
        bench.store.write([Put(row.key(0), to_item(row, row.key(0)))])
        bench.give(Poked(0))
    assert len(messages(bench)) == 1
    bench.as_usual()
    bench.new_actor()
    return bench


def repeats_of_a_successor(bench: Bench) -> int:
    bench.crash()
    bench.run(10 * SECOND)
    sent = [each.headers["tidegate-id"] for topic in ("out", "elsewhere") for each in bench.on(topic)]
    assert len(bench.on("elsewhere")) >= 1
    assert len(set(sent)) > 8
    return len(sent) - len(set(sent))


def test_given_an_inbox_whose_look_has_no_end_then_what_lay_there_at_the_recovery_goes_out_and_a_hand_over_repeats_nothing() -> (
    None
):
    """Seed 940095: a page of the inbox had no answer for 12 s, and a message's row that waited for it stood before two that had been
    sent.
    """
    bench = with_a_row_of("inbox")
    bench.hold_back(a_reading_of("I#", but_first=1), times=1_000)  # The first one is the delivery plane's.
    bench.run(10 * SECOND)
    assert bench.actor.is_serving
    assert (len(bench.on("out")), len(bench.on("elsewhere"))) == (5, 1)
    bench.drain()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    bench.as_usual()
    assert repeats_of_a_successor(bench) == 0, "a planned hand-over repeats none"


def test_given_a_hand_over_before_all_is_recovered_then_what_lay_in_the_inbox_was_dealt_with_and_nothing_repeats() -> (
    None
):
    bench = with_a_row_of("inbox")
    bench.hold_back(a_reading_of("J#"), times=1_000)
    bench.run(10 * SECOND)
    assert not bench.actor.is_serving
    assert (len(bench.on("out")), len(bench.on("elsewhere"))) == (5, 1)
    bench.drain()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    bench.as_usual()
    assert repeats_of_a_successor(bench) == 0, "a planned hand-over repeats none"


def test_given_a_hand_over_before_the_log_is_read_again_then_it_waits_for_what_stands_before_what_was_sent() -> None:
    """A predecessor's rows wait for the position of their create; nothing but the log says that they may go out."""
    bench = with_a_row_of("log")
    bench.hold_back(a_reading_of("J#"), times=1_000)
    bench.run(10 * SECOND)
    assert not bench.actor.is_serving
    assert (len(bench.on("out")), len(bench.on("elsewhere"))) == (5, 0)
    bench.drain()
    bench.run(SECOND)
    assert bench.all_asked(Drained) == []
    bench.as_usual()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    assert repeats_of_a_successor(bench) == 0, "a planned hand-over repeats none"
