"""Messages under a wide suspend: held back, let go, cancelled and replaced meanwhile (SEMANTICS 10)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.support.builders import MINUTE, REQUESTS_ID, SECOND, Doc, a_cancel, a_send
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.two_owners import BenchPair
from tidegate_core.language.values.log_position import Position
from tidegate_core.messages.one_shot.cancellation import CANCEL_MARK
from tidegate_core.messages.one_shot.held_payloads import CHECKED_TOGETHER
from tidegate_core.rows.effects import Commit, Drained, NotProduced, Produce, Read, ReadRange, Unavailable, Write
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.message import HeldMessage, Message, MessageFence
from tidegate_core.rows.store_operations import Key, Put


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def control(kind: str, namespace: str | None = "orders", request_id: str | None = None) -> Doc:
    scope: Doc = {"scope": "system"} if namespace is None else {"scope": "namespace", "namespace": namespace}
    return {"id": request_id or f"{kind}-{namespace}", "type": f"control.{kind}", **scope}


def ask(bench: ActorHarness, document: Doc, run: int = 2 * SECOND) -> Doc:
    bench.request(document)
    bench.run(run)
    return bench.receipts()[str(document["id"])]


def held(bench: ActorHarness) -> list[HeldMessage]:
    return [from_item(HeldMessage, row) for row in bench.rows("H#")]


def to_out(effect: Any) -> bool:
    return isinstance(effect, Produce) and effect.topic == "out"


def commit_of(name: str) -> Any:
    return lambda effect: isinstance(effect, Commit) and effect.transaction.name == name


def test_given_a_message_due_while_suspended_then_it_waits_without_a_time_and_the_checkpoint_goes_on(
    bench: ActorHarness,
) -> None:
    bench.request(a_send("m-1", after="10s"))
    ask(bench, control("suspend"))
    due = bench.now + 8 * SECOND
    bench.run(20 * SECOND)
    assert bench.delivered() == []
    (row,) = held(bench)
    assert (row.namespace, row.attempt, row.maybe_sent) == ("orders", 1, False)
    assert bench.rows("D#") == []
    assert all(message.expires_at is None for message in (from_item(Message, each) for each in bench.rows("M#")))
    assert max(int(str(each["fired_slot"])) for each in bench.rows("PROGRESS")) >= due - SECOND


def test_given_the_resume_then_what_was_held_is_delivered_at_once_and_expires_again(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", after="10s"))
    nominal = bench.now + 10 * SECOND
    ask(bench, control("suspend"))
    bench.months(2)
    ask(bench, control("resume"))
    assert len(bench.delivered()) == 1
    assert held(bench) == []
    (message,) = [from_item(Message, each) for each in bench.rows("M#")]
    assert message.nominal == nominal
    assert message.expires_at is not None


def test_given_another_namespace_then_its_messages_are_delivered(bench: ActorHarness) -> None:
    ask(bench, control("suspend", "other"))
    bench.request(a_send("m-1", after="1s"))
    bench.run(2 * SECOND)
    assert len(bench.delivered()) == 1


def test_given_system_and_namespace_then_what_one_of_them_covers_stays_held(bench: ActorHarness) -> None:
    ask(bench, control("suspend", None))
    bench.request(a_send("m-1", after="1s"))
    bench.request(a_send("m-2", after="1s", namespace="other"))
    bench.run(2 * SECOND)
    assert len(held(bench)) == 2
    ask(bench, control("suspend"))
    ask(bench, control("resume", None))
    assert [row.namespace for row in held(bench)] == ["orders"]
    assert len(bench.delivered()) == 1
    ask(bench, control("resume"))
    assert len(bench.delivered()) == 2


def test_given_a_cancel_of_what_is_held_then_it_is_cancelled_and_the_resume_delivers_nothing(
    bench: ActorHarness,
) -> None:
    ask(bench, control("suspend"))
    bench.request(a_send("m-1", after="1s"))
    bench.run(MINUTE)
    assert ask(bench, a_cancel(message_id="m-1"))["status"] == "cancelled"
    assert held(bench) == []
    ask(bench, control("resume"))
    bench.run(MINUTE)
    assert bench.delivered() == []
    assert sum(int(str(row["cancelled"])) for row in (*bench.rows("PROGRESS"), *bench.rows("Y#"))) == 1


def test_given_a_cancel_while_it_is_being_held_then_it_waits_for_the_move(bench: ActorHarness) -> None:
    ask(bench, control("suspend"))
    bench.request(a_send("m-1", after="1s"))
    bench.hold_back(commit_of("hold"))
    bench.run(2 * SECOND)
    bench.request(a_cancel(message_id="m-1"))
    bench.run(SECOND)
    assert bench.status_of("c-1") is None
    bench.as_usual()
    bench.run(SECOND)
    assert bench.status_of("c-1") == "cancelled"
    assert held(bench) == []


def test_given_a_replacement_of_what_is_held_then_the_resume_delivers_the_newer_one_alone(bench: ActorHarness) -> None:
    ask(bench, control("suspend"))
    bench.request(a_send("m-1", key="k", after="1s", payload={"n": 1}))
    bench.run(5 * SECOND)
    assert ask(bench, a_send("m-2", key="k", after="1s", payload={"n": 2}, receipt=True))["status"] == "accepted"
    bench.run(5 * SECOND)
    assert len(held(bench)) == 1
    ask(bench, control("resume"))
    assert bench.delivered() == [b'{"n":2}'] or bench.on("out")[0].document == {"n": 2}
    assert len(bench.delivered()) == 1


def a_guard_alone(bench: ActorHarness, document: Doc) -> InboxRow:
    """Replaces or cancels what is held, by an owner that falls right after the guard: the inbox row is what is left of it."""
    (row,) = held(bench)
    origin = Position(bench.now, REQUESTS_ID, 7, 1).text()
    guard = MessageFence(id=row.id, live_from=origin, request_id=str(document["id"]))
    if document["type"] == "message.cancel":
        guard = replace(guard, request_id=f"{CANCEL_MARK}{document['id']}", through=row.slot)
    bench.store.write([Put(guard.key(0), to_item(guard, guard.key(0)))])
    return InboxRow(namespace="orders", name="x", kind="M", origin=origin, body=json.dumps(document))


def do_again(bench: ActorHarness, row: InboxRow) -> None:
    bench.store.write([Put(row.key(0), {**to_item(row, row.key(0)), "rev": 1})])
    bench.run(20 * SECOND)


@pytest.mark.parametrize(("younger", "status"), [("m-2", "unchanged"), ("m-3", "superseded")])
def test_given_a_replacement_that_fell_behind_its_guard_and_a_younger_one_then_nothing_stays_held(
    younger: str, status: str
) -> None:
    """The successor meets the younger record first, of the same request or of another one; the one that raised the guard is
    refused then and removes nothing (simulation, seed 300301).
    """
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    ask(bench, control("suspend"))
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.run(5 * SECOND)
    fallen = a_guard_alone(bench, a_send("m-2", key="k", after="5m", receipt=True))
    bench.run(SECOND)
    bench.request(a_send(younger, key="k", after="5m"))
    assert held(bench) == []
    do_again(bench, fallen)
    assert bench.receipts()["m-2"]["status"] == status
    ask(bench, control("resume"))
    bench.run(10 * MINUTE)
    assert [each.document["of"] for each in bench.on("out")] == [younger]


def test_given_a_replacement_that_fell_behind_its_guard_and_a_cancel_then_nothing_stays_held() -> None:
    """As above, with a cancel in place of the younger message."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    ask(bench, control("suspend"))
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.run(5 * SECOND)
    fallen = a_guard_alone(bench, a_send("m-2", key="k", after="5m"))
    bench.run(SECOND)
    bench.request(a_cancel(key="k"))
    do_again(bench, fallen)
    assert bench.status_of("m-2") == "superseded"
    assert held(bench) == []


def test_given_a_cancel_that_fell_behind_its_guard_and_a_younger_message_then_it_removes_what_is_held_itself() -> None:
    """It answers by what it finds: `too_late`, had the younger one removed it."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    ask(bench, control("suspend"))
    bench.request(a_send("m-1", key="k", after="1s"))
    bench.run(5 * SECOND)
    fallen = a_guard_alone(bench, a_cancel(key="k"))
    bench.run(SECOND)
    bench.request(a_send("m-2", key="k", after="5m"))
    do_again(bench, fallen)
    assert bench.status_of("c-1") == "cancelled"
    assert held(bench) == []


def test_given_a_message_on_the_wire_then_the_receipt_waits_for_it_but_not_for_ever(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", after="1s"))
    bench.hold_back(to_out)
    bench.run(2 * SECOND)
    bench.request(control("suspend"))
    bench.run(2 * SECOND)
    assert bench.status_of("suspend-orders") is None
    bench.run(2 * SECOND)
    assert bench.status_of("suspend-orders") == "accepted"
    bench.as_usual()
    assert len(bench.delivered()) == 1


def test_given_a_produce_that_was_given_up_then_it_is_held_and_may_have_been_sent(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", after="3s"))
    bench.answer_with(to_out, NotProduced("unavailable", "no answer"), times=10)
    bench.run(3 * SECOND + 100)
    ask(bench, control("suspend"))
    (row,) = held(bench)
    assert row.maybe_sent
    assert ask(bench, a_cancel(message_id="m-1"))["status"] == "too_late"
    assert len(held(bench)) == 1, "it is still to be delivered: its sender was told so"
    ask(bench, control("resume"))
    bench.as_usual()
    assert len(bench.delivered()) == 1


def test_given_another_suspend_before_the_payload_has_its_end_again_then_it_has_none_while_it_is_held(
    bench: ActorHarness,
) -> None:
    """Seed 1000379: what was held back again was taken for what was let go, and a cancel meanwhile left its row for ever."""

    def gives_an_end(effect: Any) -> bool:
        puts = effect.batch.actions if isinstance(effect, Write) and effect.batch.name == "kept" else ()
        return any(isinstance(put, Put) and put.item.get("expires_at") is not None for put in puts)

    ask(bench, control("suspend"))
    bench.request(a_send("m-1", after="1s"))
    bench.run(5 * SECOND)
    bench.hold_back(gives_an_end)
    bench.request(control("resume"))
    bench.run(SECOND)
    bench.request(control("suspend", request_id="again"))
    bench.run(3 * SECOND)
    bench.as_usual()
    bench.run(3 * SECOND)
    assert len(held(bench)) == 1
    assert [from_item(Message, row).expires_at for row in bench.rows("M#")] == [None]
    assert ask(bench, a_cancel(message_id="m-1"))["status"] == "cancelled"
    assert held(bench) == []


@pytest.mark.parametrize("name", ["hold", "let_go"])
def test_given_a_move_without_an_answer_then_it_is_done_once(bench: ActorHarness, name: str) -> None:
    bench.lose_answer_of(commit_of(name), times=2)
    ask(bench, control("suspend"))
    bench.request(a_send("m-1", after="1s"))
    bench.run(5 * SECOND)
    ask(bench, control("resume"))
    assert len(bench.delivered()) == 1
    assert held(bench) == []


@pytest.mark.parametrize("name", ["hold", "let_go"])
def test_given_a_move_that_comes_again_when_all_is_over_then_it_is_refused(bench: ActorHarness, name: str) -> None:
    """A row that is consumed makes a late repeat inert: the message is neither held again nor sent again."""
    ask(bench, control("suspend"))
    bench.request(a_send("m-1", after="1s"))
    bench.run(5 * SECOND)
    ask(bench, control("resume"))
    bench.run(10 * SECOND)
    (moved,) = bench.commits(name)
    bench.transact(moved)
    bench.crash()
    bench.run(MINUTE)
    assert held(bench) == []
    assert len(bench.delivered()) == 1


@pytest.mark.parametrize("after", range(1, 25))
def test_given_a_crash_while_messages_are_held_or_let_go_then_each_is_delivered_and_none_before(after: int) -> None:
    bench = ActorHarness()
    bench.late_writes_after = 700
    bench.run(SECOND)
    for number in range(4):
        bench.request(a_send(f"m-{number}", after=f"{3 + number % 2}s"))
    bench.request(control("suspend"))
    bench.run(SECOND)
    bench.crash_after = bench.effects_outside + after
    bench.run(10 * SECOND)
    assert bench.status_of("suspend-orders") == "accepted"
    assert bench.delivered() == []
    bench.crash_after = bench.effects_outside + after
    ask(bench, control("resume"), 10 * SECOND)
    assert {each.headers["tidegate-id"] for each in bench.on("out")} == {
        str(row["pk"])[3:] + "-" + from_item(Message, row).id for row in bench.rows("M#")
    }
    assert held(bench) == []


def test_given_a_cancel_that_asks_for_long_what_is_held_back_then_what_fell_due_meanwhile_is_cancelled_and_not_too_late(
    bench: ActorHarness,
) -> None:
    """Seed 801070: it was withdrawn when its time came, and passed by a checkpoint, and so it looked as if it had been sent."""
    ask(bench, control("suspend"))
    ask(bench, control("resume"))
    bench.request(a_send("m-1", key="k", after="5s"))
    bench.run(SECOND)
    bench.hold_back(lambda effect: isinstance(effect, Read) and any(key.sk.startswith("H#") for key in effect.keys))
    bench.request(a_cancel("c-1", key="k"))
    bench.run(20 * SECOND)
    assert bench.status_of("c-1") is None
    bench.release()
    bench.run(SECOND)
    assert bench.status_of("c-1") == "cancelled"
    assert bench.delivered() == []


def test_given_a_drain_while_a_message_is_being_held_then_it_is_finished_first(bench: ActorHarness) -> None:
    ask(bench, control("suspend"))
    bench.request(a_send("m-1", after="1s"))
    bench.hold_back(lambda effect: isinstance(effect, Write) and effect.batch.name == "kept")
    bench.run(2 * SECOND)
    bench.drain()
    bench.run(SECOND)
    assert bench.all_asked(Drained) == []
    bench.as_usual()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    assert len(held(bench)) == 1


def test_given_a_timer_row_that_is_written_once_more_after_it_was_held_then_a_successor_leaves_it_alone(
    bench: ActorHarness,
) -> None:
    """A batch may arrive twice and late: the row of a message that is held back must not be sent beside it."""
    bench.answer_with(commit_of("checkpoint"), Unavailable("scripted"), times=1_000)
    bench.request(a_send("m-1", after="5s"))
    *_, timer_row = [each.batch for each in bench.all_asked(Write) if each.batch.name == "messages"]
    ask(bench, control("suspend"))
    bench.run(5 * SECOND)
    assert len(held(bench)) == 1
    bench.store.write(timer_row.actions)
    bench.as_usual()
    bench.crash()
    bench.run(SECOND)
    ask(bench, control("resume"))
    bench.run(MINUTE)
    assert len(bench.delivered()) == 1


@pytest.mark.parametrize("of", ["messages", "kept"])
def test_given_a_payload_of_a_former_owner_that_comes_late_then_what_is_held_back_for_months_is_delivered_all_the_same(
    of: str,
) -> None:
    """Review: it has an end, and lies over the one without: the message was gone before the resume.

    It is that of the message's create, or that of a resume behind which all is suspended anew.
    """
    pair = BenchPair(shards=1)
    pair.run(SECOND)
    pair.request(control("suspend"))
    pair.run(3 * SECOND)
    if of == "kept":
        pair.request(a_send("m-1", after="1s"))
        pair.run(3 * SECOND)
    pair.first.hold_back(lambda effect: isinstance(effect, Write) and effect.batch.name == of)
    pair.request(control("resume") if of == "kept" else a_send("m-1", after="1s"))
    assert pair.first.holds_something
    pair.second.answer_with(to_out, NotProduced("unavailable", "scripted"), times=10)
    pair.take_over()
    pair.request(control("suspend", request_id="again"))
    pair.run(10 * SECOND)
    assert (len(held(pair.second)), pair.delivered()) == (1, [])
    pair.first.release()
    assert [row["expires_at"] is None for row in pair.second.rows("M#")] == [False]
    pair.second.end_scripts()
    pair.run(30 * MINUTE)
    pair.second.months(2)
    pair.request(control("resume", request_id="last"))
    pair.run(2 * SECOND)
    assert pair.delivered() == ["m-1"]


def test_given_a_cancel_as_payloads_are_looked_through_then_that_of_what_was_cancelled_has_an_end(
    bench: ActorHarness,
) -> None:
    ask(bench, control("suspend"))
    ask(bench, a_send("m-1", key="k", after="1s", receipt=True))
    (row,) = bench.rows("M#")
    bench.store.write([Put(Key(str(row["pk"]), str(row["sk"])), {**row, "expires_at": bench.now // 1_000 + 100})])
    bench.hold_back(lambda effect: isinstance(effect, ReadRange) and effect.range.limit == CHECKED_TOGETHER)
    bench.run(30 * MINUTE)
    assert bench.holds_something
    assert ask(bench, a_cancel(key="k"))["status"] == "cancelled"
    bench.as_usual()
    bench.run(MINUTE)
    assert held(bench) == []
    assert [row["expires_at"] is None for row in bench.rows("M#")] == [False]
