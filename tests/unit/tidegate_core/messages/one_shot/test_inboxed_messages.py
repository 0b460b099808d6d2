"""Messages that came through the inbox: what this node cannot read, and payloads of the largest size."""

from __future__ import annotations

import base64
import json

import pytest

from tests.support.builders import MINUTE, NOW, REQUESTS, SECOND, Doc, a_position, a_send
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.ingest.inbox_row import INBOX_BODY_BYTES_MAX
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.requests import MessageSend
from tidegate_core.language.targets.message_target import MAX_HEADER_BYTES, MAX_HEADERS, MAX_PAYLOAD_BYTES
from tidegate_core.language.values.derived_ids import message_shard
from tidegate_core.language.values.instants import format_instant
from tidegate_core.language.values.problems import RefusedRecord
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.store_operations import Put


def an_inbox_row(body: str) -> InboxRow:
    return InboxRow(namespace="orders", name="x", kind="M", origin=a_position(5).text(), body=body)


@pytest.mark.parametrize("request_id", ["n-1", None])
def test_given_a_message_of_a_newer_grammar_in_the_inbox_then_it_is_a_dead_letter_and_the_others_go_on(
    request_id: str | None,
) -> None:
    """A rolling downgrade: whoever read it understood it, this node does not."""
    bench = ActorHarness(shards=1)
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
    (told,) = bench.notices("record_dead_lettered")
    assert (told.fields["topic"], told.fields["offset"], told.fields["error_class"]) == (
        "tidegate.requests",
        5,
        "invalid",
    )
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
    bench = ActorHarness(topic_partitions=2, shards=4, event_topic_partitions=2)
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


CONTROLS = [chr(each) for each in (*range(1, 8), *range(14, 32))]
"""Of one byte, and of six as JSON: no other character grows as much."""
FOUR_BYTES = "\U0001f600"
"""No character of an id or a key, which have no control characters, has more."""
TOPIC = "o" * 249
NOT_BESIDE = {"after", "payload", "payload_base64"}
"""What says in another way what the largest message says."""


def the_largest(request_id: str) -> Doc:
    """Returns a message that has each field, all of them as large as they may be."""
    names = [first + second for first in CONTROLS for second in CONTROLS][:MAX_HEADERS]
    value = CONTROLS[0] * (MAX_HEADER_BYTES // MAX_HEADERS - len(names[0]))
    return {
        "id": request_id + FOUR_BYTES * (128 - len(request_id)),
        "type": "message.send",
        "actor": CONTROLS[0] * 1_024,
        "reason": CONTROLS[0] * 1_024,
        "namespace": "n" * 128,
        "key": request_id + FOUR_BYTES * (128 - len(request_id)),
        "deliver_at": format_instant(NOW + MINUTE + 1),
        "receipt": False,
        "topic": TOPIC,
        "message_key": CONTROLS[0] * 1_024,
        "headers": dict.fromkeys(names, value),
        "payload_text": "x" * MAX_PAYLOAD_BYTES,
        "expire_after": "3652d23h59m59s",
    }


def foreign_and_largest() -> Doc:
    made = (the_largest(f"m-{number}") for number in range(99))
    return next(each for each in made if message_shard(each["namespace"], each["key"], each["id"], 4) % 2)


def test_given_the_largest_message_there_can_be_then_it_fits_the_inbox_and_is_delivered_as_it_is() -> None:
    """Its sender's partitioner put it into another holder's topic partition: in its owner's own it was taken."""
    document = foreign_and_largest()
    bench = ActorHarness(topic_partitions=2)
    bench.run(SECOND)
    bench.request(document)
    assert bench.on("tidegate.requests.dlq") == []
    (row,) = [from_item(InboxRow, row) for row in bench.rows("I#")]
    assert 380_000 < row.size <= INBOX_BODY_BYTES_MAX
    owner = ActorHarness(topic_partitions=2, topic_partition=1)
    owner.store, owner.now = bench.store, bench.now
    owner.new_actor("node-x")
    owner.run(2 * MINUTE)
    (sent,) = owner.on(TOPIC)
    assert (sent.key, sent.value) == (document["message_key"].encode(), document["payload_text"].encode())
    assert document["headers"].items() <= sent.headers.items()
    assert owner.rows("I#") == []


def test_given_the_largest_message_there_can_be_then_it_has_each_field_and_none_may_be_larger() -> None:
    """Else the test above would not show that each message fits."""
    document = the_largest("m-1")
    request = parse_request(json.dumps(document).encode())
    assert isinstance(request, MessageSend)
    assert document.keys() | NOT_BESIDE == MessageSend.model_fields.keys()
    name, value = next(iter(document["headers"].items()))
    larger: Doc = {"headers": {**document["headers"], name: value + CONTROLS[0]}, "expire_after": "3654d"}
    for field in ("id", "actor", "reason", "namespace", "key", "topic", "message_key", "payload_text"):
        larger[field] = document[field] + "x"
    for field, more in larger.items():
        with pytest.raises(RefusedRecord, match=field):
            parse_request(json.dumps({**document, field: more}).encode())
