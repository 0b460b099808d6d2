"""Events: ours, as CloudEvents, and CDAP's notifications; and what makes two of them a repeat."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tidegate_core.language.events.events import CustomEvent, DataPartitionEvent
from tidegate_core.language.formats.parsing import parse_events
from tidegate_core.language.values.problems import RefusedRecord


def event(**fields: Any) -> DataPartitionEvent:
    return DataPartitionEvent.model_validate({**DataPartitionEvent.EXAMPLE, **fields})


def refused_fields(document: Any, headers: Any = None) -> list[str]:
    with pytest.raises(RefusedRecord) as caught:
        parse_events(json.dumps(document).encode(), headers)
    return [problem.field for problem in caught.value.problems]


def test_given_cloudevent_then_id_type_and_time_come_from_its_headers() -> None:
    data = {"namespace": "flights", "dataset": "flights.raw", "partition": "2013-01-01"}
    headers = [
        ("ce_id", b"e-1"),
        ("ce_type", b"tidegate.data.partition"),
        ("ce_time", b"2026-11-20T22:00:00Z"),
    ]

    (read,) = parse_events(json.dumps(data).encode(), headers)

    assert isinstance(read, DataPartitionEvent)
    assert (read.id, read.kind, read.event_time) == ("e-1", "created", 1_795_212_000_000)


@pytest.mark.parametrize("header", ["ce_id", "CE_ID", "ce_type", "ce_time", "ce_source", "ce_subject"])
def test_given_an_envelope_that_is_not_utf8_then_the_event_is_refused_by_the_header_s_name(header: str) -> None:
    """Found in review: two ids of another encoding, such as Zürich-1 and Zörich-1 in Latin-1, became one, and the second event did not count."""
    data = json.dumps({"type": "data.partition", "namespace": "flights", "dataset": "raw", "partition": "1"}).encode()
    with pytest.raises(RefusedRecord, match=f"the header {header.lower()}, which is not UTF-8"):
        parse_events(data, [("ce_id", b"e-1"), (header, "Zürich-1".encode("latin-1"))])
    parse_events(data, [("ce_place", "Zürich".encode("latin-1"))])


def test_given_custom_event_then_its_key_names_it() -> None:
    (read,) = parse_events(json.dumps(CustomEvent.EXAMPLE).encode())

    assert read.event_key == "custom/orders/truck-arrived"


@pytest.mark.parametrize(
    ("change", "fields"),
    [
        ({"type": "data.partitions"}, ["type"]),
        ({"type": None}, ["type"]),
        ({"type": "custom."}, ["type", "dataset", "partition", "kind", "bytes", "rows", "version"]),
        ({"kind": "create"}, ["kind"]),
        ({"partition": ""}, ["partition"]),
        ({"data_partition": "x"}, ["data_partition"]),
        ({"rows": -1}, ["rows"]),
        ({"bytes": "lots"}, ["bytes"]),
        ({"event_time": 5}, ["event_time"]),
        ({"dataset": "A", "namespace": ""}, ["namespace", "dataset"]),
    ],
)
def test_given_faulty_event_then_its_fields_are_told(change: dict[str, Any], fields: list[str]) -> None:
    assert sorted(refused_fields({**DataPartitionEvent.EXAMPLE, **change})) == sorted(fields)


def test_given_same_id_then_it_is_a_repeat_within_its_namespace_only() -> None:
    assert event(rows=1).dedupe_id == event(rows=2, version="2").dedupe_id
    assert event().dedupe_id != event(namespace="other").dedupe_id


def test_given_no_id_then_content_and_version_make_the_repeat() -> None:
    bare = event(id=None)

    assert bare.dedupe_id == event(id=None, rows=1, event_time=None).dedupe_id
    others: list[dict[str, Any]] = [
        {"version": "2"},
        {"kind": "replaced"},
        {"partition": "x"},
        {"dataset": "d"},
        {"version": None},
    ]
    assert len({bare.dedupe_id, *(event(id=None, **change).dedupe_id for change in others)}) == 6


def test_given_custom_events_without_id_then_equal_content_is_a_repeat() -> None:
    one, other = ({**CustomEvent.EXAMPLE, "id": None, "data": data} for data in ({"a": 1, "b": 2}, {"b": 2, "a": 1}))

    assert CustomEvent.model_validate(one).dedupe_id == CustomEvent.model_validate(other).dedupe_id


def test_given_golden_vector_then_dedupe_ids_never_change() -> None:
    assert event().dedupe_id == "388c97606c4da37bbe31ce780febdbb5"


def notification(**payload: Any) -> dict[str, Any]:
    content = {"datasetId": "flights.flights.raw", "partitionKeys": '["2013-01-01"]', **payload}
    return {"timestamp": 1_553_629_195_570, "eventType": "PARTITION", "payload": content}


@pytest.mark.parametrize(
    "dataset",
    [
        "flights.flights.raw",
        "dataset:flights.flights.raw",
        "flights/flights.raw",
        {"namespace": "flights", "dataset": "flights.raw"},
    ],
)
def test_given_cdaps_ways_of_naming_a_dataset_then_each_is_read(dataset: Any) -> None:
    (read,) = parse_events(json.dumps(notification(datasetId=dataset)).encode())

    assert isinstance(read, DataPartitionEvent)
    assert (read.event_key, read.event_time) == ("data/flights/flights.raw", 1_553_629_195_570)


def test_given_cdaps_list_of_keys_then_each_is_an_event() -> None:
    keys = [{"fields": {"year": 2013, "day": "a/b"}}, {"hour": 5}, "plain"]

    for given in (keys, json.dumps(keys)):
        read = parse_events(json.dumps(notification(partitionKeys=given)).encode())
        names = [one.data_partition for one in read if isinstance(one, DataPartitionEvent)]
        assert names == ["year=2013/day=a%2Fb", "hour=5", "plain"]


def test_given_keys_as_cdaps_codec_writes_them_then_each_value_is_read_without_its_class() -> None:
    keys = [{"year": ["java.lang.Integer", 2013], "day": ["java.lang.String", "a/b"]}, {"hour": ["java.lang.Long", 5]}]
    read = parse_events(json.dumps(notification(partitionKeys=json.dumps(keys))).encode())

    assert [one.data_partition for one in read if isinstance(one, DataPartitionEvent)] == [
        "year=2013/day=a%2Fb",
        "hour=5",
    ]


def test_given_a_notification_as_cdaps_releases_write_it_then_it_is_the_same_events() -> None:
    """Their code says `notificationType` and `properties`, all of them texts, where the design said `eventType` and `payload`."""
    keys = json.dumps([{"day": ["java.lang.String", "2013-01-01"]}])
    properties = {"datasetId": "dataset:flights.raw", "numPartitions": "1", "partitionKeys": keys}
    (read,) = parse_events(json.dumps({"notificationType": "PARTITION", "properties": properties}).encode())

    assert isinstance(read, DataPartitionEvent)
    assert (read.event_key, read.data_partition, read.event_time) == ("data/flights/raw", "day=2013-01-01", None)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"notificationType": "TIME"}, "notificationType"),
        ({"properties": "x"}, "properties"),
        ({"properties": {"datasetId": "flights", "partitionKeys": "[]"}}, "properties.datasetId"),
        ({"properties": {"datasetId": "flights.raw", "partitionKeys": "[]"}}, "properties.partitionKeys"),
    ],
)
def test_given_a_fault_in_such_a_notification_then_its_own_field_is_told(change: dict[str, Any], field: str) -> None:
    assert refused_fields({"notificationType": "PARTITION", "properties": {}, **change}) == [field]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"partitionKeys": "["}, "payload.partitionKeys"),
        ({"partitionKeys": []}, "payload.partitionKeys"),
        ({"partitionKeys": ["x"] * 1001}, "payload.partitionKeys"),
        ({"partitionKeys": [5]}, "payload.partitionKeys[0]"),
        # Found in review: a text that holds JSON was read by rules of its own, and what Python calls True became a name.
        ({"partitionKeys": '[{"day": 1, "day": 2}]'}, "payload.partitionKeys"),
        ({"partitionKeys": '["\\ud800"]'}, "payload.partitionKeys"),
        ({"partitionKeys": '[{"day": NaN}]'}, "payload.partitionKeys"),
        ({"partitionKeys": [{"day": True}]}, "payload.partitionKeys[0].day"),
        ({"partitionKeys": ["a", {"fields": {"day": None}}]}, "payload.partitionKeys[1].day"),
        ({"partitionKeys": [{"day": [1]}]}, "payload.partitionKeys[0].day"),
        ({"partitionKeys": [{"day": ["java.lang.Double", 1.5]}]}, "payload.partitionKeys[0].day"),
        ({"partitionKeys": [{"day": ["monday", "tuesday"]}]}, "payload.partitionKeys[0].day"),
        ({"datasetId": "flights"}, "payload.datasetId"),
        ({"datasetId": None}, "payload.datasetId"),
        ({"datasetId": "Flights.raw"}, "namespace"),
    ],
)
def test_given_notification_that_cannot_be_read_then_its_field_is_told(change: dict[str, Any], field: str) -> None:
    assert refused_fields(notification(**change)) == [field]


def test_given_notification_about_something_else_then_it_is_refused() -> None:
    assert refused_fields({**notification(), "eventType": "PROGRAM_STATUS"}) == ["eventType"]
    assert refused_fields({**notification(), "timestamp": "now"}) == ["timestamp"]
    assert refused_fields({**notification(), "payload": 5}) == ["payload"]
    assert refused_fields({**notification(), "id": 5}) == ["id"]
