"""Definitions of a newer release beside those that this one can read."""

from __future__ import annotations

import json

import pytest

from tests.support.builders import on_run_of
from tests.unit.tidegate_api.conftest import EVENT_SPEC, NOW, PUT_SCHEDULE, SHARDS, SPEC, Process, put_schedule
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.schedule import Definition

NEWER = "/api/v1/schedules/flights/join-day"
TRIGGER = {"type": "moon_phase", "phase": "full"}


@pytest.fixture
def upgraded(process: Process) -> Process:
    """`land-day` as this release has it; `join-day` with a trigger that only a newer one knows, and with evidence for it."""
    put_schedule(process)
    put_schedule(process, EVENT_SPEC)
    spec = json.loads(ScheduleSpec.model_validate(EVENT_SPEC).canonical_json())
    text = json.dumps({**spec, "trigger": TRIGGER})
    newer = Definition(namespace="flights", name="join-day", version=1, spec=text, created_at=NOW)
    shard = schedule_shard("flights", "join-day", SHARDS)
    process.put(newer, newer.key(shard))
    evidence = Evidence(
        namespace="flights",
        name="join-day",
        incarnation="0" * 26,
        version=1,
        correlation="2013-01-01",
        id=f"{shard:04d}-mfrggzdfmztwq2lkn5wg63tqoe",
        counts=(1, 0),
        chunks=1,
        first_at=NOW,
    )
    process.put(evidence, evidence.key(shard))
    return process


def test_given_one_then_the_list_has_it_as_it_is_stored_and_the_others(upgraded: Process) -> None:
    """Found in review: 500 for the whole list."""
    items = {item["name"]: item for item in upgraded.http.get("/api/v1/schedules").json()["items"]}
    newer, other = items["join-day"], items["land-day"]
    assert (newer["spec"]["trigger"], newer["next"], newer["status"]) == (TRIGGER, [], "active")
    assert "cannot read the definition (trigger.type:" in newer["unreadable"]
    assert "use an API process of that release" in newer["unreadable"]
    assert (len(other["next"]), other["unreadable"]) == (3, None)
    assert upgraded.http.get(NEWER).json() == newer


def test_given_one_whose_evidence_gathers_then_its_job_is_shown_without_what_is_missing(upgraded: Process) -> None:
    (job,) = upgraded.http.get("/api/v1/jobs").json()["items"]
    assert (job["state"], job["missing"], job["evidence"]["counts"]) == ("pending_trigger", None, [1, 0])


def test_given_one_then_why_says_that_it_cannot_be_read_here(upgraded: Process) -> None:
    (job,) = upgraded.http.get("/api/v1/jobs").json()["items"]
    for path, subject in ((NEWER, "schedule flights/join-day"), (f"/api/v1/jobs/{job['id']}", f"job {job['id']}")):
        answer = upgraded.http.get(f"{path}/why")
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
        assert answer.json()["detail"].startswith(f"{subject}: this release cannot read the definition (trigger.type:")


def test_given_one_that_a_schedule_waits_for_then_that_can_be_applied(upgraded: Process) -> None:
    """The circles that an apply is warned of were no reason to refuse it."""
    spec = {**SPEC, "trigger": on_run_of("join-day")}
    assert upgraded.http.put(PUT_SCHEDULE, json=spec).status_code == 200


@pytest.mark.parametrize("on_update", ["restart", "carry"])
def test_given_one_then_a_batch_over_it_is_judged_by_its_owner(upgraded: Process, on_update: str) -> None:
    answer = upgraded.http.post(
        "/api/v1/schedules", json=[{**EVENT_SPEC, "overlap": "allow"}], params={"on_update": on_update}
    )
    assert (answer.status_code, upgraded.bus.on("tidegate.requests")[-1]["expected_version"]) == (200, 1)
