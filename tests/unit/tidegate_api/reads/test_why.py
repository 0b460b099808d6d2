"""`/why`: explanations over HTTP. What they say is the core's; here is what is read, and what cannot be asked."""

from __future__ import annotations

from tests.unit.tidegate_api.conftest import NOW, SHARDS, Process, put_schedule
from tidegate_core.language.values.derived_ids import run_id, schedule_shard
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.store_operations import Put


def a_waiting_job(process: Process) -> Job:
    shard = schedule_shard("flights", "land-day", SHARDS)
    fields = {
        "id": run_id(shard, "I1", "every", ("land-day", "1")),
        "namespace": "flights",
        "name": "land-day",
        "incarnation": "I1",
        "version": 1,
        "generation": 1,
        "state": "pending_constraint",
        "trigger": "time",
        "nominal": NOW,
        "satisfied_at": NOW,
        "deadline": NOW + 1_000_000,
    }
    job = Job(**fields)  # type: ignore[arg-type]  # fields by name
    process.store.write([Put(job.key(shard), to_item(job, job.key(shard)))])
    return job


def test_given_schedule_then_its_reasons_are_told_with_codes_and_values(process: Process) -> None:
    put_schedule(process, status="suspended", mode="hold", suspended_at=NOW, actor="ana", reason="maintenance")
    answer = process.http.get("/api/v1/schedules/flights/land-day/why").json()
    assert answer["about"] == "schedule flights/land-day"
    (reason,) = [each for each in answer["reasons"] if each["code"] == "suspended"]
    assert reason["text"] == f"suspended since {format_instant(NOW)} (mode hold), by ana: maintenance"
    assert reason["values"] == {"mode": "hold", "since": format_instant(NOW)}


def test_given_waiting_job_then_it_says_what_it_waits_for(process: Process) -> None:
    put_schedule(process)
    job = a_waiting_job(process)
    path = f"/api/v1/jobs/{job.id}/why"
    assert [each["code"] for each in process.http.get(path).json()["reasons"]] == ["being_decided"]


def test_given_what_is_not_there_then_404_and_what_is_no_instant_then_400(process: Process) -> None:
    put_schedule(process)
    assert process.http.get("/api/v1/schedules/flights/none/why").status_code == 404
    assert process.http.get(f"/api/v1/jobs/{run_id(0, 'I9', 'every', ('x', '1'))}/why").status_code == 404
    refused = process.http.get("/api/v1/schedules/flights/land-day/why", params={"at": "half past two"})
    assert refused.status_code == 400
    assert refused.json()["errors"][0]["field"] == "at"
    assert "a local time such as 2026-03-29T02:30" in refused.json()["errors"][0]["problem"]
