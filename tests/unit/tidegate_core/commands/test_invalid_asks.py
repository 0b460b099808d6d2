"""What the store will never take is refused, a dead letter, or set aside: it ends neither its holder nor the successor.

Found in review: a batch had no such answer, so a vector of ends above an item's size ended holder after holder.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.support.builders import (
    EVENTS,
    EVENTS_ID,
    HOUR,
    MINUTE,
    REQUESTS,
    REQUESTS_ID,
    SECOND,
    Doc,
    a_cancel,
    a_send,
    a_spec,
    an_apply,
    an_event,
    on_data,
)
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit, a_produce
from tidegate_core.engine.actor_inputs import Woken
from tidegate_core.language.values.derived_ids import message_shard
from tidegate_core.language.values.log_position import Position
from tidegate_core.messages.wire.delivery import INVALID_PAUSE_MS
from tidegate_core.rows.effects import Commit, Effect, EndOffsets, Invalid, NotProduced, Produce, ReadEndOffsets, Write
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.message import MessageName
from tidegate_core.rows.store_operations import ITEM_BYTES_MAX, Put

INVALID = Invalid("Item size has exceeded the maximum allowed size")
LETTERS = "tidegate.requests.dlq"


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def a_write(of: str) -> Callable[[Effect], bool]:
    """A batch that holds this text somewhere."""

    def match(effect: Effect) -> bool:
        return isinstance(effect, Write) and any(
            of in str(action.item if isinstance(action, Put) else action.key) for action in effect.batch.actions
        )

    return match


def failed(bench: ActorHarness) -> list[str]:
    return [str(notice.fields["name"]) for notice in bench.notices("decision_failed")]


def delivered(bench: ActorHarness) -> list[str]:
    return [str(each.document) for each in bench.on("out")]


def test_given_more_ends_than_an_item_holds_then_the_request_is_refused_and_the_next_one_is_applied(
    bench: ActorHarness,
) -> None:
    many = EndOffsets({f"{EVENTS_ID}/{number}": 10**9 for number in range(ITEM_BYTES_MAX // 40)})
    bench.answer_with(lambda effect: isinstance(effect, ReadEndOffsets) and effect.topic == EVENTS, many)
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(SECOND)
    assert bench.status_of("apply-nightly") == "rejected"
    assert failed(bench) == ["request"]
    bench.request(an_apply(a_spec("other", trigger=on_data())))
    bench.run(SECOND)
    assert bench.status_of("apply-other") == "accepted"
    assert bench.rows("I#") == []


def test_given_a_send_that_the_store_never_takes_then_it_is_a_dead_letter_and_the_others_are_delivered(
    bench: ActorHarness,
) -> None:
    bench.answer_with(a_write("poisoned"), INVALID, times=100)
    sends = [a_send(f"m-{each}", payload=each, after="1s", receipt=True) for each in ("a", "poisoned", "b")]
    bench.append(REQUESTS, 0, *sends)
    bench.run(2 * SECOND)
    assert sorted(delivered(bench)) == ["a", "b"]
    assert [bench.status_of(f"m-{each}") for each in ("a", "poisoned", "b")] == ["accepted", "rejected", "accepted"]
    (letter,) = bench.on(LETTERS)
    assert (letter.headers["tidegate.error.class"], letter.headers["tidegate.error.offset"]) == ("too_large", "1")
    assert failed(bench) == ["messages"]
    bench.request(a_send("m-later", payload="later", after="1s"))
    bench.run(SECOND)
    assert delivered(bench)[-1] == "later"


def test_given_a_timer_row_that_the_store_never_takes_then_the_next_try_is_no_repeat() -> None:
    """Found by a review: its message row stayed, and the sender's next try was answered `unchanged` for what nothing wakes."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    named = MessageName.of_request("orders", "m-1").id
    bench.answer_with(
        lambda effect: (
            isinstance(effect, Write)
            and any(
                isinstance(each, Put) and each.key.sk.startswith("D#") and named in each.key.sk
                for each in effect.batch.actions
            )
        ),
        INVALID,
        times=2,  # In company, and alone.
    )
    sends = [a_send(f"m-{each}", payload=str(each), after="1s", receipt=True) for each in (1, 2)]
    bench.append(REQUESTS, 0, *sends)
    bench.run(2 * SECOND)
    assert [bench.status_of(f"m-{each}") for each in (1, 2)] == ["rejected", "accepted"]
    assert delivered(bench) == ["2"]
    bench.request(sends[0])
    bench.run(2 * SECOND)
    assert delivered(bench) == ["2", "1"]


def test_given_a_replacement_that_the_store_never_takes_then_what_comes_under_its_key_is_delivered(
    bench: ActorHarness,
) -> None:
    bench.answer_with(a_write("poisoned"), INVALID, times=100)
    bench.request(a_send("m-1", key="k", payload="old", after="1m"))
    bench.append(
        REQUESTS,
        0,
        a_send("m-2", key="k", payload="poisoned", after="1m"),
        a_send("m-3", key="k", payload="new", after="1m"),
    )
    bench.run(2 * MINUTE)
    assert delivered(bench) == ["new"]
    assert bench.status_of("m-2") == "rejected"


def test_given_a_send_in_the_inbox_that_the_store_never_takes_then_it_is_a_dead_letter_and_its_row_goes(
    bench: ActorHarness,
) -> None:
    bench.answer_with(a_write("poisoned"), INVALID, times=100)
    shard = message_shard("flights", None, "m-1", 4)
    origin = Position(bench.now, REQUESTS_ID, 1, 7).text()
    body = json.dumps(a_send("m-1", payload="poisoned", receipt=True))
    row = InboxRow(namespace="flights", name="x", kind="M", origin=origin, body=body)
    bench.store.write([Put(row.key(shard), to_item(row, row.key(shard)))])
    bench.give(Woken(shard))
    bench.run(SECOND)
    assert bench.status_of("m-1") == "rejected"
    assert len(bench.on(LETTERS)) == 1
    assert bench.rows("I#") == []


@pytest.mark.parametrize(
    "body", [a_send("m-1", payload="poisoned"), {"id": "m-1", "type": "message.postpone"}], ids=["poisoned", "unread"]
)
def test_given_a_topic_of_dead_letters_that_is_away_then_no_message_waits_for_one_of_the_inbox(body: Doc) -> None:
    """Found by a review: creates and cancels of the shard stood still, and their topic partition with them, until it was back."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.answer_with(a_produce(LETTERS), NotProduced("unavailable", "its leader is away"), times=1_000_000)
    bench.answer_with(a_write("poisoned"), INVALID, times=100)
    origin = Position(bench.now, REQUESTS_ID, 1, 7).text()
    row = InboxRow(namespace="orders", name="x", kind="M", origin=origin, body=json.dumps(body))
    bench.store.write([Put(row.key(0), to_item(row, row.key(0)))])
    bench.give(Woken(0))
    bench.run(SECOND)
    bench.request(a_send("m-2", payload="behind it", after="1s"))
    bench.run(10 * SECOND)
    assert delivered(bench) == ["behind it"]
    bench.crash()
    bench.run(SECOND)
    assert len(bench.rows("I#")) == 1
    bench.as_usual()
    bench.run(SECOND)
    assert len(bench.on(LETTERS)) == 1
    assert bench.status_of("m-1") == "rejected"
    assert bench.rows("I#") == []


def test_given_a_cancel_that_cannot_be_kept_then_its_sender_is_told_and_its_row_goes(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", after="1m"))
    bench.answer_with(
        lambda effect: isinstance(effect, Write) and effect.batch.name in {"cancel", "receipt"}, INVALID, times=100
    )
    bench.request(a_cancel("c-1", message_id="m-1"))
    bench.run(SECOND)
    assert bench.status_of("c-1") == "rejected"
    assert bench.rows("I#") == []
    bench.run(2 * MINUTE)
    assert bench.on("out") == []  # It was carried out as far as nothing is sent.


def test_given_a_checkpoint_that_the_store_does_not_take_then_it_is_told_and_the_next_one_counts_all(
    bench: ActorHarness,
) -> None:
    bench.answer_with(
        lambda effect: isinstance(effect, Commit) and effect.transaction.name == "checkpoint", INVALID, times=2
    )
    bench.request(a_send("m-1"))
    bench.run(20 * SECOND)
    bench.request(a_send("m-1b"))
    bench.run(MINUTE)
    assert failed(bench)[0] == "checkpoint"
    assert sum(int(str(row["delivered"])) for row in [*bench.rows("PROGRESS"), *bench.rows("Y#")]) == 2


def test_given_a_refused_message_that_cannot_be_moved_then_it_keeps_its_place_and_is_delivered_in_the_end(
    bench: ActorHarness,
) -> None:
    bench.answer_with(lambda effect: isinstance(effect, Produce) and effect.topic == "out", NotProduced("refused", "x"))
    bench.answer_with(a_commit("retry"), INVALID)
    bench.request(a_send("m-1", payload="x", after="1s"))
    bench.run(SECOND)
    assert failed(bench) == ["deliver"]
    assert bench.on("out") == []
    bench.run(INVALID_PAUSE_MS)
    assert delivered(bench) == ["x"]


def test_given_a_key_that_no_item_can_have_then_its_event_is_a_dead_letter_and_the_next_one_counts(
    bench: ActorHarness,
) -> None:
    bench.request(an_apply(a_spec(trigger=on_data(count=9))))
    bench.answer_with(
        lambda effect: isinstance(effect, Commit) and any(each.key.sk == "DD" for each in effect.transaction.actions),
        INVALID,
        times=2,
    )
    bench.append(EVENTS, 0, an_event("d1"), an_event("d2"))
    bench.run(SECOND)
    assert len(bench.on("tidegate.events.dlq")) == 1
    assert [row["counts"] for row in bench.rows("E#")] == [[1]]


def test_given_a_record_that_cannot_be_kept_behind_a_move_then_what_that_move_passed_is_sent_in_time() -> None:
    """Found in review: a shard was not told how far the log was read, and kept what it knew to be due."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)

    def is_poison(effect: Effect) -> bool:
        return (
            isinstance(effect, Commit) and effect.transaction.name == "cursor" and "poison" in str(effect.transaction)
        )

    bench.answer_with(is_poison, INVALID, times=1_000)
    cancels = [a_cancel(f"c-{number}", message_id=f"x-{number}") for number in range(80)]
    bench.append(REQUESTS, 0, a_send("m-1", after="5s"), *cancels, a_cancel("poison", message_id="y"))
    bench.run(HOUR)
    assert len(bench.on(LETTERS)) == 1
    assert len(bench.on("out")) == 1


@pytest.mark.parametrize(
    ("document", "transaction", "told"),
    [
        pytest.param(
            {"type": "control.suspend", "scope": "namespace", "namespace": "flights"},
            "move_controls",
            {"namespace": "flights", "name": None},
            id="a wide control",
        ),
        pytest.param(
            {"type": "control.suspend", "scope": "system"},
            "move_controls",
            {"namespace": None, "name": None},
            id="of the whole system",
        ),
        pytest.param(
            {"type": "source.delete", "namespace": "flights", "name": "landed"},
            "move_sources",
            {"namespace": "flights", "name": "landed"},
            id="a source",
        ),
        pytest.param(
            {"type": "run.cancel", "run_id": "0000-mfrggzdfmztwq2lkn5wg63tqoe"},
            "cancel_run",
            {"namespace": None, "name": None},
            id="a run without a namespace",
        ),
        pytest.param(
            {"type": "run.release", "run_id": "0000-mfrggzdfmztwq2lkn5wg63tqoe"},
            "release_run",
            {"namespace": None, "name": None},
            id="a lost run without a namespace",
        ),
    ],
)
def test_given_a_request_that_the_store_refuses_then_its_receipt_names_what_the_request_named(
    document: Doc, transaction: str, told: Doc
) -> None:
    """Found in review: it named the words under which such requests lie in the inbox (`-/controls`), and the API, which waits for an answer
    of the request's namespace, told nobody.
    """
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.answer_with(a_commit(transaction), Invalid("scripted"), times=100)
    bench.request({"id": "r", **document})
    bench.run(5 * SECOND)
    receipt = bench.receipts()["r"]
    assert receipt["status"] == "rejected"
    assert {field: receipt[field] for field in told} == told
