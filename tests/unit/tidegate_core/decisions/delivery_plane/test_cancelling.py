"""Taking messages back: what is not on its way is never sent, what may have been sent is too late (I7)."""

from __future__ import annotations

import base64
import json

import pytest

from tidegate_core.decisions.delivery_plane.cancelling import CANCEL_MARK
from tidegate_core.decisions.delivery_plane.delivering import PAUSE_MS
from tidegate_core.decisions.delivery_plane.retrying import ATTEMPTS_MAX
from tidegate_core.effects import NotProduced, Produce, Read, Write
from tidegate_core.model.parsing import parse_request
from tidegate_core.model.requests import MessageSend
from tidegate_core.records.codec import from_item, to_item
from tidegate_core.records.messages import FOR_EVER, Guard, Message
from tidegate_core.records.run_plane import InboxRow
from tidegate_core.store.values import Delete, Key, Put
from tidegate_testkit.bench import Bench
from tidegate_testkit.bench_matches import a_commit
from tidegate_testkit.builders import HOUR, MINUTE, REQUESTS, SECOND, a_cancel, a_position, a_send


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.run(SECOND)
    return made


WHICH = pytest.mark.parametrize(
    ("sent", "cancel"),
    [
        pytest.param({}, {"message_id": "m-1"}, id="by id"),
        pytest.param({"key": "k"}, {"key": "k"}, id="by key"),
    ],
)


@WHICH
@pytest.mark.parametrize("after", ["10s", "5m"], ids=["loaded", "far ahead"])
def test_given_a_message_that_waits_then_its_cancel_takes_it_back(
    bench: Bench, sent: dict[str, str], cancel: dict[str, str], after: str
) -> None:
    bench.request(a_send("m-1", after=after, **sent))
    bench.run(SECOND)
    bench.request(a_cancel(**cancel))
    assert bench.status_of("c-1") == "cancelled"
    assert bench.rows("D#") == []
    bench.run(10 * MINUTE)
    assert bench.on("out") == []


@WHICH
@pytest.mark.parametrize("waited", [2 * SECOND, 10 * SECOND], ids=["before its checkpoint", "after it"])
def test_given_a_message_that_was_delivered_then_its_cancel_is_too_late(
    bench: Bench, sent: dict[str, str], cancel: dict[str, str], waited: int
) -> None:
    bench.request(a_send("m-1", after="1s", **sent))
    bench.run(waited)
    bench.request(a_cancel(**cancel))
    assert bench.status_of("c-1") == "too_late"
    assert len(bench.on("out")) == 1


@WHICH
def test_given_no_such_message_then_its_cancel_finds_nothing(
    bench: Bench, sent: dict[str, str], cancel: dict[str, str]
) -> None:
    bench.request(a_cancel(**cancel))
    assert bench.status_of("c-1") == "not_found"


def test_given_a_message_on_its_way_then_its_cancel_is_too_late(bench: Bench) -> None:
    bench.request(a_send("m-1", after="1s"))
    bench.hold_back(lambda effect: isinstance(effect, Produce) and effect.topic == "out")
    bench.run(2 * SECOND)
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "too_late"


def test_given_a_message_that_is_due_while_its_payload_is_read_then_its_cancel_takes_it_back(bench: Bench) -> None:
    """It was taken to be sent, and not handed over: it never will be, and nobody may be told that it was."""
    bench.request(a_send("m-1", after="8s"))
    bench.crash()
    bench.hold_back(
        lambda effect: isinstance(effect, Read) and effect.keys[0].sk.startswith("M#"), times=2, answer_only=True
    )
    bench.run(9 * SECOND)
    bench.request(a_cancel(message_id="m-1"))
    bench.run(SECOND)
    bench.release()
    bench.run(10 * SECOND)
    assert bench.status_of("c-1") == "cancelled"
    assert bench.on("out") == []
    assert tally(bench) == (0, 1)


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param(NotProduced("guard", "lapsed"), "cancelled", id="was not sent"),
        pytest.param(NotProduced("unavailable", "transport"), "too_late", id="may have been sent"),
    ],
)
def test_given_a_cancel_in_the_pause_after_a_produce_then_it_is_too_late_only_if_it_may_be_there(
    bench: Bench, answer: NotProduced, status: str
) -> None:
    bench.answer_with(lambda effect: isinstance(effect, Produce) and effect.topic == "out", answer, times=1_000)
    bench.request(a_send("m-1", after="1s"))
    bench.run(SECOND + PAUSE_MS // 2)
    bench.request(a_cancel(message_id="m-1"))
    bench.run(10 * SECOND)
    assert bench.status_of("c-1") == status
    assert tally(bench) == (0, 1)


def test_given_a_cancel_while_what_the_broker_refused_moves_then_it_is_taken_back(bench: Bench) -> None:
    refused = NotProduced("refused", "unknown topic")
    bench.answer_with(lambda effect: isinstance(effect, Produce) and effect.topic == "out", refused)
    bench.hold_back(a_commit("retry"), answer_only=True)
    bench.request(a_send("m-1", after="1s"))
    bench.run(2 * SECOND)
    assert bench.holds_something
    bench.request(a_cancel(message_id="m-1"))
    bench.run(SECOND)
    bench.release()
    bench.run(MINUTE)
    assert bench.status_of("c-1") == "cancelled"
    assert bench.on("out") == []
    assert tally(bench) == (0, 1)


def test_given_a_cancel_while_its_dead_letter_is_on_its_way_then_it_is_too_late(bench: Bench) -> None:
    refused = NotProduced("refused", "too large")
    bench.answer_with(lambda effect: isinstance(effect, Produce) and effect.topic == "out", refused, times=ATTEMPTS_MAX)
    bench.hold_back(lambda effect: isinstance(effect, Produce) and effect.topic == "tidegate.requests.dlq")
    bench.request(a_send("m-1", after="1s"))
    bench.run(HOUR)
    assert bench.holds_something
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "too_late"


def test_given_the_printed_id_then_it_names_the_message_too(bench: Bench) -> None:
    bench.request(a_send("m-1", after="5m", receipt=True))
    bench.request(a_cancel(message_id=str(bench.receipts()["m-1"]["id"])))
    assert bench.status_of("c-1") == "cancelled"
    bench.run(10 * MINUTE)
    assert bench.on("out") == []


@WHICH
def test_given_the_same_cancel_again_then_its_answer_is_the_same(
    bench: Bench, sent: dict[str, str], cancel: dict[str, str]
) -> None:
    bench.request(a_send("m-1", after="5m", **sent))
    bench.request(a_cancel(**cancel))
    bench.run(SECOND)
    bench.request(a_cancel(**cancel))
    assert bench.status_of("c-1") == "cancelled"


def test_given_a_cancel_of_an_id_then_its_guard_is_for_ever_and_of_a_key_it_is_the_cancels_position(
    bench: Bench,
) -> None:
    bench.request(a_cancel(message_id="m-1"))
    bench.request(a_cancel("c-2", key="k"))
    guards = {from_item(Guard, row).live_from for row in bench.rows("G#")}
    assert FOR_EVER in guards
    assert len(guards) == 2


def test_given_another_namespaces_cancel_then_the_message_is_delivered(bench: Bench) -> None:
    bench.request(a_send("m-1", key="k", after="2s"))
    bench.request({**a_cancel(key="k"), "namespace": "others"})
    assert bench.status_of("c-1") == "not_found"
    bench.run(5 * SECOND)
    assert len(bench.on("out")) == 1


def test_given_send_and_cancel_in_one_batch_then_it_is_taken_back(bench: Bench) -> None:
    bench.append(REQUESTS, 0, a_send("m-1", after="5s"), a_cancel(message_id="m-1"))
    bench.run(10 * SECOND)
    assert bench.status_of("c-1") == "cancelled"
    assert bench.on("out") == []


def test_given_cancel_and_later_send_of_one_key_in_one_batch_then_the_send_lives(bench: Bench) -> None:
    bench.request(a_send("m-1", key="k", after="5s"))
    bench.append(REQUESTS, 0, a_cancel(key="k"), a_send("m-2", key="k", after="6s"))
    bench.run(10 * SECOND)
    assert [each.document["of"] for each in bench.on("out")] == ["m-2"]


def test_given_a_message_that_a_predecessor_may_have_sent_then_its_cancel_is_too_late() -> None:
    """Due between the checkpoint and the fence: nobody knows."""
    bench = Bench()
    bench.run(SECOND)
    bench.request(a_send("m-1", after="1s"))
    bench.hold_back(lambda effect: isinstance(effect, Produce) and effect.topic == "out", times=2)
    bench.run(2 * SECOND)
    bench.crash()
    bench.run(10)
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "too_late"


@pytest.mark.parametrize(
    "waited",
    [
        pytest.param(SECOND, id="before its checkpoint"),
        pytest.param(20 * SECOND, id="after it"),
    ],
)
def test_given_a_message_that_expired_then_its_cancel_is_too_late(bench: Bench, waited: int) -> None:
    bench.request(a_send("m-1", after="1s", expire_after="1s"))
    bench.now += 5 * SECOND  # Away.
    bench.run(waited)
    assert bench.on("out") == []
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "too_late"


# -- the tally (I1: each message ends as delivered, expired, dead or cancelled, and the audit adds them up) ----------------


def tally(bench: Bench) -> tuple[int, int]:
    """Returns how many were delivered and cancelled, as stored."""
    rows = [*bench.rows("PROGRESS"), *bench.rows("Y#")]
    return sum(int(str(row["delivered"])) for row in rows), sum(int(str(row["cancelled"])) for row in rows)


@WHICH
@pytest.mark.parametrize("after", ["10s", "5h"], ids=["loaded", "far ahead"])
def test_given_a_message_that_is_cancelled_again_and_again_then_it_is_counted_once(
    bench: Bench, sent: dict[str, str], cancel: dict[str, str], after: str
) -> None:
    bench.request(a_send("m-1", after=after, **sent))
    for number in range(3):
        bench.request(a_cancel(f"c-{number}", **cancel))
    bench.run(10 * SECOND)
    assert tally(bench) == (0, 1)


@pytest.mark.parametrize("after", ["10s", "5h"], ids=["loaded", "far ahead"])
def test_given_a_replaced_message_then_it_is_counted_as_cancelled(bench: Bench, after: str) -> None:
    for number in range(4):
        bench.request(a_send(f"m-{number}", key="k", after=after))
    bench.run(MINUTE)
    bench.request(a_send("m-last", key="k", after="1s"))
    bench.run(MINUTE)
    assert tally(bench) == ((2, 3) if after == "10s" else (1, 4))


def test_given_cancels_and_nothing_else_then_a_drain_stores_them(bench: Bench) -> None:
    bench.request(a_send("m-1", after="5h"))
    bench.request(a_cancel(message_id="m-1"))
    bench.drain()
    bench.run(SECOND)
    assert tally(bench) == (0, 1)


def test_given_an_open_message_in_front_then_a_drain_stores_what_was_cancelled_where_the_position_stands() -> None:
    bench = Bench(shards=1)
    bench.run(SECOND)
    away = NotProduced("unavailable", "transport")
    bench.answer_with(lambda effect: isinstance(effect, Produce) and effect.topic == "out", away, times=1_000)
    bench.request(a_send("m-1", after="0s"))
    bench.request(a_send("m-2", after="5h"))
    bench.request(a_cancel(message_id="m-2"))
    bench.drain()
    bench.run(SECOND)
    (progress,) = bench.rows("PROGRESS")
    assert (progress["fired_slot"], tally(bench)) == (0, (0, 1))


def test_given_cancels_of_what_is_ahead_then_the_position_stays_behind_the_present(bench: Bench) -> None:
    """Else a message that comes later and is due earlier would get a later slot."""
    bench.request(a_send("m-1", key="k", after="50s"))
    bench.request(a_cancel(key="k"))
    bench.request(a_send("m-2", key="k", after="1s"))
    bench.run(10 * SECOND)
    bench.request(a_send("m-3", key="k", after="5s"))
    due = bench.now + 5 * SECOND
    bench.run(20 * SECOND)
    assert [sent.at for sent in bench.on("out")][-1] == due


# -- whose message it is -----------------------------------------------------------------------------------------------------


def test_given_a_printed_id_and_another_namespace_then_the_message_is_delivered(bench: Bench) -> None:
    bench.request(a_send("m-1", after="2s", receipt=True))
    printed = str(bench.receipts()["m-1"]["id"])
    bench.request({**a_cancel(message_id=printed), "namespace": "others"})
    assert bench.status_of("c-1") == "not_found"
    assert bench.rows("G#") == []
    bench.run(5 * SECOND)
    assert len(bench.on("out")) == 1


def test_given_the_printed_id_of_a_message_under_a_key_then_the_answer_says_how_to_cancel_it(bench: Bench) -> None:
    bench.request(a_send("m-1", key="k", after="5m", receipt=True))
    bench.request(a_cancel(message_id=str(bench.receipts()["m-1"]["id"])))
    receipt = bench.receipts()["c-1"]
    assert (receipt["status"], receipt["errors"][0]["field"]) == ("not_found", "message_id")
    assert "by its key" in receipt["errors"][0]["hint"]
    assert bench.rows("G#") == []


def test_given_one_request_id_in_two_namespaces_then_each_has_its_own_answer() -> None:
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m-1", after="5m"))
    bench.request(a_send("m-2", after="5m", namespace="others"))
    bench.request(a_cancel("c-1", message_id="m-1"))
    bench.request({**a_cancel("c-1", message_id="m-2"), "namespace": "others"})
    receipt = bench.receipts()["c-1"]
    assert (receipt["status"], receipt["namespace"], receipt["id"]) == ("cancelled", "others", "m-2")
    bench.run(10 * MINUTE)
    assert bench.on("out") == []


def test_given_a_request_id_that_was_used_for_another_cancel_then_it_is_rejected() -> None:
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m-1", after="5m"))
    bench.request(a_send("m-2", after="5m"))
    bench.request(a_cancel("c-1", message_id="m-1"))
    bench.request(a_cancel("c-1", message_id="m-2"))
    receipt = bench.receipts()["c-1"]
    assert (receipt["status"], receipt["errors"][0]["field"]) == ("rejected", "id")
    bench.run(10 * MINUTE)
    assert [sent.document["of"] for sent in bench.on("out")] == ["m-2"]


# -- what came through the inbox -------------------------------------------------------------------------------------------


def an_inbox_row(body: str) -> InboxRow:
    return InboxRow(namespace="orders", name="x", kind="M", origin=a_position(5).text(), body=body)


@pytest.mark.parametrize("request_id", ["n-1", None])
def test_given_a_message_of_a_newer_grammar_in_the_inbox_then_it_is_a_dead_letter_and_the_others_go_on(
    request_id: str | None,
) -> None:
    """A rolling downgrade: whoever read it understood it, this node does not."""
    bench = Bench(shards=1)
    body = json.dumps({**a_send(request_id), "brand_new_field": 1})
    row = an_inbox_row(body)
    bench.store.write([Put(row.key(0), {**to_item(row, row.key(0)), "rev": 1})])
    bench.run(30 * SECOND)
    bench.request(a_send("m-1", after="1s"))
    bench.run(5 * SECOND)
    assert len(bench.on("out")) == 1
    (letter,) = bench.on("tidegate.requests.dlq")
    assert letter.value == body.encode()
    assert (letter.headers["tidegate.error.class"], letter.headers["tidegate.error.offset"]) == ("invalid", "5")
    assert bench.rows("I#") == []
    assert bench.status_of("n-1") == (None if request_id is None else "rejected")


PAYLOADS = [
    pytest.param({"payload": [1] * 131_000}, id="a list"),
    pytest.param({"payload_text": '\n"' * 131_000}, id="text with escapes"),
    pytest.param({"payload_text": "\x01" * 150_000}, id="control characters"),
    pytest.param({"payload_base64": base64.b64encode(bytes(range(256)) * 1_024).decode()}, id="bytes"),
]


@pytest.mark.parametrize("payload", PAYLOADS)
def test_given_a_payload_of_the_largest_size_then_it_is_taken_whatever_the_senders_partitioner(
    payload: dict[str, object],
) -> None:
    """Messages of foreign shards lie in the inbox first: their payload counts as it is, not as JSON."""
    bench = Bench(topic_partitions=2, shards=4, event_topic_partitions=2)
    bench.run(SECOND)
    headers = {"h": "\x01" * 16_000}
    bench.append(REQUESTS, 0, *(a_send(f"m-{n}", after="1h", headers=headers, **payload) for n in range(8)))
    assert bench.on("tidegate.requests.dlq") == []
    rows = [from_item(InboxRow, row) for row in bench.rows("I#")]
    assert rows != []
    assert len(rows) + len(bench.rows("M#")) == 8
    for row in rows:
        request = parse_request(row.request)
        assert isinstance(request, MessageSend)
        wanted = parse_request(json.dumps(a_send(request.id, after="1h", headers=headers, **payload)).encode())
        assert isinstance(wanted, MessageSend)
        assert (request.payload_bytes, request.headers) == (wanted.payload_bytes, headers)


# -- how long guards are kept ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("after", ["1s", "3650d"])
def test_given_a_guard_then_it_outlives_what_it_covers_and_is_not_for_ever(bench: Bench, after: str) -> None:
    bench.request(a_send("m-1", after=after))
    bench.request(a_send("k-1", key="k", after=after))
    bench.request(a_send("k-2", key="k", after="1s"))
    bench.request(a_send("k-3", key="k", after="1s"))
    bench.request(a_cancel(message_id="m-1"))
    bench.request(a_cancel("c-2", message_id="never-there"))
    rows = {from_item(Message, row).request_id: int(str(row["expires_at"])) for row in bench.rows("M#")}
    guards = sorted(int(str(row["expires_at"])) for row in bench.rows("G#"))
    assert len(guards) == 3
    assert guards[0] > bench.now // 1000 + 30 * 86_400  # The requests topic's retention, and more.
    assert guards[1] > rows["m-1"]
    assert guards[2] > max(rows.values())


def test_given_a_crash_before_the_receipt_of_a_cancel_by_key_then_an_older_delivery_does_not_make_it_too_late(
    bench: Bench,
) -> None:
    """What was delivered under the key before is not what this cancel was about, also when it is done again."""
    bench.request(a_send("m-1", after="1s", key="k"))
    bench.run(10 * SECOND)
    bench.request(a_send("m-2", after="5m", key="k"))
    bench.run(SECOND)
    bench.hold_back(lambda effect: isinstance(effect, Write) and effect.batch.name == "receipt")
    bench.request(a_cancel(key="k"))
    assert bench.status_of("c-1") is None
    bench.crash()
    bench.run(SECOND)
    assert bench.status_of("c-1") == "cancelled"
    bench.run(10 * MINUTE)
    assert len(bench.on("out")) == 1


@pytest.mark.parametrize(("after", "status"), [("5m", "cancelled"), ("1s", "too_late")])
def test_given_a_cancel_by_key_that_is_done_again_behind_a_younger_record_then_it_is_answered_as_before(
    bench: Bench, after: str, status: str
) -> None:
    """The younger one came from another topic partition and raised the guard above it: what it took back is still what it took
    back, and what was delivered before it is too late.
    """
    bench.request(a_send("m-1", after=after, key="k"))
    bench.run(10 * SECOND)
    bench.hold_back(lambda effect: isinstance(effect, Write) and effect.batch.name == "receipt")
    bench.request(a_cancel(key="k"))
    assert bench.status_of("c-1") is None
    bench.crash()
    (item,) = bench.rows("G#")
    raised = from_item(Guard, item)
    younger = a_position(99, at=bench.now + 1).text()
    guard = Guard(id=raised.id, live_from=younger, request_id="m-2", before=raised.live_from)
    key = Key(str(item["pk"]), str(item["sk"]))
    bench.store.write([Put(key, to_item(guard, key))])
    bench.run(SECOND)
    assert bench.status_of("c-1") == status
    bench.run(10 * MINUTE)
    assert len(bench.on("out")) == (1 if after == "1s" else 0)


@WHICH
def test_given_create_and_cancel_that_are_both_done_again_after_a_crash_then_the_cancel_is_answered_as_before(
    bench: Bench, sent: dict[str, str], cancel: dict[str, str]
) -> None:
    """The create is refused by the guard and its rows go: the cancel finds nothing, and yet it was the one that took it back."""
    bench.request(a_send("m-1", after="5m", **sent))
    bench.run(SECOND)
    bench.hold_back(lambda effect: isinstance(effect, Write) and effect.batch.name == "receipt")
    bench.request(a_cancel(**cancel))
    bench.crash()
    for item in bench.rows("M#"):
        bench.store.write([Delete(Key(str(item["pk"]), str(item["sk"])))])
    bench.run(SECOND)
    assert bench.status_of("c-1") == "cancelled"


def test_given_a_cancel_whose_later_record_was_begun_by_a_predecessor_then_the_earlier_one_is_answered_for_what_that_covered(
    bench: Bench,
) -> None:
    """It was written twice; the guard is the later record's, and the message is still there (simulation, seed 131)."""
    bench.request(a_send("m-1", key="k", after="5m"))
    (item,) = bench.rows("M#")
    message = from_item(Message, item)
    later = a_position(99, at=bench.now + MINUTE).text()
    guard = Guard(id=message.id, live_from=later, request_id=f"{CANCEL_MARK}c-1", through=message.slot)
    shard = int(str(item["pk"])[3:])
    bench.store.write([Put(guard.key(shard), to_item(guard, guard.key(shard)))])
    bench.request(a_cancel(key="k"))
    assert bench.status_of("c-1") == "cancelled"
    assert bench.rows("D#") == []
    bench.run(10 * MINUTE)
    assert bench.on("out") == []
