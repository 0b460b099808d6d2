"""Requests as plain Kafka records, from a client with its default partitioner and whatever keys it likes (DESIGN 7)."""

from __future__ import annotations

import itertools
import json
import uuid
from pathlib import Path
from typing import Any

from tests.support.cluster.cluster import Cluster
from tests.support.cluster.evidence import Evidence
from tests.support.cluster.message_load import deliveries_of, instant
from tests.support.cluster.topic_reader import read_topic
from tests.support.cluster.until import now_ms, until
from tests.support.cluster.user_client import Client
from tests.support.machine_speed import slowness

NAMESPACE = "requests"
PERIOD_MS = 2_000
DUE_IN_MS = 6_000
"""Eight requests are answered one after another before it, within a second or two; times how slow the machine is."""
keys = itertools.cycle([None, "a", "flights/join-day", "ключ", "x" * 300])
"""Record keys of all sorts: none of them may matter."""


def _spec(name: str, evidence: Evidence, work_s: float = 0.0, **changes: Any) -> dict[str, Any]:
    return {
        "kind": "schedule",
        "namespace": NAMESPACE,
        "name": name,
        "target": evidence.target(work_s),
        "trigger": {"type": "every", "period": f"{PERIOD_MS}ms"},
        **changes,
    }


def _ask(client: Client, kind: str, name: str, **more: Any) -> Any:
    return client.request({"type": kind, "namespace": NAMESPACE, "name": name, **more}, key=next(keys))


def _apply(client: Client, spec: dict[str, Any], **more: Any) -> Any:
    return _ask(client, "schedule.apply", spec["name"], spec=spec, **more)


def _run_states(cluster: Cluster, run_id: str) -> list[str]:
    records = [record.document for record in read_topic(cluster.bootstrap_servers, cluster.topic("runs"))]
    return [record["state"] for record in records if record["run_id"] == run_id]


def _lives(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def test_given_a_schedule_is_applied_and_replaced_then_versions_count_and_the_new_one_runs(
    client: Client, evidence: Evidence
) -> None:
    first = _apply(client, _spec("often", evidence))
    assert (first["status"], first["version"], len(first["next"])) == ("accepted", 1, 3)
    until(lambda: evidence.of("often"), "a run of version 1")
    newer = Evidence(evidence.folder / "newer")

    second = _apply(client, _spec("often", newer), expected_version=1)

    assert (second["status"], second["version"]) == ("accepted", 2)
    until(lambda: newer.of("often"), "a run of version 2")
    assert _apply(client, _spec("often", newer))["status"] == "unchanged"
    assert _apply(client, _spec("often", evidence), expected_version=1)["status"] == "conflict"
    assert _ask(client, "schedule.delete", "often")["status"] == "accepted"


def test_given_a_request_id_is_repeated_then_it_acts_once_and_has_one_answer(
    client: Client, evidence: Evidence
) -> None:
    spec = _spec("repeated", evidence, trigger={"type": "every", "period": "365d"})
    request_id = uuid.uuid4().hex
    first = _apply(client, spec, id=request_id)
    again = [_apply(client, spec, id=request_id) for _ in range(3)]
    assert [answer["version"] for answer in [first, *again]] == [1, 1, 1, 1]

    trigger_id = uuid.uuid4().hex
    runs = {_ask(client, "schedule.trigger", "repeated", id=trigger_id)["id"] for _ in range(3)}
    # A request behind the repeats in each topic partition: when they are answered, so were the repeats.
    for topic_partition in range(8):
        behind = {"id": uuid.uuid4().hex, "type": "schedule.delete", "namespace": NAMESPACE, "name": "never-was"}
        client.send("requests", behind, topic_partition=topic_partition)
        client.receipt(behind["id"])

    (run_id,) = runs
    until(lambda: [run for run in evidence.runs() if run.ended_ns], "the run ends")
    assert [run.run_id for run in evidence.runs()] == [run_id]


def test_given_suspend_and_resume_then_nothing_of_the_span_runs(client: Client, evidence: Evidence) -> None:
    assert _apply(client, _spec("pausing", evidence))["status"] == "accepted"
    until(lambda: evidence.of("pausing"), "a run before")

    suspended = _ask(client, "schedule.suspend", "pausing", reason="seen enough")
    suspended_at = now_ms()
    assert suspended["status"] == "accepted"
    assert _ask(client, "schedule.suspend", "pausing")["status"] == "unchanged"
    # Two instants pass: only then a run that should not be would show.
    until(lambda: now_ms() > suspended_at + 2 * PERIOD_MS + 500, "two instants pass")
    allowed = set(suspended["running"])
    between = [run for run in evidence.runs() if run.started_at > suspended_at and run.run_id not in allowed]
    assert between == []

    asked_at = now_ms()
    assert _ask(client, "schedule.resume", "pausing")["status"] == "accepted"
    resumed_at = now_ms()
    until(lambda: [run for run in evidence.runs() if run.started_at > resumed_at], "a run after")
    nominals = sorted(run.nominal or 0 for run in evidence.runs())
    assert len(set(nominals)) == len(nominals)
    # The answer may come long after the resume.
    assert not [nominal for nominal in nominals if suspended_at < nominal < asked_at]
    assert _ask(client, "schedule.delete", "pausing")["status"] == "accepted"


def test_given_a_delete_then_nothing_starts_after_its_answer(client: Client, evidence: Evidence) -> None:
    assert _apply(client, _spec("short-lived", evidence))["status"] == "accepted"
    until(lambda: evidence.of("short-lived"), "a run before")

    deleted = _ask(client, "schedule.delete", "short-lived")
    deleted_at = now_ms()

    assert deleted["status"] == "accepted"
    until(lambda: now_ms() > deleted_at + 2 * PERIOD_MS + 500, "two instants pass")
    allowed = set(deleted["running"])
    assert [run for run in evidence.runs() if run.started_at > deleted_at and run.run_id not in allowed] == []
    assert _ask(client, "schedule.trigger", "short-lived")["status"] in ("not_found", "rejected")


def test_given_a_run_is_cancelled_then_its_process_is_gone_and_the_record_says_killed(
    cluster: Cluster, client: Client, evidence: Evidence
) -> None:
    spec = _spec("long", evidence, work_s=120.0, trigger={"type": "every", "period": "365d"})
    assert _apply(client, spec)["status"] == "accepted"
    run_id = _ask(client, "schedule.trigger", "long")["id"]
    (run,) = until(lambda: evidence.of("long"), "the program starts")
    assert run.run_id == run_id

    cancelled = client.request({"type": "run.cancel", "namespace": NAMESPACE, "run_id": run_id}, key=next(keys))

    assert cancelled["status"] in ("accepted", "cancelled")
    until(lambda: not _lives(run.pid), "its process is gone")
    until(lambda: "killed" in _run_states(cluster, run_id), "its record says so")
    assert evidence.of("long")[0].ended_ns is None
    assert _ask(client, "schedule.delete", "long")["status"] == "accepted"


def test_given_cloud_events_in_binary_mode_then_requests_and_events_are_understood(
    client: Client, evidence: Evidence
) -> None:
    trigger = {"type": "data_partitions", "dataset": "clouds", "count": 2}
    request_id = uuid.uuid4().hex
    request = {"namespace": NAMESPACE, "name": "on-clouds", "spec": _spec("on-clouds", evidence, trigger=trigger)}
    headers = [("ce_specversion", b"1.0"), ("ce_id", request_id.encode()), ("ce_type", b"tidegate.schedule.apply")]
    headers += [("ce_source", b"/tests"), ("content-type", b"application/json")]
    client.send("requests", request, "any", headers)
    assert client.receipt(request_id)["status"] == "accepted"

    for number in (1, 1, 2):
        event = {"namespace": NAMESPACE, "dataset": "clouds", "partition": f"day-{number}", "kind": "created"}
        headers = [("ce_specversion", b"1.0"), ("ce_id", f"cloud-{number}".encode()), ("ce_source", b"/tests")]
        headers += [("ce_type", b"tidegate.data.partition"), ("content-type", b"application/json")]
        client.send("events", event, f"any-{number}", headers)

    (run,) = until(lambda: evidence.of("on-clouds"), "the run on two events")
    assert sorted(entry.data_partition for entry in run.manifest) == ["day-1", "day-2"]


def test_given_messages_are_made_replaced_and_cancelled_then_what_was_meant_arrives(
    cluster: Cluster, client: Client
) -> None:
    sink = cluster.make_topic("requests.out")
    due = now_ms() + int(DUE_IN_MS * slowness())

    def send(number: int, **more: Any) -> dict[str, Any]:
        request = {
            "id": f"send-{number}",
            "type": "message.send",
            "namespace": NAMESPACE,
            "topic": sink,
            "deliver_at": instant(due),
            "payload": {"number": number},
            "receipt": True,
            "message_key": f"user-{number}",
            "headers": {"colour": "green"},
            **more,
        }
        receipt: dict[str, Any] = client.request(request, key=next(keys))
        return receipt

    def cancel(**which: str) -> str:
        request = {"type": "message.cancel", "namespace": NAMESPACE, **which}
        return str(client.request(request, key=next(keys))["status"])

    assert send(1)["status"] == "accepted"
    assert send(2, key="reminder")["status"] == "accepted"
    assert send(3, key="reminder")["status"] == "accepted"
    assert send(4)["status"] == "accepted"
    assert send(5, key="regretted")["status"] == "accepted"
    assert cancel(message_id="send-4") == "cancelled"
    assert cancel(key="regretted") == "cancelled"
    assert cancel(key="never-sent") == "not_found"
    assert send(6, deliver_at=instant(now_ms() - 60_000))["status"] == "accepted"

    def delivered() -> list[int]:
        return sorted(delivery.number for delivery in deliveries_of(read_topic(cluster.bootstrap_servers, sink)))

    until(lambda: len(delivered()) >= 3 and now_ms() > due + 1_000, "three messages arrive")
    assert delivered() == [1, 3, 6]
    records = {record.document["number"]: record for record in read_topic(cluster.bootstrap_servers, sink)}
    assert (records[1].key, records[1].headers["colour"]) == (b"user-1", b"green")
    assert json.loads(records[3].value) == {"number": 3}
    assert cancel(message_id="send-1") == "too_late"
