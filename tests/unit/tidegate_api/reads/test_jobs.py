"""Open jobs, very many of them, in pages and by filters."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.builders import MINUTE
from tests.unit.tidegate_api.conftest import EVENT_SPEC, NOW, SHARDS, SPEC, Process, a_run, put_schedule, shard_of
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.job import Job

JOBS = 400


def waiting_job(number: int, state: str = "pending_constraint") -> Job:
    run = a_run(f"land-{number % 50}", NOW + number * MINUTE)
    return Job(
        id=run.id,
        namespace=run.namespace,
        name=run.name,
        incarnation=run.incarnation,
        version=1,
        generation=1,
        state=state,
        trigger="time",
        nominal=run.nominal,
        satisfied_at=run.nominal,
        deadline=NOW + 10_000 * MINUTE,
    )


@pytest.fixture
def crowd(process: Process) -> Process:
    """Jobs that wait, one that gathers, one that launches and one whose program runs."""
    put_schedule(process, SPEC)
    put_schedule(process, EVENT_SPEC)
    for number in range(JOBS):
        job = waiting_job(number)
        process.put(job, job.key(int(job.id[:4])))
    evidence = Evidence(
        namespace="flights",
        name="join-day",
        incarnation="0" * 26,
        version=1,
        correlation="2026-01-01",
        id="0004-mfrggzdfmztwq2lkn5wg63tqoe",
        counts=(1, 0),
        chunks=1,
        first_at=NOW,
    )
    process.put(evidence, evidence.key(schedule_shard("flights", "join-day", SHARDS)))
    for number, state in ((JOBS, "submitted"), (JOBS + 1, "running")):
        job, run = waiting_job(number, "pending_launch"), a_run(f"land-{number % 50}", NOW + number * MINUTE, state)
        process.put(job, job.key(shard_of(run)))
        process.put(run, run.key(shard_of(run)))
    return process


def shown(process: Process, **query: Any) -> Iterator[dict[str, Any]]:
    token = ""
    while True:
        params = {**query, "page_size": 30, "page_token": token or None}
        answer = process.http.get("/api/v1/jobs", params=params)
        assert answer.status_code == 200, answer.text
        yield from answer.json()["items"]
        token = answer.json()["next_page_token"]
        if not token:
            return


def test_given_very_many_jobs_then_pages_show_each_once(crowd: Process) -> None:
    ids = [job["id"] for job in shown(crowd)]
    assert (len(ids), len({*ids})) == (JOBS + 3, JOBS + 3)


def test_given_a_state_then_only_jobs_that_are_shown_so_are_listed(crowd: Process) -> None:
    counts = {
        state: len([*shown(crowd, state=state)])
        for state in ("pending_trigger", "pending_constraint", "pending_launch", "launched")
    }
    assert counts == {"pending_trigger": 1, "pending_constraint": JOBS, "pending_launch": 1, "launched": 1}
    assert len([*shown(crowd, state=["pending_trigger", "launched"])]) == 2
    answer = crowd.http.get("/api/v1/jobs", params={"state": "waiting"})
    assert (answer.status_code, "pending_constraint" in answer.text) == (400, True)


def test_given_a_span_then_only_jobs_of_its_instants_are_listed(crowd: Process) -> None:
    since, until = format_instant(NOW + 100 * MINUTE), format_instant(NOW + 110 * MINUTE)
    assert len([*shown(crowd, since=since, until=until)]) == 10
    assert len([*shown(crowd, since=since, namespace="flights", schedule="land-7")]) == 6
    assert {job["state"] for job in shown(crowd, until=format_instant(NOW + 1))} == {
        "pending_trigger",
        "pending_constraint",
    }
