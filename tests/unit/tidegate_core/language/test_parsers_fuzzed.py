"""The three parsers of records, on whatever may lie in a topic: a result, or the refusal, and nothing else is ever raised.

What is accepted can be kept: its identity is told, and it is JSON that any reader takes.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.tier import examples
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.ingest.source_mapping import events_of
from tidegate_core.language.events.events import CustomEvent, DataPartitionEvent, Event
from tidegate_core.language.events.trigger_facts import fact_to_json
from tidegate_core.language.formats.parsing import parse_events, parse_request, parse_source
from tidegate_core.language.requests.requests import REQUEST_TYPES
from tidegate_core.language.values.problems import RefusedRecord

ODD_TEXTS = (
    *(
        '"\\ud800"',
        '"\\u0000"',
        '"' + "x" * 3_000 + '"',
        '""',
        '"\\uffff"',
        '"🙈"',
        '"${a.b[0]}"',
        '"-"',
        '"1e9"',
        '"∞"',
    ),
    *("1e999", "-1e999", "1e-999", "9" * 400, "-0", "0.1", "1E400", "true", "null", "{}", "[]", "[[[[]]]]"),
    *(
        "[" * 150 + "]" * 150,
        "[" * 300 + "]" * 300,
        '{"a":1,"a":2}',
        '{"":{"":{}}}',
        "NaN",
        "Infinity",
        "\\",
        '"',
        "\xff",
    ),
)
"""As they stand in a record: what JSON's writers make of Python's values is the harmless part of it."""
EXAMPLES: tuple[dict[str, Any], ...] = (
    DataPartitionEvent.EXAMPLE,
    CustomEvent.EXAMPLE,
    *(model.EXAMPLE for model in REQUEST_TYPES.values()),
    {"notificationType": "PARTITION", "properties": {"datasetId": "a", "numPartitions": "2", "partitionKeys": "[]"}},
)
SOURCE = parse_source(
    {
        "kind": "source",
        "namespace": "flights",
        "name": "landed",
        "topic": "lake.commits",
        "event": {
            "dataset": {"pointer": "/dataset"},
            "partition": {"pointer": "/partition"},
            "id": {"header": "ce_id"},
            "bytes": {"pointer": "/bytes"},
            "rows": {"header": "ce_type"},
            "kind": {"pointer": "/kind"},
            "version": {"pointer": "/spec/name"},
            "event_time": {"pointer": "/event_time"},
            "producer": {"pointer": "/data"},
        },
    }
)
HEADER_NAMES = ("ce_id", "ce_type", "ce_time", "content-type", "CE_SpecVersion", "x", "")
headers = st.lists(
    st.tuples(
        st.sampled_from(HEADER_NAMES),
        st.binary(max_size=20)
        | st.sampled_from([b"tidegate.data.partition", b"application/cloudevents+json", b"\xff"]),
    ),
    max_size=3,
).map(tuple)
odd_json = st.sampled_from(ODD_TEXTS) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda leaf: st.lists(leaf, max_size=4) | st.dictionaries(st.text(max_size=5), leaf, max_size=4),
    max_leaves=8,
).map(json.dumps)


@st.composite
def records(draw: st.DrawFn) -> bytes:
    """Bytes, JSON of any kind, or an example with some of its fields, also inner ones, replaced, added, or cut in the middle."""
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.binary(max_size=80))
    if kind == 1:
        return draw(odd_json).encode("latin-1", errors="replace")
    document = json.loads(json.dumps(draw(st.sampled_from(EXAMPLES))))
    replaced: dict[str, str] = {}
    for number in range(draw(st.integers(1, 3))):
        at = document
        while nested := [value for value in at.values() if isinstance(value, dict) and value]:
            if not draw(st.booleans()):
                break
            at = draw(st.sampled_from(nested))
        name = draw(st.sampled_from([*at, "spec", "data", "id", "type"]))
        at[name] = f"@@{number}@@"
        replaced[f'"@@{number}@@"'] = draw(odd_json)
    text = json.dumps(document)
    for mark, odd in replaced.items():
        text = text.replace(mark, odd)
    value = text.encode("utf-8", errors="surrogatepass")
    return value[: draw(st.integers(0, len(value)))] if kind == 2 else value


def is_understood(refused: RefusedRecord) -> bool:
    """It says what is wrong with the record, and not with us."""
    return bool(refused.problems) and "internal error" not in str(refused)


def can_be_kept(event: Event) -> bool:
    kept = json.dumps(fact_to_json(event), allow_nan=False, ensure_ascii=False).encode()
    return bool(event.event_key and event.dedupe_id and json.loads(kept))


quietly = settings(suppress_health_check=[HealthCheck.too_slow], max_examples=examples(250))


@quietly
@given(value=st.none() | records(), headers=headers)
def test_given_anything_on_the_events_topic_then_there_are_events_or_a_refusal(value: Any, headers: Any) -> None:
    try:
        events = parse_events(value, headers)
    except RefusedRecord as refused:
        assert is_understood(refused)  # noqa: PT017 - both outcomes are right
    else:
        assert all(can_be_kept(event) for event in events)


@quietly
@given(value=st.none() | records(), headers=headers)
def test_given_anything_on_the_requests_topic_then_there_is_a_request_or_a_refusal(value: Any, headers: Any) -> None:
    try:
        request = parse_request(value, headers)
    except RefusedRecord as refused:
        assert is_understood(refused)  # noqa: PT017 - both outcomes are right
    else:
        assert json.loads(request.to_json())


@quietly
@given(value=st.none() | records(), headers=headers)
def test_given_anything_on_a_sources_topic_then_there_is_an_event_or_a_refusal(value: Any, headers: Any) -> None:
    try:
        ((_, event),) = events_of(SOURCE, LogRecord(1, 0, None, value, headers), "c" * 32 + "/0/1").events
    except RefusedRecord as refused:
        assert is_understood(refused)  # noqa: PT017 - both outcomes are right
    else:
        assert can_be_kept(event)
