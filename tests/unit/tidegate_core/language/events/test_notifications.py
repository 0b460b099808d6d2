"""Notifications of object stores, change logs and CloudEvents: each of their records is what it says, or is passed as not meant."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cloudevents.core.bindings.kafka import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent

from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.ingest.source_mapping import ELEMENTS_MAX, Mapped, events_of
from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.language.events.events import DataPartitionEvent
from tidegate_core.language.formats.parsing import parse_source
from tidegate_core.language.values.problems import InvalidInput, RefusedRecord

ORIGIN = f"{'c' * 32}/3/17"
KINDS = {"ObjectCreated:*": "created", "ObjectRemoved:*": "deleted"}
S3 = {
    "where": {"pointer": "/eventSource", "equals": "aws:s3"},
    "ignore": "tombstones",
    "each": "/Records",
    "event": {
        "dataset": "raw",
        "partition": {"pointer": "/s3/object/key", "decode": "url"},
        "kind": {"pointer": "/eventName", "map": KINDS},
        "bytes": {"pointer": "/s3/object/size"},
        "version": {"pointer": "/s3/object/eTag"},
    },
}
S3_TEST = {"Service": "Amazon S3", "Event": "s3:TestEvent", "Time": "2026-11-20T22:00:00.000Z", "Bucket": "lake"}


def a_spec(**more: Any) -> SourceSpec:
    event = {"dataset": "raw", "partition": {"pointer": "/day"}}
    return parse_source({"namespace": "flights", "name": "landed", "topic": "lake", "event": event, **more})


def an_object(key: str, name: str = "ObjectCreated:Put", **more: Any) -> dict[str, Any]:
    about = {"key": key, "size": 1024, "eTag": "d41d8"} if name.startswith("ObjectCreated") else {"key": key}
    return {"eventSource": "aws:s3", "eventName": name, "s3": {"bucket": {"name": "lake"}, "object": about}, **more}


def mapped(spec: SourceSpec, value: Any, headers: tuple[tuple[str, bytes], ...] = ()) -> Mapped:
    raw = value if isinstance(value, bytes) or value is None else json.dumps(value).encode()
    return events_of(spec, LogRecord(17, 0, None, raw, headers), ORIGIN)


def events(spec: SourceSpec, value: Any, headers: tuple[tuple[str, bytes], ...] = ()) -> list[DataPartitionEvent]:
    return [event for _, event in mapped(spec, value, headers).events]


def problems(spec: SourceSpec, value: Any, headers: tuple[tuple[str, bytes], ...] = ()) -> list[str]:
    with pytest.raises(RefusedRecord) as refused:
        mapped(spec, value, headers)
    return [str(each) for each in refused.value.problems]


# -- S3 -------------------------------------------------------------------------------------------------------------------


def test_given_a_notification_with_three_records_then_each_of_them_is_an_event() -> None:
    found = mapped(a_spec(**S3), {"Records": [an_object("day=1"), an_object("day=2"), an_object("day=3")]})
    assert [(place, event.data_partition, event.bytes) for place, event in found.events] == [
        (0, "day=1", 1024),
        (1, "day=2", 1024),
        (2, "day=3", 1024),
    ]
    assert [event.id for _, event in found.events] == [f"landed/{ORIGIN}/{place}" for place in range(3)]
    assert found.passed == ()


def test_given_a_removal_then_it_is_deleted_and_not_created() -> None:
    names = ["ObjectCreated:CompleteMultipartUpload", "ObjectRemoved:Delete", "ObjectRemoved:DeleteMarkerCreated"]
    found = events(a_spec(**S3), {"Records": [an_object("d", name) for name in names]})
    assert [event.kind for event in found] == ["created", "deleted", "deleted"]


def test_given_the_test_record_of_s3_then_it_is_passed_and_no_dead_letter() -> None:
    assert mapped(a_spec(**S3), S3_TEST) == Mapped(passed=(("where", 1),))


def test_given_a_tombstone_then_it_is_passed() -> None:
    assert mapped(a_spec(**S3), None) == Mapped(passed=(("tombstone", 1),))
    # As a dead letter is replayed: no letter can say that its record had no value.
    assert mapped(a_spec(**S3), b"") == Mapped(passed=(("tombstone", 1),))


def test_given_a_list_without_elements_then_it_is_passed() -> None:
    assert mapped(a_spec(**S3), {"Records": []}) == Mapped(passed=(("empty", 1),))


def test_given_a_key_that_s3_encodes_then_the_data_partition_has_the_object_s_name() -> None:
    (found,) = events(a_spec(**S3), {"Records": [an_object("raw/day%3D2026-11-20/Z%C3%BCrich+a%2Bb.csv")]})
    assert found.data_partition == "raw/day=2026-11-20/Zürich a+b.csv"


@pytest.mark.parametrize("key", ["100%", "%zz", "%FF"])
def test_given_a_key_that_is_not_encoded_then_it_is_refused_and_not_guessed(key: str) -> None:
    assert problems(a_spec(**S3), {"Records": [an_object("ok"), an_object(key)]}) == [
        f'[1].partition: is taken from the pointer /Records/1/s3/object/key, whose "{key}" is not URL-encoded; leave decode out'
    ]


def test_given_elements_of_another_kind_then_only_these_are_passed_and_places_stay() -> None:
    """An id that is a place must not move with what else the record has, or with the filter."""
    records = [
        an_object("a", eventSource="aws:glacier"),
        an_object("b"),
        an_object("c", eventSource="x"),
        an_object("d"),
    ]
    found = mapped(a_spec(**S3), {"Records": records})
    assert [(place, event.data_partition) for place, event in found.events] == [(1, "b"), (3, "d")]
    assert found.passed == (("where", 2),)


def test_given_an_element_that_cannot_be_mapped_then_the_record_is_refused_as_a_whole_with_each_fault() -> None:
    records = [an_object("a"), an_object("b", "ObjectRestore:Post"), {"eventSource": "aws:s3"}]
    unnamed = 'the map does not name; name it, or "*" for all others, or leave such records out by where'
    assert problems(a_spec(**S3), {"Records": records}) == [
        f'[1].kind: is taken from the pointer /Records/1/eventName, whose "ObjectRestore:Post" {unnamed}',
        "[2].partition: is taken from the pointer /Records/2/s3/object/key, which the record does not have",
        "[2].kind: is taken from the pointer /Records/2/eventName, which the record does not have",
    ]


# -- lists -----------------------------------------------------------------------------------------------------------------

FILES = {"each": "/files", "event": {"dataset": {"record": "/dataset"}, "partition": {"pointer": "/day"}}}


def test_given_what_the_record_says_once_then_each_element_s_event_has_it() -> None:
    found = events(a_spec(**FILES), {"dataset": "raw", "files": [{"day": "d1"}, {"day": "d2"}]})
    assert [(event.dataset, event.data_partition) for event in found] == [("raw", "d1"), ("raw", "d2")]


def test_given_a_list_of_texts_then_the_empty_pointer_is_the_element() -> None:
    spec = a_spec(each="/days", event={"dataset": "raw", "partition": {"pointer": ""}})
    assert [event.data_partition for event in events(spec, {"days": ["d1", 2]})] == ["d1", "2"]


def test_given_a_record_that_is_a_list_itself_then_the_empty_pointer_finds_it() -> None:
    assert [event.data_partition for event in events(a_spec(each=""), [{"day": "d1"}, {"day": "d2"}])] == ["d1", "d2"]


def test_given_a_thousand_elements_then_each_counts_and_one_more_is_refused() -> None:
    days = [{"day": f"d{number}"} for number in range(ELEMENTS_MAX + 1)]
    assert len(events(a_spec(each="/days"), {"days": days[:ELEMENTS_MAX]})) == 1_000
    assert problems(a_spec(each="/days"), {"days": days}) == [
        "each: is taken from the pointer /days, which has 1001 elements; at most 1000 are allowed"
    ]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param(
            {"day": "d1"}, "which the record does not have; where leaves records of another kind out", id="none"
        ),
        pytest.param({"days": None}, "which the record does not have; where leaves records", id="null"),
        pytest.param({"days": {"day": "d1"}}, "which is no list", id="an object"),
        pytest.param(b"no JSON", "is not JSON, which the pointers need", id="no JSON"),
        pytest.param(
            None, "has no value, and is not JSON, which the pointers need; ignore: tombstones", id="tombstone"
        ),
    ],
)
def test_given_a_record_without_the_list_then_the_reason_says_what_to_do(value: Any, said: str) -> None:
    (problem,) = problems(a_spec(each="/days"), value)
    assert said in problem


@pytest.mark.parametrize("taken", [{"header": "commit"}, {"record": "/commit"}])
def test_given_an_id_that_the_record_says_once_then_each_element_has_another_one(taken: Any) -> None:
    """One id for all would make each a repeat of the first."""
    event = {"dataset": "raw", "partition": {"pointer": "/day"}, "id": taken}
    value = {"commit": "c/1", "days": [{"day": "d1"}, {"day": "d2"}]}
    found = events(a_spec(each="/days", event=event), value, (("commit", b"c/1"),))
    assert [each.id for each in found] == ["landed/c~11/0", "landed/c~11/1"]


def test_given_an_id_of_the_element_then_it_is_the_event_s() -> None:
    event = {"dataset": "raw", "partition": {"pointer": "/day"}, "id": {"pointer": "/n"}}
    found = events(a_spec(each="/days", event=event), {"days": [{"day": "d1", "n": 1}, {"day": "d2", "n": 2}]})
    assert [each.id for each in found] == ["landed/1", "landed/2"]


# -- filters and kinds ---------------------------------------------------------------------------------------------------


def test_given_a_change_log_then_its_letters_are_kinds() -> None:
    kind = {"pointer": "/op", "map": {"c": "created", "u": "replaced", "d": "deleted", "*": "appended"}}
    spec = a_spec(event={"dataset": "raw", "partition": {"pointer": "/day"}, "kind": kind})
    assert [events(spec, {"day": "d", "op": op})[0].kind for op in ("c", "u", "d", "r")] == [
        "created",
        "replaced",
        "deleted",
        "appended",
    ]
    assert problems(spec, {"day": "d"}) == ["kind: is taken from the pointer /op, which the record does not have"], (
        "a removal that says nothing would be created"
    )


def test_given_a_bucket_for_each_dataset_then_a_map_names_it() -> None:
    mapping = {"dataset": {"header": "bucket", "map": {"lake-raw-*": "raw", "lake-raw-test-*": "trial"}}}
    spec = a_spec(event={**mapping, "partition": {"pointer": "/day"}})
    found = [events(spec, {"day": "d"}, (("bucket", each),))[0].dataset for each in (b"lake-raw-1", b"lake-raw-test-1")]
    assert found == ["raw", "trial"]


@pytest.mark.parametrize(
    ("where", "value", "headers", "is_meant"),
    [
        pytest.param({"pointer": "/type", "equals": "commit"}, {"type": "commit"}, (), True, id="pointer"),
        pytest.param({"pointer": "/type", "equals": "commit"}, {"type": "vacuum"}, (), False, id="another kind"),
        pytest.param({"pointer": "/type", "equals": "commit"}, None, (), False, id="a tombstone is of no kind"),
        pytest.param({"header": "type", "in": ["commit", "land"]}, {}, (("type", b"land"),), True, id="header"),
        pytest.param({"header": "type", "equals": "commit"}, b"\xff avro", (("type", b"x"),), False, id="no JSON"),
        pytest.param({"header": "type", "exists": False}, {}, (("type", b"x"),), False, id="a header too many"),
        pytest.param({"pointer": "/n", "above": 5}, {"n": 6}, (), True, id="number"),
        pytest.param({"not": {"pointer": "/type", "prefix": "test"}}, {"type": "tests"}, (), False, id="not"),
        pytest.param(
            {"all_of": [{"pointer": "/n", "above": 5}, {"header": "type", "equals": "a"}]},
            b"no JSON",
            (("type", b"b"),),
            False,
            id="a header decides, wherever it stands",
        ),
        pytest.param(
            {"any_of": [{"pointer": "/n", "above": 5}, {"header": "type", "equals": "a"}]},
            {"n": 1},
            (("type", b"a"),),
            True,
            id="any",
        ),
    ],
)
def test_given_a_filter_then_what_is_not_meant_is_passed(where: Any, value: Any, headers: Any, is_meant: bool) -> None:
    spec = a_spec(where=where, event={"dataset": "raw", "partition": "whole"})
    found = mapped(spec, value, headers)
    assert (len(found.events), found.passed) == ((1, ()) if is_meant else (0, (("where", 1),)))


@pytest.mark.parametrize(
    "where",
    [
        {"pointer": "/type", "equals": "commit"},
        {"not": {"pointer": "/type", "equals": "commit"}},
        {"all_of": [{"header": "type", "equals": "a"}, {"pointer": "/type", "equals": "commit"}]},
        {"any_of": [{"header": "type", "equals": "b"}, {"pointer": "/type", "equals": "commit"}]},
    ],
)
def test_given_broken_json_that_a_filter_asks_then_nobody_can_say_whether_it_is_meant_and_it_is_a_dead_letter(
    where: Any,
) -> None:
    (problem,) = problems(a_spec(where=where), b"{broken", (("type", b"a"),))
    assert problem.startswith("is not JSON, which the pointers need")


# -- CloudEvents ------------------------------------------------------------------------------------------------------------

BLOB = {
    "where": {"header": "ce_type", "equals": "Microsoft.Storage.BlobCreated"},
    "event": {
        "dataset": "raw",
        "partition": {"header": "ce_subject"},
        "bytes": {"pointer": "/contentLength"},
        "id": {"header": "ce_id"},
        "producer": {"header": "ce_source"},
    },
}


def a_blob(**more: Any) -> CloudEvent:
    said = {"type": "Microsoft.Storage.BlobCreated", "source": "/lake", "id": "e-1", "subject": "day=1", **more}
    return CloudEvent(attributes={**said, "datacontenttype": "application/json"}, data={"contentLength": 7})


@pytest.mark.parametrize("to_message", [to_binary_event, to_structured_event])
def test_given_a_cloudevent_in_either_mode_then_it_is_the_same_event(to_message: Any) -> None:
    message = to_message(a_blob())
    (event,) = events(a_spec(**BLOB), message.value, tuple(message.headers.items()))
    assert (event.data_partition, event.bytes, event.id, event.producer) == ("day=1", 7, "landed/e-1", "/lake")
    other = to_message(a_blob(type="Microsoft.Storage.BlobDeleted"))
    assert mapped(a_spec(**BLOB), other.value, tuple(other.headers.items())).passed == (("where", 1),)


def test_given_a_structured_event_in_base64_then_pointers_lead_into_what_it_encodes() -> None:
    value = {"specversion": "1.0", "id": "e-1", "type": "t", "source": "/lake"}
    headers = (("Content-Type", b"application/cloudevents+json"),)
    encoded = base64.b64encode(b'{"day": "d1"}').decode()
    (event,) = events(a_spec(), {**value, "data_base64": encoded}, headers)
    assert event.data_partition == "d1"


def test_given_a_pointer_into_the_envelope_then_the_reason_says_where_pointers_lead() -> None:
    message = to_structured_event(a_blob())
    spec = a_spec(event={"dataset": "raw", "partition": {"pointer": "/data/contentLength"}})
    (problem,) = problems(spec, message.value, tuple(message.headers.items()))
    assert problem.startswith(
        "partition: is taken from the pointer /data/contentLength, which the record does not have"
    )
    assert problem.endswith("; pointers lead into the data of a CloudEvent: leave /data out")


def test_given_the_same_json_without_its_content_type_then_it_is_read_as_it_lies() -> None:
    message = to_structured_event(a_blob())
    spec = a_spec(
        event={"dataset": "raw", "partition": {"pointer": "/subject"}, "rows": {"pointer": "/data/contentLength"}}
    )
    (event,) = events(spec, message.value)
    assert (event.data_partition, event.rows) == ("day=1", 7)


@pytest.mark.parametrize("value", [b"[1]", b"no JSON", b'{"specversion": "1.0", "data": {}, "data_base64": "e30="}'])
def test_given_what_only_says_that_it_is_a_cloudevent_then_it_is_refused(value: bytes) -> None:
    assert problems(a_spec(), value, (("content-type", b"application/cloudevents+json"),))


# -- what an apply refuses ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"each": "Records"}, "each: is no JSON pointer; begin it with a slash, such as /file/day"),
        ({"each": "/a~"}, "each: has a ~ that is neither ~0 nor ~1; write ~0 for ~, and ~1 for /"),
        ({"ignore": "everything"}, 'ignore: "everything" is not one of: tombstones'),
        ({"where": {"field": "/type", "equals": "x"}}, "where.field: is not a field here; a source compares what"),
        (
            {"where": {"header": "n", "equals": 5}},
            "where.equals: can never be true; a header is a text: put it in quotes",
        ),
        (
            {"where": {"header": "n", "in": ["a", 5]}},
            "where.in: can never be true; a header is a text: put it in quotes",
        ),
        ({"where": {"header": "n", "above": 5}}, "where.above: can never be true; a header is a text: compare it by"),
        (
            {"where": {"any_of": [{"header": "n", "equals": "a"}, {"pointer": "/n", "above": 5, "below": 5}]}},
            "where.any_of[1]: can never be true: its comparisons exclude each other",
        ),
        (
            {"where": {"not": {"not": {"header": "n", "equals": "a", "prefix": "b"}}}},
            "where.not.not: can never be true: its comparisons exclude each other",
        ),
        (
            {"where": {"pointer": "/n", "equals": "a", "exists": False}},
            "where: can never be true: a missing value has no equals; leave one of them out",
        ),
        ({"where": {"header": "n"}}, "where.header: is not compared with anything"),
        ({"where": {"header": "n", "pointer": "/n", "exists": True}}, "where: needs either one header, pointer or"),
        ({"where": {"equals": "x"}}, "where: needs either one header, pointer or record with a comparison, or one of"),
        ({"where": {"pointer": "/a~", "exists": True}}, "where.pointer: has a ~ that is neither ~0 nor ~1"),
        ({"where": {"record": "/a", "exists": True}}, "where.record: is for sources with each; the word is pointer"),
        (
            {"event": {"dataset": {"record": "/a"}, "partition": "p"}},
            "event.dataset.record: is for sources with each; the word is pointer",
        ),
        (
            {"event": {"dataset": "raw", "partition": "p", "kind": {"pointer": "/op", "map": {"d": "removed"}}}},
            'event.kind: has a value that no event may have: "removed"',
        ),
        (
            {"event": {"dataset": "raw", "partition": "p", "id": {"pointer": "/n", "map": {"*": "1"}}}},
            "event.id: is mapped: different records would share one id; take it from a header or a pointer",
        ),
        (
            {"event": {"dataset": {"value": "raw", "decode": "url"}, "partition": "p"}},
            "event.dataset.decode: must not be given with value; leave it out",
        ),
        (
            {"event": {"dataset": "raw", "partition": {"pointer": "/k", "decode": "base64"}}},
            'event.partition.decode: "base64" is not one of: url',
        ),
        (
            {"event": {"dataset": "raw", "partition": {"pointer": "/k", "map": {}}}},
            "event.partition.map: has 0 entries",
        ),
    ],
)
def test_given_a_source_that_could_not_work_then_field_and_way_out_are_named(more: Any, said: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        a_spec(**more)
    assert str(refused.value.problems[0]).startswith(said)


@pytest.mark.parametrize(
    "where",
    [
        {"pointer": "/n", "at_least": 5, "at_most": 5},
        {"pointer": "/n", "in": ["a", 5, True], "above": 4},
        {"header": "n", "exists": False},
        {"not": {"pointer": "/n", "equals": "a", "prefix": "b"}},
    ],
)
def test_given_a_filter_that_some_record_passes_then_the_source_is_taken(where: Any) -> None:
    assert a_spec(where=where).where is not None


def test_given_all_that_a_source_may_say_then_its_stored_form_reads_back() -> None:
    spec = a_spec(**S3)
    assert SourceSpec.model_validate_json(spec.canonical_json()) == spec
