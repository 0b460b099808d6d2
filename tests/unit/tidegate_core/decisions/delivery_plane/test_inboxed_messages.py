"""Messages that came through the inbox: what this node cannot read, and payloads of the largest size."""

from __future__ import annotations

import base64
import json

import pytest

from tidegate_core.model.parsing import parse_request
from tidegate_core.model.requests import MessageSend
from tidegate_core.records.codec import from_item, to_item
from tidegate_core.records.run_plane import InboxRow
from tidegate_core.store.values import Put
from tidegate_testkit.bench import Bench
from tidegate_testkit.builders import REQUESTS, SECOND, a_position, a_send


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
