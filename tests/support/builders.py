"""Builders that read as English: documents as users write them, records as the core keeps them. For tests of the core."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, TypeAlias

from tidegate_core.engine.actor_inputs import Assignment, TopicFacts
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.values.derived_ids import run_id
from tidegate_core.language.values.log_position import Position
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import Definition, ScheduleState

Doc: TypeAlias = dict[str, Any]
"""A JSON document, as users write it."""

NOW = 1_763_000_000_000
"""2025-11-13T02:13:20Z: a whole number of seconds, not of minutes."""
SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
DAY = 24 * HOUR
DEFAULT_SHARDS = 4
"""Of a holding that is not told otherwise."""
REQUESTS = "tidegate.requests"
EVENTS = "tidegate.events"
RECEIPTS = "tidegate.receipts"
RUNS = "tidegate.runs"
RUNS_DLQ = "tidegate.runs.dlq"
REQUESTS_ID, EVENTS_ID = "a" * 32, "b" * 32


# -- documents ------------------------------------------------------------------------------------------------------------


def every(period: str, **more: Any) -> Doc:
    return {"type": "every", "period": period, **more}


def on_data(dataset: str = "raw", count: int = 1) -> Doc:
    return {"type": "data_partitions", "dataset": dataset, "count": count}


def on_run_of(schedule: str, *states: str) -> Doc:
    return {"type": "run_status", "schedule": schedule, "states": list(states or ("succeeded",))}


def all_of(*leaves: Doc, **more: Any) -> Doc:
    return {"type": "all_of", "triggers": list(leaves), **more}


def at_most(runs: int, scope: str = "schedule", **more: Any) -> Doc:
    return {"type": "concurrency", "max": runs, "scope": scope, **more}


def a_spec(name: str = "nightly", trigger: Doc | None = None, args: Sequence[str] = (), **more: Any) -> Doc:
    """Returns a schedule as users write it; its program is `/jobs/<name>.py` unless `file` says otherwise."""
    program = {"type": "python", "file": more.pop("file", f"/jobs/{name}.py"), "args": list(args)}
    return {
        "kind": "schedule",
        "namespace": "flights",
        "name": name,
        "target": {"type": "program", "program": program},
        "trigger": trigger or every("1m"),
        **more,
    }


def a_recurring(name: str = "ping", trigger: Doc | None = None, *, payload: Any = "ping", **target: Any) -> Doc:
    """Returns a schedule that sends a message to `out`, every 10 s unless told otherwise."""
    message = {"type": "message", "topic": "out", "payload": payload, **target}
    named = {"kind": "schedule", "namespace": "flights", "name": name}
    return {**named, "target": message, "trigger": trigger or every("10s")}


def parsed_spec(name: str = "nightly", trigger: Doc | None = None, **more: Any) -> ScheduleSpec:
    return parse_schedule(a_spec(name, trigger, **more))


def an_apply(spec: Doc, request_id: str | None = None, **more: Any) -> Doc:
    named = {"namespace": spec["namespace"], "name": spec["name"]}
    return {"id": request_id or f"apply-{spec['name']}", "type": "schedule.apply", **named, "spec": spec, **more}


def a_request(kind: str, name: str = "nightly", request_id: str | None = None, **more: Any) -> Doc:
    """Returns `schedule.<kind>`, such as `delete` or `suspend`."""
    wanted = request_id or f"{kind}-{name}"
    return {"id": wanted, "type": f"schedule.{kind}", "namespace": "flights", "name": name, **more}


def a_send(request_id: str | None = "m-1", **more: Any) -> Doc:
    """Returns a send to `out`, due 10 s after its append time unless told otherwise."""
    time = {} if "deliver_at" in more or "after" in more else {"after": "10s"}
    body = {} if {"payload", "payload_text", "payload_base64"} & more.keys() else {"payload": {"of": request_id}}
    named = {} if request_id is None else {"id": request_id}
    return {**named, "type": "message.send", "namespace": "orders", "topic": "out", **time, **body, **more}


def a_cancel(request_id: str = "c-1", **which: str) -> Doc:
    return {"id": request_id, "type": "message.cancel", "namespace": "orders", **which}


def an_event(data_partition: str, dataset: str = "raw", event_id: str | None = None, **more: Any) -> Doc:
    wanted = event_id or f"{dataset}/{data_partition}"
    named = {"namespace": "flights", "dataset": dataset, "partition": data_partition}
    return {"id": wanted, "type": "data.partition", **named, **more}


# -- records --------------------------------------------------------------------------------------------------------------


def a_position(offset: int = 0, at: int = NOW) -> Position:
    return Position(at, REQUESTS_ID, 0, offset)


def a_schedule(name: str = "nightly", **more: Any) -> ScheduleState:
    """Returns the state of an active schedule in its first version and generation."""
    fields: dict[str, Any] = {"status": "active", "incarnation": "I1", "version": 1, "generation": 1}
    return ScheduleState(**{"namespace": "flights", "name": name, "position": a_position().text(), **fields, **more})


def a_definition(spec: Doc, version: int = 1) -> Definition:
    text = parse_schedule(spec).canonical_json()
    return Definition(namespace=spec["namespace"], name=spec["name"], version=version, spec=text, created_at=NOW - HOUR)


def a_job(number: int = 1, *, due: int = NOW, name: str = "nightly", shard: int = 0, **more: Any) -> Job:
    """Returns a job that waits for its constraints; equal numbers give equal ids."""
    fields: dict[str, Any] = {
        "id": run_id(shard, "I1", "every", (name, str(number))),
        "namespace": "flights",
        "name": name,
        "incarnation": "I1",
        "version": 1,
        "generation": 1,
        "state": "pending_constraint",
        "trigger": "time",
        "nominal": due,
        "satisfied_at": due + number,
        "deadline": due + 24 * HOUR,
    }
    return Job(**{**fields, **more})


def a_run(number: int = 1, *, state: str = "submitting", shard: int = 0, **more: Any) -> Run:
    """Returns the run of `a_job(number)`, admitted at NOW and without permits; past the gate it has a driver."""
    order = {"program_type": "python", "file": "/jobs/nightly.py", "args": [], "conf": {}, "env": {}, "properties": {}}
    gone_in = {} if state in {"submitting", "submitted"} else {"driver": "driver-1", "started_at": NOW + 1}
    fields: dict[str, Any] = {
        "id": a_job(number, shard=shard).id,
        "namespace": "flights",
        "name": "nightly",
        "incarnation": "I1",
        "version": 1,
        "generation": 1,
        "attempt": 1,
        "state": state,
        "trigger": "time",
        "nominal": NOW,
        "order": json.dumps(order),
        "admitted_at": NOW,
        "start_by": NOW + 15 * MINUTE,
    }
    return Run(**{**fields, **gone_in, **more})


def some_evidence(counts: Sequence[int] = (1,), **more: Any) -> Evidence:
    fields: dict[str, Any] = {
        "id": run_id(0, "I1", "data_partitions", ("seal", "1")),
        "namespace": "flights",
        "name": "nightly",
        "incarnation": "I1",
        "version": 1,
        "correlation": "",
        "counts": tuple(counts),
        "chunks": 1,
        "first_at": NOW,
    }
    return Evidence(**{**fields, **more})


def a_match(data_partition: str, *, leaf: int = 0, dataset: str = "raw", **more: Any) -> Doc:
    """Returns one matched event as it lies in an inbox row."""
    event = {"type": "data.partition", "namespace": "flights", "dataset": dataset, "partition": data_partition}
    fields = {"leaf": leaf, "incarnation": "I1", "generation": 1, "at": NOW, "origin": f"{EVENTS_ID}/0/1"}
    return {**fields, "fact": json.dumps(event), **more}


def an_inbox_row(number: int, *matched: Doc, name: str = "nightly") -> InboxRow:
    return InboxRow(namespace="flights", name=name, kind="X", origin=f"e.{number:06d}", body=json.dumps(matched))


def a_holding(owner: str = "node-1", **more: Any) -> Assignment:
    """Returns the holding of ownership topic partition 0 of 1, with four shards, unless told otherwise."""
    topic_partitions = more.pop("topic_partitions", 1)
    fields: dict[str, Any] = {
        "topic_partition": 0,
        "topic_partitions": topic_partitions,
        "map_version": 1,
        "shards": DEFAULT_SHARDS,
        "cluster_id": "brokers",
        "requests": TopicFacts(REQUESTS, REQUESTS_ID, topic_partitions),
        "events_topic": EVENTS,
        "receipts_topic": RECEIPTS,
        "runs_topic": RUNS,
        "requests_dlq_topic": "tidegate.requests.dlq",
        "events_dlq_topic": "tidegate.events.dlq",
        "runs_dlq_topic": RUNS_DLQ,
        "minimum_period_ms": SECOND,
    }
    return Assignment(owner=owner, node=owner, **{**fields, **more})
