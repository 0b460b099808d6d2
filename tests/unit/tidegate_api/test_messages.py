"""Messages: sent, cancelled and looked at, one by one and in batches."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.tidegate_api.conftest import NOW, PATIENT, PUT_SCHEDULE, SHARDS, TOPIC_PARTITIONS, TOPICS, Process
from tidegate_core.language.formats.parsing import parse_events, parse_request
from tidegate_core.language.values.derived_ids import message_shard
from tidegate_core.language.values.problems import MAX_PROBLEMS
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Produce
from tidegate_core.rows.message import (
    FIRST_VERSION,
    HeldMessage,
    Message,
    MessageFence,
    MessageName,
    public_id,
    version_without_key,
)
from tidegate_core.rows.store_operations import Delete, Page, Put, RangeRead

PATIENCE_S = 20.0
MESSAGE = {"namespace": "orders", "topic": "orders.reminders", "after": "1h", "payload": {"order": 17}}


def test_given_clockworks_own_record_then_it_is_a_message(process: Process) -> None:
    body = {
        "clientId": "orders",
        "scheduleKey": "reminder-17",
        "taskData": "eA==",
        "delivery": {"topic": "orders.reminders"},
        "scheduleTime": NOW + 60_000,
    }
    assert process.http.post("/api/v1/requests", json=body).status_code == 200
    (sent,) = process.bus.on(TOPICS.requests)
    assert (sent["type"], sent["key"], sent["receipt"]) == ("message.send", "reminder-17", True)


def test_given_message_then_a_receipt_is_asked_for(process: Process) -> None:
    answer = process.http.post("/api/v1/messages", json=MESSAGE)
    assert answer.status_code == 200
    (sent,) = process.bus.on(TOPICS.requests)
    assert sent["receipt"] is True
    shard = message_shard("orders", None, sent["id"], SHARDS)
    assert process.bus.produced[0].topic_partition == shard % TOPIC_PARTITIONS


@pytest.mark.parametrize(
    "version",
    [FIRST_VERSION, version_without_key("2" * 32, "1" * 32)],
    ids=["the first topic", "one that was made anew"],
)
@pytest.mark.parametrize("timing", [PATIENT])
def test_given_message_without_a_receipt_then_its_row_answers(process: Process, version: str) -> None:
    def store_row(document: Any) -> None:
        put_message(process, document["id"], version)

    process.bus.owner = store_row
    answer = process.http.post("/api/v1/messages", json={**MESSAGE, "id": "m-1"})
    shard = message_shard("orders", None, "m-1", SHARDS)
    assert answer.status_code == 200
    name = MessageName.of_request("orders", "m-1")
    assert answer.json()["id"] == public_id(shard, name, version)


@pytest.mark.parametrize("timing", [PATIENT])
def test_given_batch_without_receipts_then_the_rows_answer_and_several_are_asked_for_at_once(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else 1,000 took longer than their patience, where an API process may not read the receipts' topic."""
    begun: list[RangeRead] = []
    several = threading.Event()
    query = process.store.query

    def slow(wanted: RangeRead) -> Page:
        begun.append(wanted)
        if len(begun) > 2:
            several.set()
        if len(begun) > 1:
            several.wait(PATIENCE_S)
        return query(wanted)

    def store_row(document: Any) -> None:
        put_message(process, document["id"])

    process.bus.owner = store_row
    monkeypatch.setattr(process.store, "query", slow)
    answer = process.http.post("/api/v1/messages", json=[MESSAGE] * 20)
    several.set()
    assert (answer.status_code, {item["status"] for item in answer.json()["items"]}) == (200, {"accepted"})


def put_message(process: Process, request_id: str, version: str = FIRST_VERSION) -> Message:
    message = Message(
        id=MessageName.of_request("orders", request_id).id,
        version=version,
        origin="o",
        namespace="orders",
        nominal=NOW,
        slot=NOW,
        topic="orders.reminders",
        payload=b"{}",
        keyed=False,
        headers="[]",
        expires_at=NOW,
        request_id=request_id,
    )
    process.put(message, message.key(message_shard("orders", None, request_id, SHARDS)))
    return message


def test_given_batch_then_each_message_has_its_receipt_in_order(process: Process) -> None:
    batch = [{**MESSAGE, "id": f"m-{number}"} for number in range(1_000)]
    answer = process.http.post("/api/v1/messages", json=batch)
    assert answer.status_code == 200
    assert [item["request_id"] for item in answer.json()["items"]] == [each["id"] for each in batch]
    assert process.http.post("/api/v1/messages", json=[*batch, batch[0]]).status_code == 400


def refuses(number: int) -> Callable[[Produce], bool]:
    return lambda order: json.loads(order.value).get("payload", json.loads(order.value).get("data")) == {"n": number}


def test_given_batch_of_which_the_broker_takes_a_part_then_the_others_are_pending_and_say_how_to_send_them_again(
    process: Process,
) -> None:
    """Found by a review: 503 for all of them, and whoever sent the batch again had the others delivered twice."""
    process.bus.refuses = refuses(1)
    batch = [{"namespace": "orders", "topic": "out", "after": "1h", "payload": {"n": number}} for number in range(3)]
    answer = process.http.post("/api/v1/messages", json=batch)
    items = answer.json()["items"]
    assert (answer.status_code, [item["status"] for item in items]) == (202, ["accepted", "pending", "accepted"])
    (error,) = items[1]["errors"]
    assert ("no leader" in error["problem"], error["hint"]) == (
        True,
        f"repeat it with the id {items[1]['request_id']}",
    )
    assert [item["errors"] for item in (items[0], items[2])] == [[], []]


def test_given_batch_of_which_the_broker_acknowledges_nothing_then_503_names_the_ids_to_repeat_it_with(
    process: Process,
) -> None:
    """Found in review: where acknowledgements are lost the records may be there, and a repeat without ids delivered each twice."""
    process.bus.refuses = lambda order: True
    batch = [{"namespace": "orders", "topic": "out", "after": "1h", "payload": {"n": number}} for number in range(3)]
    answer = process.http.post("/api/v1/messages", json=[{**batch[0], "id": "own"}, *batch[1:]])
    assert answer.status_code == 503
    errors = answer.json()["errors"]
    assert [error["field"] for error in errors] == ["[0]", "[1]", "[2]"]
    ids = [error["hint"].removeprefix("id: ") for error in errors]
    assert ids[0] == "own"
    assert len(set(ids)) == 3
    assert answer.headers["Retry-After"] == "2"


def test_given_events_that_the_broker_does_not_take_then_503_names_the_ids_to_repeat_them_with(
    process: Process,
) -> None:
    """Found by a review: a repeat "under the same id" was asked for, of an event whose id nobody had told."""
    process.bus.refuses = refuses(1)
    events = [{"type": "custom.x", "namespace": "a", "data": {"n": number}} for number in range(3)]
    alone = process.http.post("/api/v1/events", json=events[1])
    together = process.http.post("/api/v1/events", json=events)
    assert (alone.status_code, together.status_code) == (503, 503)
    assert alone.json()["request_id"] in alone.json()["detail"]
    (error,) = together.json()["errors"]
    assert (error["field"], error["hint"].startswith("id: ")) == ("[1]", True)
    assert "acknowledged 2 of 3 events" in together.json()["detail"]


def test_given_a_cloudevent_in_structured_mode_then_rest_announces_what_it_says(process: Process) -> None:
    event = {"specversion": "1.0", "id": "e-1", "source": "/gates/north", "type": "tidegate.custom.truck-arrived"}
    body = {**event, "subject": "gate-3", "data": {"namespace": "orders", "data": {"pallets": 12}}}
    headers = {"Content-Type": "application/cloudevents+json"}
    answer = process.http.post("/api/v1/events", content=json.dumps(body), headers=headers)
    assert (answer.status_code, [each["id"] for each in answer.json()["items"]]) == (200, ["e-1"])
    (sent,) = (each for each in process.bus.produced if each.topic == TOPICS.events)
    (read,) = parse_events(sent.value)
    assert (read.namespace, read.producer, read.event_key) == ("orders", "/gates/north", "custom/orders/truck-arrived")


def test_given_batch_with_mistakes_then_each_is_named_and_nothing_is_sent(process: Process) -> None:
    batch = [MESSAGE, {**MESSAGE, "topic": "no topic"}, 7, {**MESSAGE, "id": "x"}, {**MESSAGE, "id": "x"}]
    answer = process.http.post("/api/v1/messages", json=batch)
    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == ["[1].topic", "[2]", "[4].id"]
    assert process.bus.produced == []


def test_given_message_ten_years_ahead_then_400(process: Process) -> None:
    answer = process.http.post("/api/v1/messages", json={**MESSAGE, "after": "3660d"})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "after")


def test_given_payload_too_large_then_413(process: Process) -> None:
    assert process.http.post("/api/v1/messages", json={**MESSAGE, "payload": "x" * 262_145}).status_code == 413
    assert process.http.put(PUT_SCHEDULE, content=b"x" * 1_048_577).status_code == 413


def test_given_message_cancel_by_key_or_id_then_it_is_sent(process: Process) -> None:
    url = "/api/v1/messages"
    assert process.http.delete(url, params={"namespace": "orders", "key": "a/b"}).status_code == 200
    assert process.http.delete(url, params={"namespace": "orders", "message_id": "m-1"}).status_code == 200
    assert process.http.delete(url, params={"namespace": "orders"}).status_code == 400
    assert [each.get("key") or each["message_id"] for each in process.bus.on(TOPICS.requests)] == ["a/b", "m-1"]


def test_given_message_then_it_can_be_looked_at(process: Process) -> None:
    put_message(process, "m-7")
    query = {"namespace": "orders", "message_id": "m-7"}
    assert process.http.get("/api/v1/messages", params=query).json()["state"] == "waiting"
    missing = {"namespace": "orders", "key": "none"}
    assert process.http.get("/api/v1/messages", params=missing).status_code == 404


def test_given_a_message_that_a_wide_suspend_holds_back_then_it_waits_though_the_position_has_passed_its_time(
    process: Process,
) -> None:
    """It was `passed`: delivered, expired or given up, to whoever looked."""
    name, shard = MessageName.of_key("orders", "k"), message_shard("orders", "k", "", SHARDS)
    message = _keyed(name, "1")
    held = HeldMessage(
        id=name.id, version="1", namespace="orders", origin="1", slot=message.slot, attempt=1, size=len(message.payload)
    )
    for each in (message, held):
        process.put(each, each.key(shard))
    progress = keys.progress(shard)
    process.store.write([Put(progress, {"pk": progress.pk, "sk": progress.sk, "fired_slot": NOW + 1, "fired_id": "z"})])

    def state() -> str:
        shown = process.http.get("/api/v1/messages", params={"namespace": "orders", "key": "k"})
        return str(shown.json()["state"])

    assert state() == "waiting"
    process.store.write([Delete(held.key(shard))])
    assert state() == "passed"
    process.put(held, held.key(shard))
    guard = MessageFence(id=name.id, live_from="2")
    process.put(guard, guard.key(shard))
    assert state() == "passed", "withdrawn while it was held"


def test_given_an_id_of_the_form_that_is_printed_then_it_shows_the_message_that_its_cancel_means(
    process: Process,
) -> None:
    """The request's that has it, be it the id of its sender's run, or that of another message; else the message that it was printed of."""
    own = "0001-mfrggzdfmztwq2lkn5wg63tqoe"
    printed = public_id(
        message_shard("orders", None, "m-7", SHARDS), MessageName.of_request("orders", "m-7"), FIRST_VERSION
    )

    def shown(message_id: str, namespace: str = "orders") -> Any:
        answer = process.http.get("/api/v1/messages", params={"namespace": namespace, "message_id": message_id})
        return answer.json()["request_id"] if answer.status_code == 200 else answer.status_code

    for request_id in (own, "m-7"):
        put_message(process, request_id)
        assert shown(request_id) == request_id
    assert shown(printed) == "m-7"
    assert shown(printed, "others") == 404
    put_message(process, printed)
    assert shown(printed) == printed


def test_given_rows_of_a_repeat_that_was_refused_then_the_message_that_will_be_sent_is_shown(process: Process) -> None:
    """Found in review: an owner fell behind the rows of a repeat, and its successor refused that: whoever looked was told of it, by an id that
    no cancel finds, while the first one was sent.
    """
    name, shard = MessageName.of_key("orders", "k"), message_shard("orders", "k", "", SHARDS)
    kept, refused = (_keyed(name, f"{number}") for number in (1, 2))
    for each in (kept, refused):
        process.put(each, each.key(shard))
    guard = MessageFence(id=name.id, refused=frozenset({refused.version}))
    process.put(guard, guard.key(shard))
    shown = process.http.get("/api/v1/messages", params={"namespace": "orders", "key": "k"}).json()
    assert shown["id"] == public_id(shard, name, kept.version)


@pytest.mark.parametrize("timing", [PATIENT])
def test_given_rows_of_a_repeat_that_was_refused_then_the_answer_names_the_message_that_will_be_sent(
    process: Process,
) -> None:
    name, shard = MessageName.of_key("orders", "k"), message_shard("orders", "k", "", SHARDS)
    kept, refused = (_keyed(name, f"{number}") for number in (1, 2))

    def store_rows(document: Any) -> None:
        for each in (kept, refused):
            process.put(each, each.key(shard))
        guard = MessageFence(id=name.id, refused=frozenset({refused.version}))
        process.put(guard, guard.key(shard))

    process.bus.owner = store_rows
    answer = process.http.post("/api/v1/messages", json={**MESSAGE, "id": "m-1", "key": "k"})
    assert answer.json()["id"] == public_id(shard, name, kept.version)


def test_given_a_message_with_a_key_then_its_receipt_is_found_by_id_and_key_without_the_shard(process: Process) -> None:
    """Of a list the one location that is told names the shard of the first that is pending; of the others it was said that none is kept."""
    name, shard = MessageName.of_key("orders", "k"), message_shard("orders", "k", "", SHARDS)
    message = replace(_keyed(name, "1"), key_text="k", request_id="m-1")
    process.put(message, message.key(shard))
    found = process.http.get("/api/v1/requests/orders/m-1", params={"key": "k"})
    assert (found.status_code, found.json()["status"]) == (200, "accepted")
    assert found.json()["id"] == public_id(shard, name, "1")
    assert process.http.get("/api/v1/requests/orders/m-2", params={"key": "k"}).status_code == 404


def _keyed(name: MessageName, version: str) -> Message:
    return Message(
        id=name.id,
        version=version,
        origin=version,
        namespace="orders",
        nominal=NOW,
        slot=NOW,
        topic="orders.reminders",
        payload=b"{}",
        keyed=True,
        headers="[]",
        expires_at=NOW,
        request_id="m-1",
    )


def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the names of the threads on which requests and events are parsed, in order, as they come."""
    where: list[str] = []

    def watching(parse: Any) -> Any:
        def call(*given: Any) -> Any:
            where.append(threading.current_thread().name)
            return parse(*given)

        return call

    monkeypatch.setattr("tidegate_api.routes.parameters.parse_request", watching(parse_request))
    monkeypatch.setattr("tidegate_api.routes.events.parse_events", watching(parse_events))
    return where


@pytest.mark.parametrize("path", ["/api/v1/messages", "/api/v1/events"])
def test_given_a_batch_then_it_is_read_off_the_loop_and_programs_can_start_meanwhile(
    process: Process, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    where = watched(monkeypatch)
    batch = [MESSAGE, MESSAGE] if path.endswith("messages") else [{"type": "custom.x", "namespace": "a"}] * 2
    assert process.http.post(path, json=batch).status_code == 200
    assert len(where) == 2
    assert all(name.startswith("tidegate-read") for name in where)


def test_given_a_batch_of_faults_then_only_as_many_are_looked_for_as_are_told(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = watched(monkeypatch)
    answer = process.http.post("/api/v1/messages", json=[{**MESSAGE, "topc": 1}] * 200)
    assert [each["field"] for each in answer.json()["errors"]] == [f"[{n}].topc" for n in range(MAX_PROBLEMS)]
    assert len(parsed) == MAX_PROBLEMS


def test_given_a_byte_order_mark_and_decimals_then_the_message_is_sent_with_its_digits(process: Process) -> None:
    body = json.dumps({**MESSAGE, "payload": {"price": "@"}}).replace('"@"', "19.90").encode()
    answer = process.http.post(
        "/api/v1/messages", content=b"\xef\xbb\xbf" + body, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 200
    (sent,) = process.bus.on(TOPICS.requests)
    assert sent["payload_text"] == '{"price":19.90}'
