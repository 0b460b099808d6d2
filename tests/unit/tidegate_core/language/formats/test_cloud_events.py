"""CloudEvents on the topics: both modes say the same, and what an attribute says is mapped or refused, never dropped."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from cloudevents.core.bindings.kafka import to_binary_event, to_structured_event
from cloudevents.core.v1.event import CloudEvent

from tidegate_core.language.events.events import CustomEvent, DataPartitionEvent
from tidegate_core.language.formats.parsing import parse_events, parse_request
from tidegate_core.language.requests.requests import MessageSend, ScheduleSuspend
from tidegate_core.language.values.problems import RefusedRecord
from tidegate_core.rows.dead_letter import LetterId, read_letter

STRUCTURED = [("content-type", b"application/cloudevents+json; charset=UTF-8")]
LANDED = {"namespace": "flights", "dataset": "raw", "partition": "2026-11-20"}
TRUCK = {"namespace": "orders", "data": {"pallets": 12}}
SUSPEND = {"namespace": "flights", "name": "join-day"}


def attributes(kind: str, **more: Any) -> dict[str, Any]:
    return {"specversion": "1.0", "id": "e-1", "source": "/lake/loader", "type": f"tidegate.{kind}", **more}


def binary(data: Any, kind: str, **more: Any) -> tuple[bytes, list[tuple[str, bytes]]]:
    said = attributes(kind, **more)
    headers = [(f"ce_{name}", str(value).encode()) for name, value in said.items() if name != "datacontenttype"]
    return json.dumps(data).encode(), [*headers, ("content-type", b"application/json")]


def structured(data: Any, kind: str, **more: Any) -> tuple[bytes, list[tuple[str, bytes]]]:
    return json.dumps({**attributes(kind, **more), "data": data}).encode(), STRUCTURED


def bare_structured(data: Any, kind: str, **more: Any) -> tuple[bytes, list[tuple[str, bytes]]]:
    """As console producers and tools write it that set no headers."""
    return structured(data, kind, **more)[0], []


def in_base64(data: Any, kind: str, **more: Any) -> tuple[bytes, list[tuple[str, bytes]]]:
    encoded = base64.b64encode(json.dumps(data).encode()).decode()
    return json.dumps({**attributes(kind, **more), "data_base64": encoded}).encode(), STRUCTURED


modes = pytest.mark.parametrize("mode", [binary, structured, bare_structured, in_base64])


def refusals(parse: Any, record: tuple[bytes, list[tuple[str, bytes]]]) -> list[str]:
    with pytest.raises(RefusedRecord) as refused:
        parse(*record)
    return [str(problem) for problem in refused.value.problems]


@modes
def test_given_a_cloudevent_about_a_data_partition_then_each_mode_gives_the_same_event(mode: Any) -> None:
    (event,) = parse_events(*mode(LANDED, "data.partition", time="2026-11-20T22:00:00Z"))
    assert isinstance(event, DataPartitionEvent)
    assert (event.id, event.data_partition, event.producer) == ("e-1", "2026-11-20", "/lake/loader")
    assert event.event_time == 1_795_212_000_000


@modes
def test_given_a_custom_cloudevent_then_its_subject_and_source_are_kept(mode: Any) -> None:
    (event,) = parse_events(*mode(TRUCK, "custom.truck-arrived", subject="gate-3"))
    assert isinstance(event, CustomEvent)
    assert (event.id, event.subject, event.producer) == ("e-1", "gate-3", "/lake/loader")
    assert event.data == {"pallets": 12}


@modes
def test_given_a_request_as_a_cloudevent_then_each_mode_is_taken_and_its_source_asks(mode: Any) -> None:
    request = parse_request(*mode(SUSPEND, "schedule.suspend", time="2026-11-20T22:00:00Z"))
    assert isinstance(request, ScheduleSuspend)
    assert (request.id, request.name, request.actor) == ("e-1", "join-day", "/lake/loader")


@modes
def test_given_a_request_that_names_a_person_then_the_source_stands_beside_them(mode: Any) -> None:
    request = parse_request(*mode({**SUSPEND, "actor": "ana"}, "schedule.suspend"))
    assert request.actor == "ana via /lake/loader"
    assert parse_request(*mode({**SUSPEND, "actor": "/lake/loader"}, "schedule.suspend")).actor == "/lake/loader"


def test_given_a_clockwork_record_with_a_source_in_its_headers_then_the_source_asks() -> None:
    record = {"clientId": "orders", "scheduleKey": "k", "taskData": "x", "delivery": {"topic": "t"}, "scheduleTime": 1}
    request = parse_request(json.dumps(record).encode(), [("ce_source", b"/shop")])
    assert isinstance(request, MessageSend)
    assert request.actor == "/shop"


NOT_KEPT = "dataschema: is no attribute that tidegate keeps; leave ce_dataschema out"
SAMPLES: dict[str, dict[str, Any]] = {
    "data.partition": LANDED,
    "custom.truck-arrived": TRUCK,
    "schedule.suspend": SUSPEND,
}


@modes
@pytest.mark.parametrize(
    ("kind", "also", "attribute", "said"),
    [
        pytest.param(
            "data.partition",
            {},
            {"subject": "s"},
            'subject: ce_subject says "s", and a data partition has no subject; leave it out, or say it as partition in the data',
            id="a data partition's subject",
        ),
        pytest.param(
            "schedule.suspend",
            {},
            {"subject": "join-day"},
            'subject: ce_subject says "join-day", and a request has no subject; leave it out, or say it as name or key in the data',
            id="a request's subject",
        ),
        pytest.param(
            "custom.truck-arrived",
            {"subject": "gate-4"},
            {"subject": "gate-3"},
            "subject: differs from ce_subject; leave it out of the data",
            id="two subjects",
        ),
        pytest.param(
            "data.partition",
            {"producer": "loader"},
            {},
            "producer: differs from ce_source; leave it out of the data",
            id="two producers",
        ),
        pytest.param(
            "data.partition",
            {"id": "e-2"},
            {},
            "id: differs from the header ce_id; leave one of them out",
            id="two ids",
        ),
        pytest.param(
            "data.partition",
            {},
            {"specversion": "0.3"},
            'specversion: "0.3" is not read here; send CloudEvents 1.0',
            id="another version",
        ),
        pytest.param("custom.truck-arrived", {}, {"dataschema": "https://s/t"}, NOT_KEPT, id="an event's schema"),
        pytest.param("schedule.suspend", {}, {"dataschema": "https://s/t"}, NOT_KEPT, id="a request's schema"),
    ],
)
def test_given_an_attribute_that_has_no_field_then_it_is_refused_and_not_dropped(
    mode: Any, kind: str, also: dict[str, str], attribute: dict[str, str], said: str
) -> None:
    parse = parse_request if kind == "schedule.suspend" else parse_events
    assert refusals(parse, mode({**SAMPLES[kind], **also}, kind, **attribute)) == [said]


@modes
def test_given_extension_attributes_then_they_are_the_senders_own(mode: Any) -> None:
    more = {"partitionkey": "k", "traceparent": "00-1-1-00", "sequence": 5, "sampled": True}
    (event,) = parse_events(*mode(LANDED, "data.partition", **more))
    assert event.id == "e-1"


def test_given_times_in_data_and_envelope_then_the_data_know_when_they_came_to_be() -> None:
    """Clients stamp each event themselves."""
    (event,) = parse_events(
        *structured({**LANDED, "event_time": "2026-11-20T22:00:00Z"}, "data.partition", time="2026-12-01T00:00:00Z")
    )
    assert event.event_time == 1_795_212_000_000


def test_given_a_cdap_notification_with_a_source_then_each_of_its_events_has_that_producer() -> None:
    payload = {"datasetId": "flights.raw", "partitionKeys": ["d1", "d2"]}
    value = json.dumps({"eventType": "PARTITION", "payload": payload}).encode()
    events = parse_events(value, [("ce_source", b"/cdap")])
    assert [event.producer for event in events] == ["/cdap", "/cdap"]
    assert refusals(parse_events, (value, [("ce_dataschema", b"x")])) == [
        "dataschema: is no attribute that tidegate keeps; leave ce_dataschema out"
    ]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        pytest.param({"data": [1]}, "data: is JSON, but not an object", id="data are a list"),
        pytest.param({}, "data: is missing", id="no data"),
        pytest.param(
            {"data": attributes("data.partition")}, "data: is a CloudEvent itself; send it alone", id="nested"
        ),
        pytest.param({"data_base64": "%"}, "data_base64: is not base64", id="no base64"),
        pytest.param({"data_base64": 5}, "data_base64: is not base64", id="base64 of a number"),
        pytest.param(
            {"data_base64": "e30=", "data": {}}, "data_base64: must not be given with data; keep one", id="twice"
        ),
        pytest.param({"data_base64": "AAAA"}, "is not JSON: expected value at line 1 column 1", id="no JSON inside"),
        pytest.param(
            {"data": LANDED, "subject": 5},
            "subject: is no attribute of a CloudEvent: not a text; put it into data",
            id="a number",
        ),
        pytest.param(
            {"data": LANDED, "extra": {"a": 1}},
            "extra: is no attribute of a CloudEvent: not a text; put it into data",
            id="an object",
        ),
        pytest.param({"data": LANDED, "type": "com.example.landed"}, "", id="a type of others"),
    ],
)
def test_given_a_structured_event_that_is_none_of_ours_then_the_reason_says_what_to_do(
    document: Any, said: str
) -> None:
    record = json.dumps({**attributes("data.partition"), **document}).encode(), STRUCTURED
    (problem,) = refusals(parse_events, record)
    assert problem == (said or 'type: ce_type "com.example.landed" is not one of ours; they begin with tidegate.')


def test_given_a_refused_structured_request_then_its_sender_is_told_under_its_id() -> None:
    with pytest.raises(RefusedRecord) as refused:
        parse_request(*structured(SUSPEND, "schedule.suspend", dataschema="x"))
    assert (refused.value.request_id, refused.value.namespace, refused.value.name) == ("e-1", "flights", "join-day")


@pytest.mark.parametrize("content_type", ["application/cloudevents-batch+json", "application/cloudevents+avro"])
def test_given_cloudevents_of_another_format_then_the_one_that_is_read_is_named(content_type: str) -> None:
    record = json.dumps(attributes("data.partition", data=LANDED)).encode(), [("Content-Type", content_type.encode())]
    (problem,) = refusals(parse_events, record)
    assert problem.endswith("send each event in a separate record, as application/cloudevents+json")


def test_given_a_batch_in_one_record_then_it_is_refused_as_a_list() -> None:
    value = json.dumps([attributes("data.partition", data=LANDED)]).encode()
    assert refusals(parse_events, (value, [])) == [
        "is JSON, but not an object; send each request or event in a separate record"
    ]


def test_given_headers_that_contradict_a_structured_event_then_it_is_refused() -> None:
    value, headers = structured(LANDED, "data.partition")
    assert refusals(parse_events, (value, [*headers, ("ce_source", b"/other")])) == [
        "source: differs from the header ce_source"
    ]


def test_given_a_name_twice_in_base64_then_it_is_refused_as_anywhere() -> None:
    encoded = base64.b64encode(b'{"namespace": "a", "namespace": "b"}').decode()
    value = json.dumps({**attributes("data.partition"), "data_base64": encoded}).encode()
    assert refusals(parse_events, (value, STRUCTURED)) == ['has the field "namespace" twice in one object; keep one']


def test_given_a_dead_letter_of_a_structured_event_then_it_belongs_to_the_namespace_of_its_data() -> None:
    value, headers = structured(LANDED, "data.partition", dataschema="x")
    copied = (*headers, ("tidegate.error.topic", b"tidegate.events"))
    assert read_letter(LetterId("events", 0, 0), 0, None, value, copied).namespace == "flights"


@pytest.mark.parametrize("to_message", [to_binary_event, to_structured_event])
def test_given_an_event_of_the_specification_s_own_client_then_it_is_read(to_message: Any) -> None:
    said = {**attributes("custom.truck-arrived"), "subject": "gate-3", "datacontenttype": "application/json"}
    message = to_message(CloudEvent(attributes=said, data=TRUCK))
    (event,) = parse_events(message.value, message.headers)
    assert isinstance(event, CustomEvent)
    assert (event.id, event.subject, event.producer, event.data) == ("e-1", "gate-3", "/lake/loader", {"pallets": 12})
