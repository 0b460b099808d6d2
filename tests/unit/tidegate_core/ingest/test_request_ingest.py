"""The ownership topic partition: own messages to their plane, everything else to the inbox of its shard, poison aside."""

from __future__ import annotations

import json

import pytest

from tests.support.builders import (
    EVENTS,
    REQUESTS,
    REQUESTS_ID,
    SECOND,
    Doc,
    a_cancel,
    a_request,
    a_send,
    a_spec,
    an_apply,
    an_event,
    every,
)
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit
from tidegate_core.ingest.inbox_row import INBOX_BODY_BYTES_MAX
from tidegate_core.ingest.request_ingest import INBOX_ROWS_PER_MOVE
from tidegate_core.language.events.events import CustomEvent
from tidegate_core.language.requests.requests import MessageSend
from tidegate_core.language.values.derived_ids import message_shard, schedule_shard
from tidegate_core.rows.effects import Commit, Effect, NotProduced, Produce, ReturnCredits, WakeUp
from tidegate_core.rows.store_operations import ITEM_BYTES_MAX, TRANSACTION_BYTES_MAX


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def half() -> ActorHarness:
    """Holds topic partition 0 of 2: the odd shards are somebody else's."""
    made = ActorHarness(topic_partitions=2)
    made.run(SECOND)
    return made


def foreign_message(**more: str) -> Doc:
    name = next(name for name in (f"m-{number}" for number in range(99)) if message_shard("orders", None, name, 4) % 2)
    return a_send(name, **more)


def foreign_name() -> str:
    return next(name for name in (f"s-{number}" for number in range(99)) if schedule_shard("flights", name, 4) % 2)


def test_given_a_message_of_an_own_shard_then_it_never_touches_the_inbox(bench: ActorHarness) -> None:
    bench.request(a_send("m-1"))
    assert len(bench.rows("M#")) == 1
    assert not [key for move in bench.commits("cursor") for key in move.actions if key.key.sk.startswith("I#")]


def test_given_messages_that_nobody_named_then_none_touches_the_inbox_whatever_else_others_hold() -> None:
    """Each would go there, for 5 write units more, with a shard by the hash of its position."""
    bench = half()
    for _ in range(20):
        bench.request(a_send(None))
    assert {str(row["pk"]) for row in bench.rows("M#")} == {"SH#0000"}
    assert len(bench.rows("M#")) == 20
    assert bench.rows("I#") == []


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        pytest.param(foreign_message(), "M", id="message"),
        pytest.param(a_request("delete", foreign_name()), "Q", id="request"),
        pytest.param(an_apply(a_spec(foreign_name())), "Q", id="apply"),
        pytest.param({"id": "x", "type": "run.cancel", "run_id": "0003-" + "a" * 26}, "Q", id="run"),
        pytest.param({"id": "x", "type": "run.release", "run_id": "0003-" + "a" * 26}, "Q", id="lost run"),
        pytest.param({"id": "x", "type": "job.cancel", "job_id": "0001-" + "a" * 26}, "Q", id="job"),
        pytest.param(a_cancel(message_id="0003-" + "a" * 26), "M", id="printed id"),
    ],
)
def test_given_a_request_of_a_foreign_shard_then_it_lies_in_that_inbox_and_its_owner_is_poked(
    document: Doc, kind: str
) -> None:
    bench = half()
    bench.request(document)
    (row,) = bench.rows("I#")
    shard = int(str(row["pk"])[3:])
    assert shard % 2 == 1
    assert row["kind"] == kind
    assert json.loads(str(row["body"]))["id"] == document["id"]
    assert WakeUp(shard) in bench.all_asked(WakeUp)
    assert bench.receipts() == {}


def test_given_an_inbox_row_of_another_holder_then_its_owner_applies_it_at_take_over() -> None:
    bench = half()
    bench.request(foreign_message(after="1s", receipt="no") | {"receipt": True})
    other = ActorHarness(topic_partitions=2, topic_partition=1)
    other.store, other.now = bench.store, bench.now
    other.new_actor("node-x")
    other.run(5 * SECOND)
    assert len(other.on("out")) == 1
    assert other.rows("I#") == []


def test_given_a_message_through_the_inbox_then_it_fires_only_when_its_row_is_gone() -> None:
    """Else the row's replay after a crash would send it a second time."""
    bench = half()
    bench.request(foreign_message(after="0s"))
    other = ActorHarness(topic_partitions=2, topic_partition=1)
    other.store, other.now = bench.store, bench.now
    other.new_actor("node-x")
    other.hold_back(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "inboxed")
    other.run(5 * SECOND)
    assert other.on("out") == []
    other.release()
    assert len(other.on("out")) == 1


# -- what cannot be processed ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "answered"),
    [
        pytest.param(b"{", None, id="cut"),
        pytest.param(b"", None, id="empty"),
        pytest.param(b'{"type": "schedule.apply"}', None, id="no id"),
        pytest.param(b'{"id": "r", "type": "schedule.apply"}', "rejected", id="incomplete"),
        pytest.param(b'{"id": "r", "type": "schedule.undo"}', "rejected", id="unknown type"),
        pytest.param(b'{"id": "r", "type": "object.apply"}', "rejected", id="planned"),
        pytest.param(
            b'{"id": "r", "type": "run.cancel", "run_id": "0007-' + b"a" * 26 + b'"}', "rejected", id="no such shard"
        ),
    ],
)
def test_given_poison_then_it_is_copied_answered_where_it_can_be_and_passed(
    bench: ActorHarness, value: bytes, answered: str | None
) -> None:
    bench.append(REQUESTS, 0, value, an_apply(a_spec(trigger=every("1h"))))
    (letter,) = bench.on("tidegate.requests.dlq")
    assert letter.value == value
    assert letter.headers["tidegate.error.topic"] == REQUESTS
    assert (letter.headers["tidegate.error.partition"], letter.headers["tidegate.error.offset"]) == ("0", "0")
    assert bench.status_of("r") == answered
    assert bench.status_of("apply-nightly") == "accepted"


def test_given_a_request_that_we_fail_to_judge_then_it_is_refused_and_ingest_goes_on(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the fault is: the log behind it must not wait for a corrected version."""

    def fail(_: object) -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(MessageSend, "model_validate", fail)
    monkeypatch.setattr(CustomEvent, "model_validate", fail)
    bench.append(REQUESTS, 0, a_send("m-1"), an_apply(a_spec(trigger=every("1h"))))
    bench.append(EVENTS, 0, {"id": "e-1", "type": "custom.x", "namespace": "flights"}, an_event("d1"))
    assert bench.status_of("apply-nightly") == "accepted"
    assert "internal error ZeroDivisionError: of ours" in bench.receipts()["m-1"]["errors"][0]["problem"]
    for letters in (bench.on("tidegate.requests.dlq"), bench.on("tidegate.events.dlq")):
        assert [letter.headers["tidegate.error.class"] for letter in letters] == ["invalid"]


def test_given_a_message_more_than_ten_years_ahead_then_it_is_rejected(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", deliver_at="2099-01-01T00:00:00Z"))
    assert bench.status_of("m-1") == "rejected"
    assert bench.rows("M#") == []


def test_given_a_dead_letter_that_is_not_acknowledged_then_the_position_waits(bench: ActorHarness) -> None:
    bench.answer_with(a_dead_letter, NotProduced("unavailable", "away"), times=3)
    bench.request(b"{")
    assert bench.all_asked(ReturnCredits) == []
    bench.run(5 * SECOND)
    assert bench.all_asked(ReturnCredits)[-1].next_offset == 1
    assert len(bench.on("tidegate.requests.dlq")) == 1


def a_dead_letter(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic.endswith("requests.dlq")


def test_given_a_dead_letter_that_no_topic_takes_then_it_is_said_and_passed(bench: ActorHarness) -> None:
    bench.answer_with(a_dead_letter, NotProduced("refused", "too large"), times=100)
    bench.append(REQUESTS, 0, b"{", a_send("m-1", receipt=True))
    assert bench.status_of("m-1") == "accepted"
    assert bench.notices("dead_letter_refused") != []


@pytest.mark.parametrize("letter", ["x", "é", "日", "\U0001f600"], ids=["1 byte", "2 bytes", "3 bytes", "4 bytes"])
@pytest.mark.parametrize("letters", [10_000, 30_000, 120_000])
def test_given_a_request_of_any_size_then_it_fits_or_is_refused_and_never_blocks_the_log(
    letter: str, letters: int
) -> None:
    """Bytes count and not characters: an item holds 400 KB."""
    bench = half()
    name = foreign_name()
    large = json.dumps(an_apply(a_spec(name, args=[letter * (letters // 30)] * 30), "r"), ensure_ascii=False).encode()
    bench.request(large)
    bench.request(a_request("delete", name))
    rows = bench.rows("I#")
    assert all(len(str(row["body"]).encode()) < ITEM_BYTES_MAX for row in rows)
    assert len(rows) == (1 if bench.status_of("r") == "rejected" else 2)
    if len(large) > INBOX_BODY_BYTES_MAX:
        assert bench.status_of("r") == "rejected"


def test_given_a_request_that_names_an_impossible_shard_then_its_refusal_tells_its_namespace(
    bench: ActorHarness,
) -> None:
    """By which whoever waits for it tells it from others under its id."""
    document = {"type": "job.cancel", "id": "c-1", "namespace": "flights", "job_id": f"9999-{'a' * 26}"}
    bench.request(document)
    assert (bench.status_of("c-1"), bench.receipts()["c-1"]["namespace"]) == ("rejected", "flights")


# -- many -------------------------------------------------------------------------------------------------------------------------


def test_given_a_long_batch_then_moves_stay_below_the_stores_limits_and_all_is_handed_over() -> None:
    bench = half()
    before = len(bench.commits("cursor"))
    documents = [a_request("suspend", foreign_name(), f"r-{number}") for number in range(2 * INBOX_ROWS_PER_MOVE + 7)]
    bench.append(REQUESTS, 0, *documents)
    assert len(bench.rows("I#")) == len(documents)
    assert [len(move.actions) for move in bench.commits("cursor")[before:]] == [81, 81, 8]


def test_given_a_batch_of_which_a_part_is_durable_then_its_messages_are_sent_however_long_the_rest_takes() -> None:
    """Seed 26003268: a message waited for records behind its own, whose transactions had no answer, and expired meanwhile."""
    bench = half()
    own = next(name for name in (f"m-{n}" for n in range(99)) if message_shard("orders", None, name, 4) % 2 == 0)
    documents = [a_request("suspend", foreign_name(), f"r-{number}") for number in range(INBOX_ROWS_PER_MOVE + 1)]
    is_cursor, last = a_commit("cursor"), documents[-1]["id"]
    bench.hold_back(lambda effect: is_cursor(effect) and last in str(effect), times=1_000)
    bench.append(REQUESTS, 0, a_send(own, after="1s"), *documents)
    bench.run(5 * SECOND)
    assert len(bench.on("out")) == 1


def test_given_large_requests_then_a_move_stays_below_the_stores_bytes() -> None:
    bench = half()
    before = len(bench.commits("cursor"))
    documents = [foreign_message(payload_text="x" * 250_000) for _ in range(20)]
    bench.append(REQUESTS, 0, *documents)
    assert len(bench.rows("I#")) == 20
    for move in bench.commits("cursor")[before:]:
        assert (
            sum(len(str(getattr(action, "item", {}).get("body", ""))) for action in move.actions)
            < TRANSACTION_BYTES_MAX
        )


def test_given_append_times_that_go_back_then_positions_do_not(bench: ActorHarness) -> None:
    from tidegate_core.engine.actor_inputs import LogRecord, RecordsArrived

    late = json.dumps(a_send("m-2", key="k", after="30s")).encode()
    early = json.dumps(a_send("m-1", key="k", after="20s")).encode()
    records = (LogRecord(0, bench.now, None, early), LogRecord(1, bench.now - 5_000, None, late))
    bench.give(RecordsArrived(REQUESTS, 0, records, REQUESTS_ID))
    bench.run(60 * SECOND)
    assert [each.document["of"] for each in bench.on("out")] == ["m-2"]


def test_given_records_that_come_twice_then_they_are_dealt_with_once(bench: ActorHarness) -> None:

    bench.request(a_send(None, after="1s"))
    bench.give(bench.arrived(REQUESTS, 0, 0))
    bench.run(5 * SECOND)
    assert len(bench.on("out")) == 1


def test_given_a_position_moved_by_a_later_holder_then_the_former_one_ends(bench: ActorHarness) -> None:
    other = ActorHarness()
    other.store, other._logs, other.now = bench.store, bench._logs, bench.now
    other.new_actor("node-x")
    other.run()
    bench.is_member = False
    bench.request(a_send("m-1"))
    assert [notice.event for notice in bench.notices("fenced")] == ["fenced"]
    assert isinstance(bench.all_asked(Commit)[-1], Commit)
