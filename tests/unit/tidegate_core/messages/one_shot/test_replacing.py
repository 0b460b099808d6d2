"""Creates under a key: the newest replaces what is not sent yet, also where an older one comes later (SEMANTICS 14)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.builders import HOUR, MINUTE, RECEIPTS, REQUESTS, SECOND, a_cancel, a_send
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.sending_bench import an_inboxed, messages, timers
from tidegate_core.messages.wire.row_expiry import row_expiry
from tidegate_core.rows.effects import Commit, Produce, Refused, Write
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.message import FOR_EVER, Message, MessageFence, MessageTimer
from tidegate_core.rows.store_operations import Put


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def tally(bench: ActorHarness, name: str) -> int:
    return sum(int(str(row[name])) for row in [*bench.rows("PROGRESS"), *bench.rows("Y#")])


@pytest.mark.parametrize("together", [False, True])
def test_given_a_replacement_before_delivery_then_only_the_newer_is_delivered(
    bench: ActorHarness, together: bool
) -> None:
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


def test_given_a_debounce_of_many_replacements_then_each_costs_the_same(bench: ActorHarness) -> None:
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
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    older = an_inboxed({**a_send("m-1", key="k", after="5m")}, at=bench.now)
    bench.run(SECOND)
    bench.request(a_send("m-2", key="k", after="5m"))
    bench.store.write([Put(older.key(0), {**to_item(older, older.key(0)), "rev": 1})])
    bench.run(20 * SECOND)
    receipt = bench.receipts()["m-1"]
    assert (receipt["status"], receipt["id"]) == ("superseded", None)


def test_given_a_guard_that_is_higher_after_all_then_the_create_is_superseded_and_nobody_waits_for_the_wire() -> None:
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.hold_back(lambda effect: isinstance(effect, Produce) and effect.topic == "out")
    bench.run(SECOND)
    (row,) = bench.rows("M#")
    guard = MessageFence(id=from_item(Message, row).id, live_from=FOR_EVER)
    key = guard.key(0)
    bench.answer_with(
        lambda effect: isinstance(effect, Commit) and effect.transaction.name == "guard",
        Refused(((key, to_item(guard, key)),)),
    )
    bench.request(a_send("m-2", key="k", after="1s"))
    assert bench.status_of("m-2") == "superseded"


def test_given_an_older_version_on_the_wire_then_the_row_that_answers_for_the_newer_one_comes_behind_it() -> None:
    """Review: an API process that has heard no receipt for 2 s takes the message's row for it, and answered `accepted` before the older version
    arrived.
    """
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.hold_back(lambda effect: isinstance(effect, Produce) and effect.topic == "out")
    bench.run(2 * SECOND)
    bench.request(a_send("m-2", key="k", after="30s"))
    bench.run(2 * SECOND)
    assert [each.request_id for each in messages(bench)] == ["m-1"]
    bench.release()
    bench.run(SECOND)
    assert [each.request_id for each in messages(bench)] == ["m-1", "m-2"]
    assert bench.status_of("m-2") == "accepted"


def test_given_a_guard_that_a_later_repeat_raised_then_the_sender_is_told_once_its_rows_are_there() -> None:
    """The owner fell right after the guard: an earlier repeat is no `superseded` one (simulation, seed 205), and who is told of a
    message that no cancel finds yet has it cancelled by one that is answered not_found (seed 20040311).
    """
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m-1", key="k", after="5m"))
    document = a_send("m-2", key="k", after="5m")
    earlier = an_inboxed(document, at=bench.now)
    bench.run(SECOND)
    bench.store.write([Put(earlier.key(0), {**to_item(earlier, earlier.key(0)), "rev": 1})])  # Its poke was lost.
    bench.crash_at(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "guard")
    bench.hold_back(lambda effect: isinstance(effect, Write) and effect.batch.name == "messages")
    bench.request(document)
    bench.run(SECOND)
    assert earlier.origin in bench.actor.planes[0].inboxed._dependent, (
        "it was met, and stays until that repeat is passed"
    )
    assert bench.status_of("m-2") is None, "a cancel would find nothing"
    bench.release()
    bench.run(SECOND)
    assert not bench.rows("I#")
    assert [each.document["status"] for each in bench.on(RECEIPTS) if each.key == b"m-2"] == ["accepted"]
    bench.request(a_cancel("c-1", key="k"))
    assert bench.status_of("c-1") == "cancelled"
    bench.run(10 * MINUTE)
    assert bench.on("out") == []


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
    (guard,) = (from_item(MessageFence, row) for row in bench.rows("G#"))
    assert guard.refused == frozenset({other.origin})
    assert guard.expires_at is None


def test_given_late_rows_of_what_a_replacement_covers_and_did_not_know_then_they_are_not_sent_when_its_guard_has_expired() -> (
    None
):
    """Its record was read from another topic partition, behind two that are due soon."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    other = an_inboxed(a_send("m-1", key="k", after=f"{60 * 24 + 1}h"), at=bench.now - SECOND)
    bench.request(a_send("m-2", key="k", after="5m"))
    bench.request(a_send("m-3", key="k", after="5m"))
    bench.store.write([Put(other.key(0), {**to_item(other, other.key(0)), "rev": 1})])
    bench.run(20 * SECOND)
    assert bench.status_of("m-1") == "superseded"
    rows_come_late(bench, other, after=(60 * 24 + 1) * HOUR)
    bench.run(10 * MINUTE)
    bench.months(2)
    bench.run(2 * HOUR)
    assert [each.document["of"] for each in bench.on("out")] == ["m-3"]


def a_refused_repeat(after_the_accepted: int) -> tuple[ActorHarness, InboxRow]:
    """Returns a bench that has accepted one record of a request, and the other one, refused: it came through the inbox."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    document = a_send("m-1", key="k", after="5m")
    bench.request(document)
    bench.run(SECOND)
    other = an_inboxed(document, at=bench.now + after_the_accepted)
    bench.store.write([Put(other.key(0), {**to_item(other, other.key(0)), "rev": 1})])
    bench.run(20 * SECOND)
    assert bench.receipts()["m-1"]["status"] == "unchanged"
    return bench, other


def rows_come_late(bench: ActorHarness, other: InboxRow, after: int = 0) -> None:
    """A former owner's batch of the refused record arrives, which is due so much after what was accepted."""
    rows: list[Message | MessageTimer] = [*messages(bench)[:1], *timers(bench)[:1]]
    for row in rows:
        slot = row.slot + after
        late = replace(row, version=other.origin, origin=other.origin, slot=slot, expires_at=row_expiry(slot))
        bench.store.write([Put(late.key(0), to_item(late, late.key(0)))])


def test_given_a_replacement_that_is_due_earlier_then_it_is_delivered_at_its_time(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", key="k", after="5m"))
    bench.run(SECOND)
    bench.request(a_send("m-2", key="k", after="2s"))
    bench.run(10 * MINUTE)
    assert [each.document["of"] for each in bench.on("out")] == ["m-2"]


def test_given_a_replacement_of_one_that_is_not_loaded_yet_then_only_the_newer_is_delivered(
    bench: ActorHarness,
) -> None:
    bench.request(a_send("m-1", key="k", after="5m"))
    bench.run(SECOND)
    bench.request(a_send("m-2", key="k", after="6m"))
    bench.run(10 * MINUTE)
    assert [each.document["of"] for each in bench.on("out")] == ["m-2"]
    assert len(timers(bench)) == 1


def test_given_a_send_under_a_key_whose_message_was_delivered_then_both_are_delivered(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.run(2 * SECOND)
    bench.request(a_send("m-2", key="k", after="1s"))
    bench.run(10 * SECOND)
    ids = [each.headers["tidegate-id"] for each in bench.on("out")]
    assert len(set(ids)) == 2


def test_given_keys_of_two_namespaces_then_they_do_not_meet(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.request(a_send("m-2", key="k", after="1s", namespace="others"))
    bench.run(2 * SECOND)
    assert len(bench.on("out")) == 2
