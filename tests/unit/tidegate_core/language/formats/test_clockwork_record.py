"""Clockwork's own record, taken as `message.send`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.requests import MessageSend
from tidegate_core.language.values.problems import RefusedRecord

THEIRS = {
    "clientId": "client1",
    "scheduleKey": "order1-create",
    "taskData": "payload",
    "delivery": {"topic": "orderTopic"},
    "scheduleTime": 1_553_629_195_570,
}


def request(**fields: Any) -> MessageSend:
    read = parse_request(json.dumps({**THEIRS, **fields}).encode())
    assert isinstance(read, MessageSend)
    return read


def faults(**fields: Any) -> list[str]:
    with pytest.raises(RefusedRecord) as caught:
        request(**fields)
    return [problem.field for problem in caught.value.problems]


def test_given_their_record_then_it_is_a_message() -> None:
    read = request(orderingKey="o-1")

    assert (read.namespace, read.key, read.topic) == ("client1", "order1-create", "orderTopic")
    assert (read.deliver_at, read.message_key, read.payload_bytes) == (1_553_629_195_570, "o-1", b"payload")


def test_given_task_that_is_no_text_then_it_is_json() -> None:
    assert request(taskData={"order": 1}).payload_bytes == b'{"order":1}'


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"clientId": "Client 1"}, ["clientId"]),
        ({"delivery": {"topic": "a b"}}, ["delivery.topic"]),
        ({"delivery": "orderTopic"}, ["delivery"]),
        ({"delivery": {"topic": "t", "url": "x"}}, ["delivery"]),
        ({"scheduleTime": "2026-11-20T22:00:00Z"}, ["scheduleTime"]),
        ({"scheduleTime": True}, ["scheduleTime"]),
        ({"scheduleTime": -1}, ["scheduleTime"]),
        ({"sheduleKey": "x"}, ["sheduleKey"]),
    ],
)
def test_given_a_fault_then_it_is_told_in_their_words(change: dict[str, Any], fields: list[str]) -> None:
    assert faults(**change) == fields


@pytest.mark.parametrize("missing", ["scheduleKey", "taskData", "delivery", "scheduleTime"])
def test_given_a_field_is_missing_then_it_is_named(missing: str) -> None:
    value = json.dumps({name: field for name, field in THEIRS.items() if name != missing}).encode()

    with pytest.raises(RefusedRecord) as caught:
        parse_request(value)
    assert [problem.field for problem in caught.value.problems] == [missing]
    assert caught.value.namespace == "client1"


@pytest.mark.parametrize("missing", ["scheduleKey", "taskData", "delivery", "scheduleTime"])
def test_given_a_field_is_null_then_it_is_missing_as_their_clients_write_it(missing: str) -> None:
    """Without a key it was a message that nobody could cancel or replace, and a task that was not given was sent as the text `null`."""
    with pytest.raises(RefusedRecord) as caught:
        request(**{missing: None})
    assert [(problem.field, problem.problem) for problem in caught.value.problems] == [(missing, "is missing")]


def test_given_their_record_without_a_client_then_that_is_what_is_missing() -> None:
    """It was told that `type` is missing, which their records never have."""
    document = {name: value for name, value in THEIRS.items() if name != "clientId"}
    with pytest.raises(RefusedRecord) as caught:
        parse_request(json.dumps(document).encode())
    assert [str(problem) for problem in caught.value.problems] == ["clientId: is missing"]
    assert caught.value.key == "order1-create"
