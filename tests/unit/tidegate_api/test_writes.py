"""Writes: checked, sent to the owner's topic partition, answered with the receipt."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.tidegate_api.conftest import (
    NOW,
    SHARDS,
    SPEC,
    TOPIC_PARTITIONS,
    TOPICS,
    Process,
    accepted,
    put_schedule,
)

from tidegate_api.reads.schedules import ScheduleReads
from tidegate_api.reads.warnings import UPSTREAMS_READ_MAX
from tidegate_core.decisions.outage_watch import sign_of_life
from tidegate_core.effects import NotProduced
from tidegate_core.model.parsing import parse_events, parse_request
from tidegate_core.model.problems import MAX_PROBLEMS, Problem
from tidegate_core.model.receipts import Receipt, ReceiptStatus
from tidegate_core.model.schedule import ScheduleSpec
from tidegate_core.model.shards import message_shard, schedule_shard
from tidegate_core.records.messages import FIRST_VERSION, Message, MessageName, public_id
from tidegate_core.records.receipts import StoredReceipt, subject_of
from tidegate_core.store import keys
from tidegate_core.store.values import Put
from tidegate_testkit.builders import on_run_of

MESSAGE = {"namespace": "orders", "topic": "orders.reminders", "after": "1h", "payload": {"order": 17}}
PUT_SCHEDULE = "/api/v1/schedules/flights/land-day"


def silent(_: Any) -> None:
    """An owner who says nothing on the topic."""


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


def test_given_if_match_then_a_conflict_is_412(process: Process) -> None:
    process.bus.owner = lambda document: accepted(document, status=ReceiptStatus.CONFLICT)
    answer = process.http.put(PUT_SCHEDULE, json=SPEC, headers={"If-Match": '"4"'})
    assert answer.status_code == 412
    assert process.bus.on(TOPICS.requests)[0]["expected_version"] == 4


def test_given_no_receipt_then_202_with_a_location_that_answers_later(process: Process) -> None:
    process.bus.owner = silent
    answer = process.http.delete(PUT_SCHEDULE)
    assert (answer.status_code, answer.json()["status"]) == (202, "pending")
    location = answer.headers["Location"]
    request_id = answer.json()["request_id"]
    assert location.startswith(f"/api/v1/requests/flights/{request_id}?")
    assert process.http.get(location).status_code == 202
    put_receipt(process, accepted({"id": request_id, "namespace": "flights", "name": "land-day"}))
    assert process.http.get(location).json()["status"] == "accepted"
    assert process.http.get(f"/api/v1/requests/flights/{request_id}").json()["status"] == "accepted"
    assert process.http.get(f"/api/v1/requests/other/{request_id}").status_code == 404


def put_receipt(process: Process, receipt: Receipt, subject: str = "") -> None:
    shard = schedule_shard("flights", "land-day", SHARDS)
    row = StoredReceipt(
        request_id=receipt.request_id,
        namespace=receipt.namespace,
        subject=subject,
        body=receipt.to_json().decode(),
        expires_at=NOW,
    )
    process.put(row, row.key(shard))


def test_given_receipt_only_in_the_store_then_it_is_found_there(process: Process) -> None:
    def store_only(document: Any) -> None:
        subject = subject_of(parse_request(json.dumps(document).encode()))
        put_receipt(process, accepted(document, version=9), subject)

    process.bus.owner = store_only
    answer = process.http.delete(PUT_SCHEDULE)
    assert (answer.status_code, answer.json()["version"]) == (200, 9)


def test_given_stored_receipt_of_another_request_under_the_id_then_it_is_not_the_answer(process: Process) -> None:
    process.bus.owner = lambda document: put_receipt(process, accepted(document, version=9), "something else")
    assert process.http.delete(PUT_SCHEDULE).status_code == 202


def test_given_receipt_of_another_namespace_under_the_same_id_then_it_is_not_the_answer(process: Process) -> None:
    """Ids are unique within a namespace only, and every process reads all receipts."""
    process.bus.owner = lambda document: accepted({**document, "namespace": "orders"})
    answer = process.http.delete(PUT_SCHEDULE, headers={"Idempotency-Key": "mine-1"})
    assert (answer.status_code, answer.json()["namespace"]) == (202, "flights")
    put_receipt(process, accepted({"id": "mine-1", "namespace": "orders"}))
    assert process.http.get(answer.headers["Location"]).status_code == 202


def test_given_unknown_request_then_404(process: Process) -> None:
    assert process.http.get("/api/v1/requests/flights/unknown").status_code == 404


def test_given_pending_request_after_an_hour_then_404(process: Process) -> None:
    process.bus.owner = silent
    location = process.http.delete(PUT_SCHEDULE).headers["Location"]
    process.clock.now += 3_600_001
    assert process.http.get(location).status_code == 404


def test_given_broker_is_down_then_503_with_the_id_to_repeat_under(process: Process) -> None:
    process.bus.failure = NotProduced("unavailable", "no broker")
    answer = process.http.delete(PUT_SCHEDULE, headers={"Idempotency-Key": "mine-2"})
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
    assert answer.json()["request_id"] == "mine-2"


def test_given_any_request_then_it_goes_through(process: Process) -> None:
    body = {"type": "run.cancel", "run_id": "0003-mfrggzdfmztwq2lkn5wg63tqoe"}
    assert process.http.post("/api/v1/requests", json=body).status_code == 200
    assert process.bus.produced[0].topic_partition == 3
    foreign = {"type": "job.cancel", "job_id": "0099-mfrggzdfmztwq2lkn5wg63tqoe"}
    answer = process.http.post("/api/v1/requests", json=foreign)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "job_id")


def test_given_clockworks_own_record_then_it_is_a_message(process: Process) -> None:
    body = {
        "clientId": "orders",
        "scheduleKey": "reminder-17",
        "taskData": "eA==",
        "delivery": {"topic": "orders.reminders"},
        "scheduleTime": NOW + 60_000,
    }
    assert process.http.post("/api/v1/requests", json=body).status_code == 200
    (sent,) = process.bus.on(TOPICS.requests)
    assert (sent["type"], sent["key"], sent["receipt"]) == ("message.send", "reminder-17", True)


def test_given_message_then_a_receipt_is_asked_for(process: Process) -> None:
    answer = process.http.post("/api/v1/messages", json=MESSAGE)
    assert answer.status_code == 200
    (sent,) = process.bus.on(TOPICS.requests)
    assert sent["receipt"] is True
    shard = message_shard("orders", None, sent["id"], SHARDS)
    assert process.bus.produced[0].topic_partition == shard % TOPIC_PARTITIONS


def test_given_message_without_a_receipt_then_its_row_answers(process: Process) -> None:
    def store_row(document: Any) -> None:
        put_message(process, document["id"])

    process.bus.owner = store_row
    answer = process.http.post("/api/v1/messages", json={**MESSAGE, "id": "m-1"})
    shard = message_shard("orders", None, "m-1", SHARDS)
    assert answer.status_code == 200
    name = MessageName.of_request("orders", "m-1")
    assert answer.json()["id"] == public_id(shard, name, FIRST_VERSION)


def put_message(process: Process, request_id: str) -> Message:
    message = Message(
        id=MessageName.of_request("orders", request_id).id,
        version=FIRST_VERSION,
        origin="o",
        namespace="orders",
        nominal=NOW,
        slot=NOW,
        topic="orders.reminders",
        payload=b"{}",
        keyed=False,
        headers="[]",
        expires_at=NOW,
        request_id=request_id,
    )
    process.put(message, message.key(message_shard("orders", None, request_id, SHARDS)))
    return message


def test_given_batch_then_each_message_has_its_receipt_in_order(process: Process) -> None:
    batch = [{**MESSAGE, "id": f"m-{number}"} for number in range(1_000)]
    answer = process.http.post("/api/v1/messages", json=batch)
    assert answer.status_code == 200
    assert [item["request_id"] for item in answer.json()["items"]] == [each["id"] for each in batch]
    assert process.http.post("/api/v1/messages", json=[*batch, batch[0]]).status_code == 400


def test_given_batch_with_mistakes_then_each_is_named_and_nothing_is_sent(process: Process) -> None:
    batch = [MESSAGE, {**MESSAGE, "topic": "no topic"}, 7, {**MESSAGE, "id": "x"}, {**MESSAGE, "id": "x"}]
    answer = process.http.post("/api/v1/messages", json=batch)
    assert answer.status_code == 400
    assert [error["field"] for error in answer.json()["errors"]] == ["[1].topic", "[2]", "[4].id"]
    assert process.bus.produced == []


def test_given_message_ten_years_ahead_then_400(process: Process) -> None:
    answer = process.http.post("/api/v1/messages", json={**MESSAGE, "after": "3660d"})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "after")


def test_given_payload_too_large_then_413(process: Process) -> None:
    assert process.http.post("/api/v1/messages", json={**MESSAGE, "payload": "x" * 262_145}).status_code == 413
    assert process.http.put(PUT_SCHEDULE, content=b"x" * 1_048_577).status_code == 413


def test_given_message_cancel_by_key_or_id_then_it_is_sent(process: Process) -> None:
    url = "/api/v1/messages"
    assert process.http.delete(url, params={"namespace": "orders", "key": "a/b"}).status_code == 200
    assert process.http.delete(url, params={"namespace": "orders", "message_id": "m-1"}).status_code == 200
    assert process.http.delete(url, params={"namespace": "orders"}).status_code == 400
    assert [each.get("key") or each["message_id"] for each in process.bus.on(TOPICS.requests)] == ["a/b", "m-1"]


def test_given_message_then_it_can_be_looked_at(process: Process) -> None:
    put_message(process, "m-7")
    query = {"namespace": "orders", "message_id": "m-7"}
    assert process.http.get("/api/v1/messages", params=query).json()["state"] == "waiting"
    missing = {"namespace": "orders", "key": "none"}
    assert process.http.get("/api/v1/messages", params=missing).status_code == 404


def test_given_events_then_they_have_ids_and_lie_on_their_topic(process: Process) -> None:
    event = {"type": "data.partition", "namespace": "flights", "dataset": "flights.raw", "partition": "d"}
    answer = process.http.post("/api/v1/events", json=[event, {"type": "custom.x", "namespace": "a", "id": "e-2"}])
    ids = [item["id"] for item in answer.json()["items"]]
    assert answer.status_code == 200
    assert [each["id"] for each in process.bus.on(TOPICS.events)] == ids
    assert ids[1] == "e-2"
    wrong = process.http.post("/api/v1/events", json=[event, {"type": "custom.x"}])
    assert (wrong.status_code, wrong.json()["errors"][0]["field"]) == (400, "[1].namespace")


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


def test_given_a_shown_schedule_then_applying_its_spec_changes_nothing(process: Process) -> None:
    spec = runnable(process)
    put_schedule(process, {**spec, "constraints": [{"type": "concurrency", "max": 2}], "suspended": True})
    shown = process.http.get(PUT_SCHEDULE).json()["spec"]
    assert process.http.put(PUT_SCHEDULE, json=shown, params={"dry_run": "true"}).json()["would"] == "unchanged"


def test_given_a_trigger_that_expects_a_version_then_the_owner_is_told(process: Process) -> None:
    answer = process.http.post(f"{PUT_SCHEDULE}/trigger", json={"expected_version": 3})
    assert answer.status_code == 200
    assert process.bus.on(TOPICS.requests)[0]["expected_version"] == 3


def runnable(process: Process) -> dict[str, Any]:
    """Returns the spec with a file that is there."""
    file = process.data / "land.py"
    file.write_text("")
    return {**SPEC, "target": {"type": "program", "program": {"type": "python", "file": str(file)}}}


def test_given_dry_run_then_it_says_what_would_happen_and_sends_nothing(process: Process) -> None:
    spec = runnable(process)
    query = {"dry_run": "true"}
    assert process.http.put(PUT_SCHEDULE, json=spec, params=query).json()["would"] == "create"
    put_schedule(process, spec)
    assert process.http.put(PUT_SCHEDULE, json=spec, params=query).json()["would"] == "unchanged"
    changed = {**spec, "overlap": "allow"}
    answer = process.http.put(PUT_SCHEDULE, json=changed, params=query).json()
    assert (answer["would"], answer["changed"], answer["version"]) == ("replace", ["overlap"], 1)
    assert answer["warnings"] == []
    (warning,) = process.http.put(PUT_SCHEDULE, json={**spec, "overlap": "skip"}, params=query).json()["warnings"]
    assert warning.startswith('catchup.mode: "all" with overlap: skip')
    too_often = {**spec, "trigger": {"type": "every", "period": "2s"}}
    assert process.http.put(PUT_SCHEDULE, json=too_often, params=query).status_code == 400
    assert process.bus.produced == []


@pytest.mark.parametrize(("least", "status"), [(1_000, 200), (60_000, 400)])
def test_given_a_node_with_another_minimum_period_then_a_dry_run_judges_by_it(
    process: Process, least: int, status: int
) -> None:
    """It judged by the API's own setting, and refused what the owner takes, or the other way round."""
    lease = keys.lease(schedule_shard("flights", "land-day", SHARDS))
    sign = sign_of_life("owner-1", "node-1", NOW, {}, NOW, minimum_period_ms=least)
    process.store.write([Put(lease, {"pk": lease.pk, "sk": lease.sk, "owner": "owner-1"}), sign])
    often = {**runnable(process), "trigger": {"type": "every", "period": "5s" if status == 200 else "30s"}}
    assert process.http.put(PUT_SCHEDULE, json=often, params={"dry_run": "true"}).status_code == status


def circle(process: Process) -> dict[str, Any]:
    """Returns a schedule that closes a circle with two that are stored."""
    after = {name: {**SPEC, "name": name, "trigger": on_run_of(up)} for name, up in (("b", "c"), ("c", "land-day"))}
    for document in after.values():
        put_schedule(process, document)
    return {**runnable(process), "trigger": on_run_of("b")}


@pytest.mark.parametrize("query", [{"dry_run": "true"}, {}])
def test_given_an_apply_that_closes_a_circle_then_it_is_made_and_warned_of(
    process: Process, query: dict[str, str]
) -> None:
    """Docs said so, and no command: who applies the last of them learnt nothing."""
    answer = process.http.put(PUT_SCHEDULE, json=circle(process), params=query)
    assert answer.status_code == 200
    (warning,) = answer.json()["warnings"]
    assert "flights/land-day waits for flights/b waits for flights/c waits for flights/land-day" in warning


def test_given_an_unchanged_schedule_then_it_is_not_warned_of_again(process: Process) -> None:
    process.bus.owner = lambda document: accepted(document, status=ReceiptStatus.UNCHANGED, version=3)
    assert process.http.put(PUT_SCHEDULE, json=circle(process)).json()["warnings"] == []


def test_given_a_chain_that_is_long_then_only_so_much_of_it_is_read(process: Process) -> None:
    for number in range(UPSTREAMS_READ_MAX + 5):
        put_schedule(process, {**SPEC, "name": f"s-{number}", "trigger": on_run_of(f"s-{number + 1}")})
    put_schedule(process, {**SPEC, "name": f"s-{UPSTREAMS_READ_MAX + 5}", "trigger": on_run_of("land-day")})
    asked: list[str] = []
    specs = ScheduleReads.specs

    async def counted(reads: ScheduleReads, refs: Sequence[str]) -> dict[str, ScheduleSpec]:
        asked.extend(refs)
        return await specs(reads, refs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ScheduleReads, "specs", counted)
        spec = {**runnable(process), "trigger": on_run_of("s-0")}
        assert process.http.put(PUT_SCHEDULE, json=spec).json()["warnings"] == []
    assert len(asked) == UPSTREAMS_READ_MAX


@pytest.mark.parametrize("own", [True, False])
def test_given_dry_run_of_an_update_that_cannot_keep_what_is_pending_then_it_is_refused_as_the_apply_would_be(
    process: Process, own: bool
) -> None:
    spec = runnable(process)
    put_schedule(process, spec)
    changed = {**spec, "trigger": {"type": "every", "period": "3h"}, **({"on_update": "carry"} if own else {})}
    query = {"dry_run": "true", **({} if own else {"on_update": "carry"})}
    answer = process.http.put(PUT_SCHEDULE, json=changed, params=query)
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (400, "on_update")


@pytest.mark.parametrize("file", ["none.py", ""])
def test_given_dry_run_of_a_program_file_that_is_not_there_or_a_folder_then_it_is_refused_as_the_apply_would_be(
    process: Process, file: str
) -> None:
    path = str(process.data / file)
    spec = {**SPEC, "target": {"type": "program", "program": {"type": "python", "file": path}}}
    answer = process.http.put(PUT_SCHEDULE, json=spec, params={"dry_run": "true"})
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (400, "target.program.file")
    assert error["problem"] == f"{path} does not exist on the API's host, or is no file"
    put_schedule(process, spec)  # Its owner does not look again at what changes nothing.
    assert process.http.put(PUT_SCHEDULE, json=spec, params={"dry_run": "true"}).json()["would"] == "unchanged"


def test_given_dry_run_that_expects_another_version_then_409_as_the_apply(process: Process) -> None:
    spec = runnable(process)
    put_schedule(process, spec, version=2)
    for expected, status in ((2, 200), (1, 409), (0, 409)):
        query = {"dry_run": "true", "expected_version": str(expected)}
        assert process.http.put(PUT_SCHEDULE, json=spec, params=query).status_code == status


def test_given_dry_run_of_an_unchanged_schedule_that_has_run_its_course_then_it_is_unchanged(process: Process) -> None:
    """As its owner answers: only what changes something is judged by the present."""
    spec = runnable(process)
    ended = {**spec, "trigger": {**SPEC["trigger"], "start": "2020-01-01T00:00:00Z", "end": "2021-01-01T00:00:00Z"}}
    put_schedule(process, ended, next_nominal=None)
    query = {"dry_run": "true"}
    assert process.http.put(PUT_SCHEDULE, json=ended, params=query).json()["would"] == "unchanged"
    changed = process.http.put(PUT_SCHEDULE, json={**ended, "overlap": "allow"}, params=query)
    assert (changed.status_code, changed.json()["errors"][0]["field"]) == (400, "trigger.end")


def watched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Returns the names of the threads on which requests and events are parsed, in order, as they come."""
    where: list[str] = []

    def watching(parse: Any) -> Any:
        def call(*given: Any) -> Any:
            where.append(threading.current_thread().name)
            return parse(*given)

        return call

    monkeypatch.setattr("tidegate_api.routes.common.parse_request", watching(parse_request))
    monkeypatch.setattr("tidegate_api.routes.events.parse_events", watching(parse_events))
    return where


@pytest.mark.parametrize("path", ["/api/v1/messages", "/api/v1/events"])
def test_given_a_batch_then_it_is_read_off_the_loop_and_programs_can_start_meanwhile(
    process: Process, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    where = watched(monkeypatch)
    batch = [MESSAGE, MESSAGE] if path.endswith("messages") else [{"type": "custom.x", "namespace": "a"}] * 2
    assert process.http.post(path, json=batch).status_code == 200
    assert len(where) == 2
    assert all(name.startswith("tidegate-read") for name in where)


def test_given_a_batch_of_faults_then_only_as_many_are_looked_for_as_are_told(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed = watched(monkeypatch)
    answer = process.http.post("/api/v1/messages", json=[{**MESSAGE, "topc": 1}] * 200)
    assert [each["field"] for each in answer.json()["errors"]] == [f"[{n}].topc" for n in range(MAX_PROBLEMS)]
    assert len(parsed) == MAX_PROBLEMS


def test_given_start_then_receipts_are_read_from_the_end_that_was_found(process: Process) -> None:
    assert process.http.get("/readyz").status_code == 200
    assert process.bus.reader.assigned == {(TOPICS.receipts, 0): 100, (TOPICS.receipts, 1): 101}
