"""No record speaks for a namespace that is not its topic's, and none has tidegate write into its own topics."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import EVENTS, REQUESTS, SECOND, Doc, a_send, a_spec, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import ActorHarness
from tests.support.tier import examples
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.ingest.event_decoding import judged, own_events
from tidegate_core.ingest.source_mapping import events_of
from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.record_authorization import OWN_TOPICS, authorize_request, is_for
from tidegate_core.language.requests.requests import REQUEST_TYPES
from tidegate_core.language.values.names import TopicNamespaces
from tidegate_core.language.values.problems import RefusedRecord

MINE = ("flights", "team-a-*")
NAMESPACES = st.sampled_from(("flights", "team-a-1", "team-b-1", "flight", "flights2", "orders", "tidegate"))


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness(namespaces=TopicNamespaces(MINE, MINE))
    made.run(SECOND)
    return made


def forbidden(bench: ActorHarness, topic: str) -> list[str]:
    letters = bench.on(f"{topic}.dlq")
    assert {each.headers["tidegate.error.class"] for each in letters} <= {"forbidden"}
    assert len(bench.notices("record_dead_lettered")) == len(letters)
    return [each.headers["tidegate.error.message"] for each in letters]


@pytest.mark.parametrize(
    ("namespace", "allowed", "answer"),
    [
        ("flights", MINE, True),
        ("flights2", MINE, False),
        ("team-a-1", MINE, True),
        ("team-b-1", MINE, False),
        (None, MINE, False),
        ("orders", ("*",), True),
        (None, ("*",), True),
        ("flights", (), False),
    ],
)
def test_given_a_namespace_then_its_topic_is_for_it_or_not(
    namespace: str | None, allowed: tuple[str, ...], answer: bool
) -> None:
    assert is_for(namespace, allowed) is answer


def test_given_events_of_others_then_they_are_dead_letters_and_those_between_them_count(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=on_data(count=100))))
    bench.append(EVENTS, 0, an_event("d1"), {**an_event("d2"), "namespace": "orders"}, an_event("d3"))
    bench.run(SECOND)
    assert [row["counts"] for row in bench.rows("E#")] == [[2]]
    (said,) = forbidden(bench, EVENTS)
    assert said.startswith('namespace: "orders" is not accepted on tidegate.events')


def test_given_requests_of_others_then_their_senders_are_told_and_nothing_is_done(bench: ActorHarness) -> None:
    theirs = an_apply(a_spec() | {"namespace": "orders"}, request_id="theirs")
    system = {"id": "all", "type": "control.suspend", "scope": "system"}
    anyones = {"id": "any", "type": "run.cancel", "run_id": "0000-" + "a" * 26}
    for document in ({**theirs, "namespace": "orders"}, system, anyones, an_apply(a_spec(), request_id="mine")):
        bench.request(document)
    statuses = [bench.status_of(each) for each in ("theirs", "all", "any", "mine")]
    assert statuses == ["rejected", "rejected", "rejected", "accepted"]
    assert len(forbidden(bench, REQUESTS)) == 3


@pytest.mark.parametrize("short", sorted(OWN_TOPICS))
def test_given_a_message_into_an_own_topic_then_it_is_refused_now_and_as_a_schedule(short: str) -> None:
    """Found in review: with `message.send` alone one could have had nodes write requests and receipts of any namespace."""
    bench = ActorHarness()
    bench.run(SECOND)
    topic = f"tidegate.{short}"
    target = {"type": "message", "topic": topic, "payload": {}}
    spec: Doc = {
        "kind": "schedule",
        "namespace": "flights",
        "name": "nightly",
        "target": target,
        "trigger": every("1h"),
    }
    bench.request({**a_send("m-1", after="1s"), "topic": topic})
    bench.request(an_apply(spec, request_id="s-1"))
    bench.run(2 * SECOND)
    assert [bench.status_of(each) for each in ("m-1", "s-1")] == ["rejected", "rejected"]
    assert len(forbidden(bench, REQUESTS)) == 2
    assert bench.rows("M#") == []


def test_given_a_message_into_a_topic_that_is_only_called_alike_then_it_is_sent() -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request({**a_send("m-1", after="1s"), "topic": "tidegate.requests-of-mine"})
    bench.run(2 * SECOND)
    assert len(bench.on("tidegate.requests-of-mine")) == 1


def test_given_the_systems_own_namespace_then_no_event_is_of_it() -> None:
    bench = ActorHarness()
    bench.run(SECOND)
    bench.append(EVENTS, 0, {**an_event("d1"), "namespace": "tidegate"})
    bench.run(SECOND)
    assert forbidden(bench, EVENTS) == [
        "namespace: is tidegate's own; take the namespace of the schedules that wait for it"
    ]


# -- whatever is in a record ----------------------------------------------------------------------------------------------------

EXAMPLES = [{**model.EXAMPLE} for model in REQUEST_TYPES.values()]
NAMING = ("namespace", "clientId", "spec.namespace", "ce_namespace")


def named(document: Doc, places: dict[str, str]) -> Doc:
    """A document that names namespaces wherever one could think of."""
    made: Any = json.loads(json.dumps(document))
    for place, namespace in places.items():
        head, _, rest = place.partition(".")
        if rest and isinstance(made.get(head), dict):
            made[head][rest] = namespace
        elif not rest:
            made[head] = namespace
    return dict(made)


@settings(max_examples=examples(300), deadline=None)
@given(st.sampled_from(EXAMPLES), st.dictionaries(st.sampled_from(NAMING), NAMESPACES, max_size=4))
def test_given_any_request_then_what_passes_speaks_for_a_namespace_of_its_topic(
    document: Doc, places: dict[str, str]
) -> None:
    try:
        request = parse_request(json.dumps(named(document, places)).encode(), [("ce_namespace", b"flights")])
        authorize_request(request, MINE, "tidegate.requests")
    except RefusedRecord:
        return
    assert is_for(request.namespace, MINE)
    spec = getattr(request, "spec", None)
    assert spec is None or spec.namespace == request.namespace


@settings(max_examples=examples(300), deadline=None)
@given(st.dictionaries(st.sampled_from(NAMING), NAMESPACES, max_size=4), st.booleans())
def test_given_any_event_then_what_passes_speaks_for_a_namespace_of_its_topic(
    places: dict[str, str], custom: bool
) -> None:
    document = {"type": "custom.x", "namespace": "flights"} if custom else an_event("d1")
    record = LogRecord(0, 0, None, json.dumps(named(document, places)).encode())
    try:
        events = judged(lambda: own_events(record, MINE, "tidegate.events"))
    except RefusedRecord:
        return
    assert all(is_for(event.namespace, MINE) and event.namespace != "tidegate" for event in events)
    assert all(f"/{event.namespace}/" in event.event_key for event in events)


TEXTS = st.one_of(NAMESPACES, st.text(max_size=8), st.sampled_from(("orders/raw", "../orders", "orders#x")))


@settings(max_examples=examples(300), deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("namespace", "dataset", "day", "id"), TEXTS)), TEXTS)
def test_given_any_record_of_a_source_then_its_event_is_of_the_sources_namespace(
    value: dict[str, str], header: str
) -> None:
    event = {"dataset": {"pointer": "/dataset"}, "partition": {"pointer": "/day"}, "id": {"pointer": "/id"}}
    spec = SourceSpec.model_validate({**SourceSpec.EXAMPLE, "event": event})
    headers = (("ce_namespace", header.encode()), ("namespace", header.encode()))
    try:
        ((_, made),) = events_of(spec, LogRecord(1, 1, None, json.dumps(value).encode(), headers), "t/0/1").events
    except RefusedRecord:
        return
    assert made.namespace == spec.namespace
    assert made.event_key == f"data/{spec.namespace}/{value['dataset']}"
    assert "/" not in value["dataset"]
    assert made.id == f"{spec.name}/{value['id']}"
