"""A row for each bound of a size (reference, rows Deserialisation, Parsers, Cron bombs): what is beyond it is refused, and cheaply.

Its cost is CPU time, the least of several tries, in units of a calibration (`cpu_time.py`): the machine's speed counts for nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.tidegate_core.cpu_time import TRIES, calibration_s, least_cpu_s
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.ingest.source_mapping import events_of
from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.language.formats.parsing import parse_events, parse_request
from tidegate_core.language.formats.record_decoding import LONGEST_NUMBER_DIGITS, MAX_CONTAINERS, Headers
from tidegate_core.language.requests.request_base import MAX_RECORD_BYTES
from tidegate_core.language.values.problems import RefusedRecord

REFUSAL_CALIBRATIONS = 5
"""Some 50 ms on an idle machine."""
DENSE_READINGS = 20
"""So many times the standard library's reading of it costs a record of 1 MiB that is full of numbers or names: 7 on a quiet machine."""
MIB = 1_048_576

EVENT = {"type": "custom.x", "namespace": "flights"}
SEND = {"id": "m", "type": "message.send", "namespace": "orders", "topic": "out", "after": "10s"}
NAMED = {"id": "a", "type": "schedule.apply", "namespace": "flights", "name": "n"}
PROGRAM = {"type": "program", "program": {"type": "python", "file": "/j.py"}}
CRON = {"type": "cron", "expression": "0 6 * * *"}
SOURCE = SourceSpec.model_validate(SourceSpec.EXAMPLE)


def an_apply(**fields: Any) -> bytes:
    spec = {"kind": "schedule", "namespace": "flights", "name": "n", "target": PROGRAM, "trigger": CRON, **fields}
    return json.dumps({**NAMED, "spec": spec}).encode()


def a_cron(expression: str) -> bytes:
    return an_apply(trigger={"type": "cron", "expression": expression})


def an_arg(*args: str) -> bytes:
    return an_apply(target={"type": "program", "program": {**PROGRAM["program"], "args": args}})  # type: ignore[dict-item]


def nested(levels: int, width: int = 1) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "data_partitions", "dataset": "a"}
    for _ in range(levels):
        inner = {"type": "all_of", "triggers": [inner] * width}
    return inner


def holding(raw: str) -> bytes:
    """An event whose data is this text as it stands."""
    return json.dumps({**EVENT, "data": "@"}).replace('"@"', raw).encode()


def paying(raw: str) -> bytes:
    return json.dumps({**SEND, "payload": "@"}).replace('"@"', raw).encode()


def sending(**fields: Any) -> bytes:
    return json.dumps({**SEND, "payload": 1, **fields}).encode()


TWICE = "{" + "".join(f'"a{number}":1,"a{number}":1,' for number in range(40_000)) + '"b":1}'
PLAIN = json.dumps(EVENT).encode()

ROWS: list[Any] = [
    pytest.param(parse_request, sending(reason="r" * MIB), (), "is too large", id="a record of more than 1 MiB"),
    pytest.param(parse_request, b'{"a":[' + b'{"a":1},' * 500_000 + b"1]}", (), "is too large", id="4 MB of objects"),
    pytest.param(parse_request, paying('"' + "x" * 270_000 + '"'), (), "payload: is too large", id="a payload"),
    pytest.param(
        parse_request, paying('"' + ("9" * 308 + " ") * 2_000 + '"'), (), "too large", id="2,000 long numbers"
    ),
    pytest.param(parse_request, sending(payload_base64="A" * 900_000), (), "payload", id="a payload in base64"),
    pytest.param(parse_events, holding('"' + "x" * 70_000 + '"'), (), "data: has 70002 bytes", id="an event's data"),
    pytest.param(parse_events, holding("[" * 201 + "]" * 201), (), "is nested too deeply", id="201 levels"),
    pytest.param(parse_events, holding("[" * 300_000), (), "is too large", id="300,000 levels"),
    pytest.param(parse_events, holding("[" + "[]," * 340_000 + "1]"), (), "131072 lists", id="340,000 lists"),
    pytest.param(parse_request, paying("9" * 309), (), "number of 309 digits", id="309 digits"),
    pytest.param(parse_events, holding("-" + "9" * 4_000), (), "number of 4000 digits", id="4,000 digits"),
    pytest.param(parse_events, holding("9" * 900_000), (), "is not JSON: number out of range", id="900,000 digits"),
    pytest.param(parse_events, holding("1e309"), (), "a number that JSON cannot hold", id="1e309 in an event"),
    pytest.param(parse_request, paying("-1e309"), (), "a number that JSON cannot hold", id="1e309 in a payload"),
    pytest.param(parse_events, holding("NaN"), (), "is not JSON", id="NaN"),
    pytest.param(parse_request, paying("-Infinity"), (), "is not JSON", id="Infinity"),
    pytest.param(parse_events, holding('"\\ud800"'), (), "is not JSON", id="half a surrogate pair"),
    pytest.param(parse_events, b'"\xed\xa0\x80"', (), "is not JSON", id="half a surrogate pair in UTF-8"),
    pytest.param(parse_events, b'{"a":{"b":1,"b":2}}', (), 'the field "b" twice', id="a name twice"),
    pytest.param(parse_request, json.dumps({**NAMED, "name": "x" * 900_000}).encode(), (), "name", id="a name"),
    pytest.param(parse_request, json.dumps({"type": "x" * 900_000}).encode(), (), "is unknown", id="a type"),
    pytest.param(parse_request, sending(reason="r" * 900_000), (), "reason: has more than 1024", id="a reason"),
    pytest.param(parse_request, sending(**{"x" * 900_000: 1}), (), "is not a field", id="the name of a field"),
    pytest.param(parse_request, sending(**{f"f{n}": 1 for n in range(99)}), (), "has 105 fields", id="fields"),
    pytest.param(parse_request, sending(headers={f"k{n}": "v" for n in range(20_000)}), (), "at most 64", id="headers"),
    pytest.param(parse_request, sending(after="9" * 900_000 + "s"), (), "is not a duration", id="a duration"),
    pytest.param(parse_events, PLAIN, [("ce_id", b"x" * 3_000_000)], "id: has more than 1024", id="a header's id"),
    pytest.param(parse_events, PLAIN, [("ce_time", b"2" * 3_000_000)], "is not an RFC 3339", id="a header's time"),
    pytest.param(parse_request, a_cron("*/1," * 250_000), (), "at most 256 are allowed", id="a cron expression"),
    pytest.param(parse_request, a_cron("9," * 120 + "x * * * *"), (), "is not in 0-59", id="a cron list"),
    pytest.param(parse_request, an_arg("${" * 100_000), (), "at most 8192", id="a template"),
    pytest.param(parse_request, an_arg("${x}" * 2_000), (), "${x} is unknown", id="2,000 templates"),
    pytest.param(parse_request, an_arg(*["x"] * 50_000), (), "at most 256 are allowed", id="arguments"),
    pytest.param(parse_request, an_apply(labels={f"k{n}": "v" for n in range(20_000)}), (), "at most 64", id="labels"),
    pytest.param(parse_request, an_apply(constraints=[{}] * 17), (), "at most 16", id="constraints"),
    pytest.param(
        parse_request, an_apply(trigger=nested(60)), (), "more than 32 levels deep", id="60 levels of triggers"
    ),
    pytest.param(parse_request, an_apply(trigger=nested(12, 2)), (), "more than 5000 lists", id="4,096 leaves"),
    pytest.param(parse_request, an_apply(trigger=nested(1, 51)), (), "at most 50 are allowed", id="51 leaves"),
]
DENSE: list[Any] = [
    # Found by this table: 9 s of CPU over 860 kB, because each name was looked for in a list of all others.
    pytest.param(parse_events, TWICE.encode(), (), "twice in one object", id="40,000 names twice"),
    pytest.param(parse_events, holding("[" + "1," * 500_000 + "1]"), (), "data: has", id="500,000 numbers"),
    pytest.param(parse_events, b"{" + b'"a":1,' * 140_000 + b'"b":1}', (), "twice", id="one name 140,000 times"),
]


def refusal_of(parse: Callable[[bytes, Headers], object], value: bytes, headers: Headers) -> tuple[str, float]:
    """Returns what is said, and the least CPU time of some tries, seconds."""
    took, told = [], set()
    for _ in range(TRIES):
        begun = time.process_time()
        with pytest.raises(RefusedRecord) as caught:
            parse(value, headers)
        took.append(time.process_time() - begun)
        told.add(str(caught.value))
    (said,) = told
    return said, min(took)


@pytest.mark.parametrize(("parse", "value", "headers", "said"), ROWS)
def test_given_more_than_is_allowed_then_it_is_refused_soon(
    parse: Callable[[bytes, Headers], object], value: bytes, headers: Headers, said: str
) -> None:
    told, took = refusal_of(parse, value, headers)
    assert said in told
    assert took < REFUSAL_CALIBRATIONS * calibration_s()


@pytest.mark.parametrize(("parse", "value", "headers", "said"), DENSE)
def test_given_a_full_record_of_small_things_then_it_costs_what_reading_it_costs(
    parse: Callable[[bytes, Headers], object], value: bytes, headers: Headers, said: str
) -> None:
    assert len(value) < MAX_RECORD_BYTES
    told, took = refusal_of(parse, value, headers)
    assert said in told
    assert took < DENSE_READINGS * least_cpu_s(lambda: json.loads(value))


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(holding("9" * LONGEST_NUMBER_DIGITS), id="308 digits"),
        pytest.param(holding('"' + "9" * 5_000 + '"'), id="5,000 digits in a text"),
        pytest.param(holding('{"a": 9, "b": "' + "9" * 400 + '"}'), id="400 digits in a text beside a number"),
        pytest.param(holding("[" * 200 + "]" * 200), id="200 levels"),
        pytest.param(holding('"' + "x" * 65_534 + '"'), id="64 KiB of data"),
    ],
)
def test_given_as_much_as_is_allowed_then_it_is_taken(value: bytes) -> None:
    assert len(parse_events(value)) == 1


def test_given_as_many_brackets_as_a_payload_has_room_for_then_it_is_taken() -> None:
    value = paying("[" + "[]," * (MAX_CONTAINERS // 2) + "1]")
    assert parse_request(value).id == "m"


def test_given_a_record_of_a_source_that_is_all_brackets_then_it_is_refused_soon() -> None:
    value = b"[" + b"[]," * 340_000 + b"1]"
    told, took = refusal_of(lambda raw, _: events_of(SOURCE, LogRecord(0, 0, None, raw, ()), "t/0/0"), value, ())
    assert "131072 lists" in told
    assert took < REFUSAL_CALIBRATIONS * calibration_s()


def test_given_a_record_that_is_too_large_then_its_sender_is_told_where_the_first_mib_says_who_it_is() -> None:
    with pytest.raises(RefusedRecord) as caught:
        parse_request(sending(reason="r" * MIB))
    assert (caught.value.request_id, caught.value.namespace) == ("m", "orders")
