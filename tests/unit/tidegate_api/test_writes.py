"""Writes: checked, sent to the owner's topic partition, answered with the receipt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.tidegate_api.conftest import (
    PUT_SCHEDULE,
    SHARDS,
    SPEC,
    TOPIC_PARTITIONS,
    TOPICS,
    Process,
    accepted,
    put_schedule,
)
from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.language.events.events import DataPartitionEvent
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.language.requests.requests import MessageSend
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.language.values.problems import Problem


def test_given_schedule_then_its_request_lies_in_the_owners_topic_partition(process: Process) -> None:
    answer = process.http.put(PUT_SCHEDULE, json=SPEC, params={"reason": "first"})
    assert (answer.status_code, answer.json()["status"]) == (200, "accepted")
    (order,) = process.bus.produced
    document = json.loads(order.value)
    assert order.topic_partition == schedule_shard("flights", "land-day", SHARDS) % TOPIC_PARTITIONS
    assert (document["type"], document["reason"], document["spec"]["name"]) == ("schedule.apply", "first", "land-day")
    assert document["id"] == answer.json()["request_id"]


def test_given_idempotency_key_then_it_is_the_request_id(process: Process) -> None:
    headers = {"Idempotency-Key": "mine-1"}
    assert process.http.put(PUT_SCHEDULE, json=SPEC, headers=headers).json()["request_id"] == "mine-1"
    assert process.http.put(PUT_SCHEDULE, json=SPEC, headers=headers).status_code == 200


def test_given_idempotency_key_with_another_body_then_422(process: Process) -> None:
    headers = {"Idempotency-Key": "mine-1"}
    process.http.put(PUT_SCHEDULE, json=SPEC, headers=headers)
    answer = process.http.delete(PUT_SCHEDULE, headers=headers)
    assert answer.status_code == 422
    assert len(process.bus.produced) == 1


def test_given_one_id_in_two_namespaces_then_each_is_a_request_of_its_own(process: Process) -> None:
    """Found by a review: ids are unique within a namespace; here the second team was told that its id was used."""
    messages = [
        {"namespace": namespace, "id": "1001", "topic": "out", "after": "1h", "payload": {"of": namespace}}
        for namespace in ("team-a", "team-b")
    ]
    alone = [process.http.post("/api/v1/messages", json=message) for message in messages]
    together = process.http.post("/api/v1/messages", json=messages)
    assert [answer.status_code for answer in (*alone, together)] == [200, 200, 200]


def test_given_several_mistakes_then_400_names_all_and_nothing_is_sent(process: Process) -> None:
    spec = {**SPEC, "trigger": {"type": "every", "period": "90q"}, "overlapp": "queue"}
    answer = process.http.put(PUT_SCHEDULE, json=spec)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    by_field = {error["field"]: error for error in answer.json()["errors"]}
    assert by_field["overlapp"]["hint"] == "did you mean overlap?"
    assert "trigger.period" in by_field
    assert process.bus.produced == []


def test_given_spec_of_another_name_then_400(process: Process) -> None:
    answer = process.http.put("/api/v1/schedules/flights/other", json=SPEC)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "name")


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (ReceiptStatus.ACCEPTED, 200),
        (ReceiptStatus.UNCHANGED, 200),
        (ReceiptStatus.CANCELLED, 200),
        (ReceiptStatus.REJECTED, 400),
        (ReceiptStatus.NOT_FOUND, 404),
        (ReceiptStatus.CONFLICT, 409),
        (ReceiptStatus.SUPERSEDED, 409),
        (ReceiptStatus.TOO_LATE, 409),
    ],
)
def test_given_receipt_then_its_status_decides(process: Process, status: ReceiptStatus, code: int) -> None:
    problem = Problem("target.program.file", "cannot be read")
    process.bus.owner = lambda document: accepted(document, status=status, errors=(problem,), version=3)
    answer = process.http.post("/api/v1/schedules/flights/land-day/suspend", json={"reason": "repair"})
    assert answer.status_code == code
    body = answer.json() if code < 400 else answer.json()["receipt"]
    assert (body["status"], body["version"]) == (status.value, 3)
    if code >= 400:
        assert answer.json()["errors"] == [{"field": problem.field, "problem": problem.problem, "hint": ""}]


@pytest.mark.parametrize("verb", ["suspend", "resume"])
@pytest.mark.parametrize(("strict", "code"), [("true", 409), ("false", 200)])
def test_given_strict_then_what_is_so_already_is_a_conflict(
    process: Process, verb: str, strict: str, code: int
) -> None:
    """Row CD-127: CDAP answers 409 to the suspend of what is suspended; here only who asks for that."""
    process.bus.owner = lambda document: accepted(document, status=ReceiptStatus.UNCHANGED, version=3)
    answer = process.http.post(f"{PUT_SCHEDULE}/{verb}", params={"strict": strict})
    assert answer.status_code == code
    body = answer.json() if code < 400 else answer.json()["receipt"]
    assert body["status"] == "unchanged"


def test_given_modes_then_they_reach_the_owner_as_they_came(process: Process) -> None:
    process.http.put(PUT_SCHEDULE, json=SPEC, params={"on_update": "carry"})
    process.http.post(f"{PUT_SCHEDULE}/suspend", json={"mode": "hold", "until": "2030-01-01T00:00:00Z"})
    process.http.post(f"{PUT_SCHEDULE}/resume", json={"backlog": "last"})
    process.http.delete(PUT_SCHEDULE, params={"cancel_running": "true"})
    apply, suspend, resume, delete = process.bus.on(TOPICS.requests)
    assert apply["on_update"] == "carry"
    assert (suspend["mode"], suspend["until"]) == ("hold", "2030-01-01T00:00:00Z")
    assert resume["backlog"] == "last"
    assert delete["cancel_running"] is True


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_given_if_match_and_another_expected_version_then_neither_is_dropped_in_silence(
    process: Process, method: str
) -> None:
    """The query won: who had the ETag of version 4 replaced what stood at 5, and was never told."""
    sent = SPEC if method == "PUT" else None
    for version, status in ((5, 400), (4, 200)):
        query, headers = {"expected_version": version}, {"If-Match": '"4"'}
        answer = process.http.request(method, PUT_SCHEDULE, params=query, headers=headers, json=sent)
        assert answer.status_code == status
    assert [each["expected_version"] for each in process.bus.on(TOPICS.requests)] == [4]


@pytest.mark.parametrize("path", ["/api/v1/messages", "/api/v1/events"])
def test_given_a_header_that_no_id_fits_into_then_it_is_refused_and_the_body_takes_it(
    process: Process, path: str
) -> None:
    """A header has bytes and no encoding: the message was sent under an id of other letters, by which nobody could cancel it."""
    sent = {"namespace": "a"}
    sent |= {"topic": "t", "after": "1h", "payload_text": "x"} if path.endswith("messages") else {"type": "custom.x"}
    answer = process.http.post(path, json=sent, headers={b"Idempotency-Key": "größe".encode()})
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"], process.bus.produced) == (400, "Idempotency-Key", [])
    assert process.http.post(path, json={**sent, "id": "größe"}).status_code == 200
    assert json.loads(process.bus.produced[0].value)["id"] == "größe"


def test_given_if_match_then_a_conflict_is_412(process: Process) -> None:
    process.bus.owner = lambda document: accepted(document, status=ReceiptStatus.CONFLICT)
    answer = process.http.put(PUT_SCHEDULE, json=SPEC, headers={"If-Match": '"4"'})
    assert answer.status_code == 412
    assert process.bus.on(TOPICS.requests)[0]["expected_version"] == 4


@pytest.mark.parametrize(
    ("path", "spec"), [(PUT_SCHEDULE, SPEC), ("/api/v1/sources/flights/landed-files", SourceSpec.EXAMPLE)]
)
@pytest.mark.parametrize("method", ["PUT", "DELETE"])
@pytest.mark.parametrize(("header", "expected"), [("If-None-Match", 0), ("If-Match", "any")])
def test_given_a_star_then_the_owner_is_asked_to_create_only_or_to_replace_only_and_else_it_is_412(
    process: Process, path: str, spec: dict[str, Any], method: str, header: str, expected: object
) -> None:
    """`If-None-Match: *` overwrote what was there, and `If-Match: *` created what was not."""
    document = spec if method == "PUT" else None
    assert process.http.request(method, path, json=document, headers={header: " * "}).status_code == 200
    process.bus.owner = lambda document: accepted(document, status=ReceiptStatus.CONFLICT)
    answer = process.http.request(method, path, json=document, headers={header: "*"})
    assert (answer.status_code, answer.json()["reason"]) == (412, "conflict")
    assert [each["expected_version"] for each in process.bus.on(TOPICS.requests)] == [expected] * 2


@pytest.mark.parametrize(
    ("headers", "version", "named"),
    [
        ({"If-None-Match": '"3"'}, None, "If-None-Match"),
        ({"If-None-Match": "*", "If-Match": "*"}, None, "If-None-Match"),
        ({"If-None-Match": "*", "If-Match": '"3"'}, None, "If-None-Match"),
        ({"If-None-Match": "*"}, 3, "expected_version"),
        ({"If-Match": "*"}, 3, "expected_version"),
    ],
)
def test_given_preconditions_that_contradict_each_other_then_none_is_dropped_in_silence(
    process: Process, headers: dict[str, str], version: int | None, named: str
) -> None:
    query = {} if version is None else {"expected_version": version}
    answer = process.http.put(PUT_SCHEDULE, json=SPEC, params=query, headers=headers)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, named)
    assert process.bus.produced == []


def test_given_a_release_then_its_request_has_who_wants_it_and_lies_with_the_runs_shard(process: Process) -> None:
    run_id = "0003-mfrggzdfmztwq2lkn5wg63tqoe"
    said = {"reason": "its host was scrapped", "actor": "ana"}
    path = f"/api/v1/runs/{run_id}/release"
    answer = process.http.post(path, json=said, headers={"Idempotency-Key": "it"})
    assert (answer.status_code, answer.json()["status"]) == (200, "accepted")
    assert process.bus.on(TOPICS.requests) == [{"type": "run.release", "run_id": run_id, "id": "it", **said}]
    assert process.bus.produced[0].topic_partition == 3
    problem = Problem("run_id", "the run is running", "end this one with run.cancel")
    process.bus.owner = lambda document: accepted(document, status=ReceiptStatus.REJECTED, errors=(problem,))
    refused = process.http.post(path)
    assert (refused.status_code, refused.json()["errors"][0]["problem"]) == (400, problem.problem)


def test_given_any_request_then_it_goes_through(process: Process) -> None:
    body = {"type": "run.cancel", "run_id": "0003-mfrggzdfmztwq2lkn5wg63tqoe"}
    assert process.http.post("/api/v1/requests", json=body).status_code == 200
    assert process.bus.produced[0].topic_partition == 3
    foreign = {"type": "job.cancel", "job_id": "0099-mfrggzdfmztwq2lkn5wg63tqoe"}
    answer = process.http.post("/api/v1/requests", json=foreign)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "job_id")


def test_given_events_then_they_have_ids_and_lie_on_their_topic(process: Process) -> None:
    event = {"type": "data.partition", "namespace": "flights", "dataset": "flights.raw", "partition": "d"}
    answer = process.http.post("/api/v1/events", json=[event, {"type": "custom.x", "namespace": "a", "id": "e-2"}])
    ids = [item["id"] for item in answer.json()["items"]]
    assert answer.status_code == 200
    assert [each["id"] for each in process.bus.on(TOPICS.events)] == ids
    assert ids[1] == "e-2"
    wrong = process.http.post("/api/v1/events", json=[event, {"type": "custom.x"}])
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (400, "[1].namespace")


def test_given_a_notification_of_cdaps_again_under_its_idempotency_key_then_its_events_have_the_same_ids(
    process: Process,
) -> None:
    """They had new ones each time: repeated after a 503, as it says, a schedule whose job had gone counted them again."""
    sent = {"eventType": "PARTITION", "payload": {"datasetId": "flights.raw", "partitionKeys": ["d1", "d2"]}}
    for _ in range(2):
        assert process.http.post("/api/v1/events", json=sent, headers={"Idempotency-Key": "my/own"}).status_code == 200
    assert [each["id"] for each in process.bus.on(TOPICS.events)] == ["my~1own/d1", "my~1own/d2"] * 2


def test_given_an_event_of_the_namespace_that_is_nobodys_then_it_is_refused_here(process: Process) -> None:
    """It was answered 200 with its id, and lay among the dead letters: no schedule ever heard it."""
    own = {"type": "custom.x", "namespace": "tidegate"}
    other = {**own, "namespace": "a"}
    for sent, field in ((own, "namespace"), ([other, own], "[1].namespace")):
        answer = process.http.post("/api/v1/events", json=sent)
        (error,) = answer.json()["errors"]
        assert (answer.status_code, error["field"], error["problem"]) == (400, field, "is tidegate's own")
    assert process.bus.produced == []


@pytest.mark.parametrize(
    ("method", "path", "content", "name"),
    [
        ("PUT", PUT_SCHEDULE, json.dumps(SPEC)[:-1] + ', "trigger": {}}', "trigger"),
        ("POST", "/api/v1/requests", '{"type": "run.cancel", "run_id": "a", "run_id": "b"}', "run_id"),
        ("POST", f"{PUT_SCHEDULE}/suspend", '{"reason": "a", "reason": "b"}', "reason"),
        ("POST", "/api/v1/messages", '[{"headers": {"k": "1", "k": "2"}}]', "k"),
        ("POST", "/api/v1/events", '{"data": {"x": 1, "x": 1}}', "x"),
        ("POST", "/api/v1/messages", '{"payload": "' + "y" * 100_000 + '", "payload": 1}', "payload"),
    ],
)
def test_given_a_field_twice_then_400_names_it_and_nothing_is_sent(
    process: Process, method: str, path: str, content: str, name: str
) -> None:
    answer = process.http.request(method, path, content=content)
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["problem"]) == (400, f'has the field "{name}" twice in one object')
    assert process.bus.produced == []


def test_given_a_trigger_that_expects_a_version_then_the_owner_is_told(process: Process) -> None:
    answer = process.http.post(f"{PUT_SCHEDULE}/trigger", json={"expected_version": 3})
    assert answer.status_code == 200
    assert process.bus.on(TOPICS.requests)[0]["expected_version"] == 3


@pytest.mark.parametrize(
    ("path", "item"),
    [
        ("/api/v1/messages", MessageSend.EXAMPLE),
        ("/api/v1/events", DataPartitionEvent.EXAMPLE),
        ("/api/v1/schedules", SPEC),
        ("/api/v1/schedules/delete", {"namespace": "flights", "name": "a"}),
    ],
)
def test_given_a_list_under_one_idempotency_key_then_it_is_refused_everywhere(
    process: Process, path: str, item: dict[str, Any]
) -> None:
    """Taken without a word, who repeats it in good faith would have each of the list anew."""
    put_schedule(process, {**SPEC, "name": "a"})
    answer = process.http.post(path, json=[item], headers={"Idempotency-Key": "mine"})
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == "Idempotency-Key"
    assert process.bus.produced == []
