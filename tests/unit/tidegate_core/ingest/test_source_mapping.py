"""One record of a source's topic becomes one event of the source's namespace, or is refused with all reasons."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.ingest.source_mapping import events_of
from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.language.events.events import DataPartitionEvent
from tidegate_core.language.formats.parsing import parse_source
from tidegate_core.language.requests.request_base import MAX_RECORD_BYTES
from tidegate_core.language.values.problems import RefusedRecord

ORIGIN = f"{'c' * 32}/3/17"
EVENT = {"dataset": "raw", "partition": {"pointer": "/day"}}


def a_spec(**mapping: Any) -> SourceSpec:
    source = {"namespace": "flights", "name": "landed", "topic": "lake", "event": EVENT | mapping}
    return parse_source(source)


def mapped(spec: SourceSpec, value: Any = None, headers: tuple[tuple[str, bytes], ...] = ()) -> DataPartitionEvent:
    raw = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
    ((_, event),) = events_of(spec, LogRecord(17, 0, None, raw, headers), ORIGIN).events
    return event


def problems(spec: SourceSpec, value: Any = None, headers: tuple[tuple[str, bytes], ...] = ()) -> list[str]:
    with pytest.raises(RefusedRecord) as refused:
        mapped(spec, value, headers)
    assert (refused.value.namespace, refused.value.name) == ("flights", "landed")
    assert refused.value.request_id is None, "a record of a source is no request that could be answered"
    return [f"{each.field}: {each.problem}" for each in refused.value.problems]


def test_given_a_record_then_its_event_is_of_the_sources_namespace_whatever_it_says() -> None:
    event = mapped(a_spec(), {"day": "2026-11-20", "namespace": "others", "dataset": "secret"})
    assert (event.namespace, event.dataset, event.data_partition) == ("flights", "raw", "2026-11-20")
    assert event.id == f"landed/{ORIGIN}"
    assert (event.kind, event.bytes, event.rows) == ("created", None, None)


def test_given_all_fields_then_each_comes_from_where_it_is_taken() -> None:
    spec = a_spec(
        dataset={"pointer": "/file/set"},
        id={"header": "commit"},
        kind={"pointer": "/kind"},
        bytes={"header": "size"},
        rows={"pointer": "/file/rows"},
        version={"pointer": "/etag"},
        event_time={"header": "at"},
        producer="lake",
    )
    value = {"day": 20261120, "file": {"set": "raw", "rows": 842}, "kind": "replaced", "etag": 7}
    headers = (("commit", b"c-0"), ("size", b"1048576"), ("at", b"2026-11-20T22:00:00Z"), ("commit", b"c-1"))
    event = mapped(spec, value, headers)
    assert (event.data_partition, event.dataset, event.id) == ("20261120", "raw", "landed/c-1")
    assert (event.kind, event.bytes, event.rows, event.version) == ("replaced", 1_048_576, 842, "7")
    assert event.producer == "lake"
    assert event.event_time is not None


def test_given_headers_alone_then_the_value_may_be_anything() -> None:
    spec = a_spec(partition={"header": "day"})
    assert mapped(spec, b"\xff\x00", (("day", b"d1"),)).data_partition == "d1"
    assert mapped(spec, None, (("day", b"d1"),)).data_partition == "d1"


@pytest.mark.parametrize("value", [{"day": "d1"}, {"day": "d1", "size": None}])
def test_given_no_size_then_it_stays_open(value: Any) -> None:
    assert mapped(a_spec(bytes={"pointer": "/size"}), value).bytes is None


@pytest.mark.parametrize(
    ("mapping", "value", "said"),
    [
        pytest.param({}, b"no JSON", "is not JSON", id="no JSON"),
        pytest.param({}, b"", "has no value, and is not JSON", id="empty"),
        pytest.param({}, None, "has no value, and is not JSON", id="a tombstone"),
        pytest.param(
            {}, {"date": "d1"}, "partition: is taken from the pointer /day, which the record does not", id="gone"
        ),
        pytest.param({}, {"day": None}, "partition: is taken from the pointer /day, which the record does", id="null"),
        pytest.param({}, {"day": ["d1"]}, "partition: is taken from the pointer /day, which is neither", id="a list"),
        pytest.param({}, {"day": True}, "partition: is taken from the pointer /day, which is neither", id="a flag"),
        pytest.param({}, {"day": 1.5}, "partition: is taken from the pointer /day, which is neither", id="a fraction"),
        pytest.param({}, {"day": "x" * 257}, "partition: ", id="too long"),
        pytest.param({"id": {"header": "id"}}, {"day": "d"}, "id: is taken from the header id, which", id="no id"),
        pytest.param(
            {"bytes": {"pointer": "/n"}}, {"day": "d", "n": "big"}, 'bytes: "big" is not a size', id="no size"
        ),
        pytest.param({"bytes": {"pointer": "/n"}}, {"day": "d", "n": -1}, "bytes: -1 is not", id="negative"),
        pytest.param({"rows": {"pointer": "/n"}}, {"day": "d", "n": "x"}, "rows: ", id="rows"),
        pytest.param({"kind": {"pointer": "/n"}}, {"day": "d", "n": "moved"}, "kind: ", id="kind"),
        pytest.param({"dataset": {"pointer": "/n"}}, {"day": "d", "n": "A b"}, "dataset: ", id="dataset"),
        pytest.param({}, b'{"day": "' + b"x" * MAX_RECORD_BYTES + b'"}', "is too large", id="too large"),
    ],
)
def test_given_a_record_that_does_not_fit_then_the_reason_names_field_and_place(
    mapping: Any, value: Any, said: str
) -> None:
    found = problems(a_spec(**mapping), value)
    assert said in found[0]


def test_given_several_faults_then_all_are_named() -> None:
    spec = a_spec(id={"header": "id"}, dataset={"pointer": "/set"})
    assert len(problems(spec, {})) == 3


def test_given_a_header_that_is_no_text_then_it_is_refused() -> None:
    assert "not UTF-8" in problems(a_spec(partition={"header": "day"}), {}, (("day", b"\xff"),))[0]


def is_event_or_refusal(spec: SourceSpec, record: LogRecord) -> bool:
    try:
        return all(event.namespace == "flights" for _, event in events_of(spec, record, ORIGIN).events)
    except RefusedRecord as refused:
        return bool(refused.problems)


@given(value=st.binary(max_size=60), headers=st.lists(st.tuples(st.sampled_from(["day", "x"]), st.binary(max_size=9))))
def test_given_any_bytes_then_there_is_an_event_or_a_refusal(value: bytes, headers: list[tuple[str, bytes]]) -> None:
    spec = a_spec(dataset={"pointer": "/a/0"}, id={"header": "day"}, bytes={"header": "x"})
    assert is_event_or_refusal(spec, LogRecord(1, 0, None, value, tuple(headers)))


LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=9)


@given(st.recursive(LEAVES, lambda leaf: st.lists(leaf) | st.dictionaries(st.text(max_size=3), leaf)))
def test_given_any_json_then_there_is_an_event_or_a_refusal(document: Any) -> None:
    spec = a_spec(partition={"pointer": "/0"}, rows={"pointer": "/1"})
    assert is_event_or_refusal(spec, LogRecord(1, 0, None, json.dumps(document).encode()))


def test_given_an_empty_id_then_the_record_is_refused_and_no_repeat_of_another() -> None:
    assert problems(a_spec(id={"pointer": "/commit"}), {"day": "d1", "commit": ""}) == [
        "id: is taken from the pointer /commit, which is empty"
    ]
    assert problems(a_spec(id={"header": "commit"}), {"day": "d1"}, (("commit", b""),)) == [
        "id: is taken from the header commit, which is empty"
    ]


def test_given_a_header_that_is_no_text_then_the_problem_is_the_fields() -> None:
    (problem,) = problems(a_spec(id={"header": "commit"}), {"day": "d1"}, (("commit", b"\xff"),))
    assert problem == "id: is taken from the header commit, which is not UTF-8"


@pytest.mark.parametrize("value", [20, 20.0, "20", "20.0"])
def test_given_a_size_of_20_0_then_it_is_20(value: object) -> None:
    spec = a_spec(bytes={"pointer": "/size"}, rows={"header": "rows"})
    event = mapped(spec, {"day": "d", "size": value}, (("rows", str(value).encode()),))
    assert (event.bytes, event.rows) == (20, 20)


def test_given_a_byte_order_mark_before_the_json_then_the_pointers_lead_on() -> None:
    assert mapped(a_spec(), b'\xef\xbb\xbf{"day": "d"}').data_partition == "d"
