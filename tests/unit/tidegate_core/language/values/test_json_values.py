"""Fractions keep their digits on the way from a sender's JSON to the record that is delivered.

JSON pointers, by the examples of RFC 6901 and beyond.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.formats.parsing import parse_request, parse_schedule
from tidegate_core.language.requests.requests import MessageSend, ScheduleApply
from tidegate_core.language.targets.message_target import MessageTarget
from tidegate_core.language.values.json_values import (
    MISSING,
    WrittenNumber,
    exact_json,
    exactly_read,
    value_at,
    written_number,
)

PAYLOAD = (
    '{"price":19.90,"rate":0.1234567890123456789,"big":12345678901234567.89,"e":1E3,"n":[1,2.5,{"x":-0.10}],"t":"1.10"}'
)


def sent(payload: str, **fields: Any) -> MessageSend:
    head = {"id": "r-1", "type": "message.send", "namespace": "n", "topic": "t", "after": "1h", **fields}
    request = parse_request(f'{json.dumps(head)[:-1]}, "payload": {payload}}}'.encode())
    assert isinstance(request, MessageSend)
    return request


def test_given_decimals_in_a_payload_then_they_are_delivered_digit_by_digit() -> None:
    """`12345678901234567.89` arrived as 1.2345678901234568e16."""
    request = sent(PAYLOAD)
    assert request.payload_bytes.decode() == PAYLOAD
    again = parse_request(request.to_json())
    assert isinstance(again, MessageSend)
    assert again.payload_bytes.decode() == PAYLOAD, "from the API by way of the topic"


def test_given_decimals_in_the_payload_of_a_recurring_message_then_its_stored_form_has_them() -> None:
    target = f'{{"type": "message", "topic": "t", "payload": {PAYLOAD}}}'
    spec = f'{{"kind": "schedule", "target": {target}, "trigger": {{"type": "every", "period": "1h"}}}}'
    record = f'{{"type": "schedule.apply", "namespace": "n", "name": "a", "spec": {spec}}}'
    request = parse_request(record.encode())
    assert isinstance(request, ScheduleApply)
    stored = ScheduleSpec.from_canonical(request.spec.canonical_json())
    assert isinstance(stored.target, MessageTarget)
    assert stored.target.payload_bytes.decode() == PAYLOAD


def test_given_a_payload_without_such_decimals_then_it_is_kept_as_json() -> None:
    request = sent('{"a": 1.5, "b": [1, "2.50"]}')
    assert request.payload == {"a": 1.5, "b": [1, "2.50"]}
    assert request.payload_text is None


def test_given_numbers_for_texts_of_a_program_in_json_then_they_are_what_was_written() -> None:
    program = {"type": "python", "file": "/a.py", "args": ["@"]}
    target, trigger = {"type": "program", "program": program}, {"type": "every", "period": "1h"}
    spec = {"kind": "schedule", "target": target, "trigger": trigger}
    document = {"type": "schedule.apply", "namespace": "n", "name": "a", "spec": spec}
    request = parse_request(json.dumps(document).replace('"@"', "1.10").encode())
    assert isinstance(request, ScheduleApply)
    assert request.spec.program.args == ("1.10",)


@pytest.mark.parametrize("beside", ["payload_text", "payload_base64"])
def test_given_two_payloads_then_they_are_refused_also_with_decimals(beside: str) -> None:
    with pytest.raises(ValueError, match="must not be given with another payload"):
        sent("1.10", **{beside: "eA=="})


def test_given_a_number_beyond_any_float_then_it_is_refused_and_not_sent_on() -> None:
    with pytest.raises(ValueError, match="number that JSON cannot hold"):
        sent('{"x": 1e400}')


FRACTIONS = st.from_regex(r"-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})([eE][-+]?[0-9]{1,2})?", fullmatch=True)


@given(FRACTIONS)
def test_given_any_fraction_then_its_value_stays_exact(text: str) -> None:
    value = f"[{text}]".encode()
    found = exactly_read(value, json.loads(value))
    assert Decimal(json.loads(exact_json(found), parse_float=Decimal)[0]) == Decimal(text)
    assert found == json.loads(value), "it is compared as before"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | FRACTIONS.map(written_number),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_given_any_value_then_it_is_written_as_json_reads_it(value: Any) -> None:
    assert json.loads(exact_json(value)) == value


def test_given_what_holds_itself_or_is_no_json_then_it_is_refused() -> None:
    circle: list[Any] = [WrittenNumber("1.10")]
    circle.append(circle)
    for value, error in ((circle, ValueError), ([float("nan")], ValueError), ([b"x"], TypeError)):
        with pytest.raises(error):
            exact_json(value)


def test_given_a_definition_with_a_template_beside_decimals_then_the_template_is_told() -> None:
    fields = {"namespace": "n", "name": "a", "trigger": {"type": "every", "period": "1h"}}
    target = {"type": "message", "topic": "t", "payload": {"a": WrittenNumber("1.10"), "b": "${nominal}"}}
    with pytest.raises(ValueError, match=r"payload.*contains"):
        parse_schedule({**fields, "target": target})


DOCUMENT = {
    "foo": ["bar", "baz"],
    "": 0,
    "a/b": 1,
    "c%d": 2,
    "m~n": 8,
    " ": 7,
    "deep": {"er": [{"x": None}]},
}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT),
        ("/foo", ["bar", "baz"]),
        ("/foo/0", "bar"),
        ("/", 0),
        ("/a~1b", 1),
        ("/c%d", 2),
        ("/m~0n", 8),
        ("/ ", 7),
        ("/deep/er/0/x", None),
        ("/foo/2", MISSING),
        ("/foo/-", MISSING),
        ("/foo/00", MISSING),
        ("/foo/-1", MISSING),
        ("/foo/٣", MISSING),
        ("/foo/99999999999999999999", MISSING),
        ("/nothing", MISSING),
        ("/foo/0/0", MISSING),
        ("/deep/er/0/x/y", MISSING),
    ],
)
def test_given_a_pointer_then_its_value_is_found(pointer: str, value: Any) -> None:
    found = value_at(DOCUMENT, pointer)
    assert found is value if value is MISSING else found == value
