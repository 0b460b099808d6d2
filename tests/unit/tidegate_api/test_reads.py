"""What is shown: schedules, jobs, the ledger; over all shards, in pages."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.tidegate_api.conftest import EVENT_SPEC, NOW, SHARDS, SPEC, Process, a_run, put_schedule, shard_of
from tidegate_api.reads import range_scan, runs
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.store_operations import RangeRead
from tidegate_core.runs.run_completion import ledger_row


def all_pages(process: Process, path: str, **query: Any) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    token = ""
    while True:
        answer = process.http.get(f"/api/v1{path}", params={**query, **({"page_token": token} if token else {})})
        assert answer.status_code == 200, answer.text
        items += answer.json()["items"]
        token = answer.json()["next_page_token"]
        if not token:
            return items


@pytest.mark.parametrize("size", [1, 3, 7, 100])
def test_given_schedules_in_all_shards_then_pages_show_each_once(process: Process, size: int) -> None:
    for number in range(20):
        put_schedule(process, {**SPEC, "name": f"s-{number}"})
    put_schedule(process, {**SPEC, "namespace": "other"})
    put_schedule(process, {**SPEC, "name": "gone"}, status="deleted")
    found = all_pages(process, "/schedules", namespace="flights", page_size=size)
    assert sorted(item["name"] for item in found) == sorted(f"s-{number}" for number in range(20))
    assert len(all_pages(process, "/schedules", page_size=size)) == 21


def test_given_schedule_then_it_is_shown_with_its_spec_and_next_instants(process: Process) -> None:
    put_schedule(process, version=3)
    answer = process.http.get("/api/v1/schedules/flights/land-day")
    assert answer.headers["ETag"] == '"3"'
    body = answer.json()
    assert (body["status"], body["version"], body["spec"]["trigger"]["type"]) == ("active", 3, "every")
    assert body["next"] == ["2025-11-20T23:00:00Z", "2025-11-21T00:00:00Z", "2025-11-21T01:00:00Z"]


@pytest.mark.parametrize("name", ["none", "gone"])
def test_given_no_such_schedule_then_404(process: Process, name: str) -> None:
    put_schedule(process, {**SPEC, "name": "gone"}, status="deleted")
    answer = process.http.get(f"/api/v1/schedules/flights/{name}")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")


def put_evidence(process: Process, correlation: str, counts: tuple[int, ...], **fields: Any) -> Evidence:
    shard = schedule_shard("flights", "join-day", SHARDS)
    given: dict[str, Any] = {
        "id": f"{shard:04d}-{keys.text_hash(correlation)}",
        "namespace": "flights",
        "name": "join-day",
        "incarnation": "0" * 26,
        "version": 1,
        "correlation": correlation,
        "counts": counts,
        "chunks": 1,
        "first_at": NOW,
        "deadline": NOW + 1_000,
    }
    evidence = Evidence(**{**given, **fields})
    process.put(evidence, evidence.key(shard))
    return evidence


def put_job(process: Process, **fields: Any) -> Job:
    run = a_run()
    given: dict[str, Any] = {
        "id": run.id,
        "namespace": "flights",
        "name": "join-day",
        "incarnation": "0" * 26,
        "version": 1,
        "generation": 1,
        "state": "pending_constraint",
        "trigger": "events",
        "nominal": NOW,
        "satisfied_at": NOW,
        "deadline": NOW + 1_000,
        "unmet": json.dumps({"code": "time_window", "reason": "the window opens at 22:00", "until": NOW + 500}),
    }
    job = Job(**{**given, **fields})
    process.put(job, job.key(shard_of(run)))
    return job


def test_given_gathering_evidence_then_it_is_a_job_that_says_what_is_missing(process: Process) -> None:
    put_schedule(process, EVENT_SPEC)
    evidence = put_evidence(process, "2013-01-01", (1, 0))
    put_evidence(process, "2013-01-02", (1, 1), job=True)
    job = put_job(process)
    for query in (
        {},
        {"namespace": "flights"},
        {"schedule": "join-day"},
        {"namespace": "flights", "schedule": "join-day"},
    ):
        items = all_pages(process, "/jobs", page_size=1, **query)
        assert [item["id"] for item in items] == [evidence.id, job.id]
        assert items[0]["state"] == "pending_trigger"
        assert "weather.raw" in items[0]["missing"]
        assert items[1]["unmet"] == {
            "code": "time_window",
            "reason": "the window opens at 22:00",
            "at": None,
            "until": "2025-11-20T22:00:00.500Z",
            "verdicts": [],
        }
    assert all_pages(process, "/jobs", namespace="other") == []
    assert all_pages(process, "/jobs", schedule="other") == []
    assert process.http.get(f"/api/v1/jobs/{evidence.id}").json()["evidence"]["counts"] == [1, 0]
    assert process.http.get(f"/api/v1/jobs/{job.id}").json()["state"] == "pending_constraint"
    assert process.http.get(f"/api/v1/jobs/{a_run(nominal=NOW + 1).id}").status_code == 404


@pytest.mark.parametrize(
    ("run", "state", "run_state"),
    [
        ({"state": "submitting"}, "pending_launch", "submitting"),
        ({"state": "submitted"}, "pending_launch", "submitted"),
        ({"state": "running", "started_at": NOW}, "launched", "running"),
        ({"state": "lost", "started_at": NOW}, "launched", "lost"),
        ({"state": "running", "started_at": NOW, "ended_at": NOW, "outcome": "succeeded"}, "launched", "succeeded"),
        ({"state": "running", "started_at": NOW, "ended_at": NOW, "outcome": "failed"}, "launched", "running"),
    ],
)
def test_given_an_admitted_job_then_its_run_says_how_far_the_launch_is(
    process: Process, run: dict[str, Any], state: str, run_state: str
) -> None:
    job = put_job(process, state="pending_launch", unmet=None)
    row = a_run(**run)
    process.put(row, row.key(shard_of(row)))
    (listed,) = all_pages(process, "/jobs")
    for view in (listed, process.http.get(f"/api/v1/jobs/{job.id}").json()):
        assert (view["id"], view["state"], view["run_state"]) == (job.id, state, run_state)


def test_given_an_admitted_job_whose_run_ended_since_it_was_read_then_it_is_not_open(process: Process) -> None:
    job = put_job(process, state="pending_launch", unmet=None)
    assert all_pages(process, "/jobs") == []
    assert process.http.get(f"/api/v1/jobs/{job.id}").status_code == 404


def ledger(process: Process, schedule: str, count: int) -> None:
    shard = schedule_shard("flights", schedule, SHARDS)
    for number in range(count):
        row = LedgerRow(
            namespace="flights",
            name=schedule,
            incarnation="0" * 26,
            version=1,
            job_id=f"{shard:04d}-{keys.text_hash(str(number))}",
            trigger="time",
            nominal=NOW + number * 1_000,
            disposition="cancelled",
            reason="suspended",
            at=NOW,
        )
        process.put(row, row.key(shard))


def test_given_ledger_then_pages_show_every_row_in_order_and_between_instants(process: Process) -> None:
    ledger(process, "land-day", 130)
    ledger(process, "land-day-2", 3)
    query: dict[str, Any] = {"namespace": "flights", "schedule": "land-day", "page_size": 50}
    rows = all_pages(process, "/occurrences", **query)
    assert len(rows) == 130
    assert [row["nominal"] for row in rows] == sorted(row["nominal"] for row in rows)
    assert (rows[0]["disposition"], rows[0]["reason"]) == ("cancelled", "suspended")
    between = all_pages(process, "/occurrences", **query, since="2025-11-20T22:00:10Z", until="2025-11-20T22:00:12Z")
    assert [row["nominal"] for row in between] == ["2025-11-20T22:00:10Z", "2025-11-20T22:00:11Z"]
    assert len(all_pages(process, "/occurrences", namespace="flights", page_size=7)) == 133


def test_given_query_that_cannot_be_read_then_it_is_said_in_plain_words(process: Process) -> None:
    query = {"page_size": "many", "namespace": "A/b", "state": "dead"}
    told = {
        error["field"]: error["problem"] for error in process.http.get("/api/v1/runs", params=query).json()["errors"]
    }
    assert told["page_size"] == "is not a whole number"
    assert told["namespace"] == "is not a name: 1 to 128 of a-z 0-9 - _ . that begin with a letter or digit"
    assert told["state"].startswith("is not one of: 'submitting', ")


@pytest.mark.parametrize("token", ["x", "bm90IGpzb24", "WzAsMCwiWiNvdGhlciJd", "WzksMCxudWxsXQ"])
def test_given_page_token_of_another_list_then_400(process: Process, token: str) -> None:
    answer = process.http.get("/api/v1/schedules", params={"page_token": token})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "page_token")


def test_given_a_job_that_waits_for_several_things_then_each_verdict_is_shown_with_its_next_instant(
    process: Process,
) -> None:
    """CD-043."""
    verdicts = [
        {"code": "rate_reached", "until": NOW + 500, "values": {"max": 1}},
        {"code": "concurrency", "until": None, "values": {"in_use": 2}},
    ]
    told = {"code": "rate_reached", "reason": "a; b", "until": NOW + 500, "verdicts": verdicts}
    job = put_job(process, unmet=json.dumps(told))
    shown = process.http.get(f"/api/v1/jobs/{job.id}").json()["unmet"]["verdicts"]
    assert [each["code"] for each in shown] == ["rate_reached", "concurrency"]
    assert shown[0]["until"] == "2025-11-20T22:00:00.500Z"
    assert shown[1]["values"] == {"in_use": 2}


def test_given_a_run_that_was_forced_then_its_entry_says_what_was_ignored(process: Process) -> None:
    told = {"code": "delayed", "reason": "the delay", "until": NOW, "verdicts": []}
    run = a_run("s", NOW, state="succeeded", outcome="succeeded", ended_at=NOW, forced=json.dumps(told))
    process.put(ledger_row(run, NOW), ledger_row(run, NOW).key(shard_of(run)))
    (row,) = all_pages(process, "/occurrences", namespace="flights", schedule="s")
    assert (row["disposition"], row["forced"]["code"]) == ("launched", "delayed")
    process.put(run, run.key(shard_of(run)))
    assert process.http.get(f"/api/v1/runs/{run.id}").json()["forced"] == row["forced"]


def test_given_an_admitted_job_that_was_forced_then_it_says_what_was_ignored(process: Process) -> None:
    told = {"code": "delayed", "reason": "the delay", "until": NOW, "verdicts": []}
    job = put_job(process, forced=json.dumps(told))
    assert process.http.get(f"/api/v1/jobs/{job.id}").json()["forced"]["reason"] == "the delay"


def put_ledger(process: Process, count: int) -> None:
    """Rows of many schedules; every fiftieth is of the last day."""
    for number in range(count):
        nominal = NOW if number % 50 == 0 else NOW - 86_400_000
        run = a_run(f"s-{number % 20}", nominal + number, state="succeeded", outcome="succeeded", ended_at=nominal)
        row = ledger_row(run, nominal)
        process.put(row, row.key(shard_of(run)))


def test_given_an_entry_that_stands_for_several_instants_then_it_shows_from_to_and_how_many(process: Process) -> None:
    run = a_run(state="succeeded", ended_at=NOW, outcome="succeeded", covered=4, covered_from=NOW - 10_800_000)
    alone = a_run(nominal=NOW + 3_600_000, state="succeeded", ended_at=NOW, outcome="succeeded")
    for each in (run, alone):
        row = ledger_row(each, NOW)
        process.put(row, row.key(shard_of(each)))
        process.put_ended(each)
    query = {"namespace": "flights", "schedule": "join-day"}
    told = {"covered_count": 4, "covered_from": "2025-11-20T19:00:00Z", "covered_to": "2025-11-20T22:00:00Z"}
    first, second = process.http.get("/api/v1/occurrences", params=query).json()["items"]
    assert {name: first[name] for name in told} == told
    assert [second[name] for name in told] == [None] * 3
    shown = process.http.get(f"/api/v1/runs/{run.id}").json()
    assert {name: shown[name] for name in told} == told


@pytest.mark.parametrize("size", [1, 7, 100])
def test_given_a_filter_that_keeps_little_then_a_page_looks_at_so_many_rows_and_says_where_to_go_on(
    process: Process, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(range_scan, "SCANNED_OF_SHARD_MAX", 60)
    monkeypatch.setattr(range_scan, "SCANNED_MAX", 120)
    monkeypatch.setattr(range_scan, "SHARDS_AT_ONCE", 2)
    put_ledger(process, 2_000)
    looked: list[int] = []
    query = process.store.query

    def counted(wanted: RangeRead) -> Any:
        page = query(wanted)
        looked.append(len(page.items))
        return page

    monkeypatch.setattr(process.store, "query", counted)
    found: list[dict[str, Any]] = []
    token = None
    while token != "":
        looked.clear()
        wanted: dict[str, Any] = {"namespace": "flights", "since": "2025-11-20T00:00:00Z", "page_size": size}
        answer = process.http.get(
            "/api/v1/occurrences", params=wanted | ({"page_token": token} if token else {})
        ).json()
        found += answer["items"]
        token = answer["next_page_token"]
        assert len(answer["items"]) <= size
        assert sum(looked) < 120 + 2 * (60 + max(size + 1, 50))
    assert len(found) == len({item["job_id"] for item in found}) == 40


def test_given_more_rows_than_a_look_through_everything_takes_then_400_says_what_to_name(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(range_scan, "SCANNED_OF_SHARD_MAX", 10)
    monkeypatch.setattr(runs, "PAGES_MAX", 2)
    monkeypatch.setattr(runs, "OPEN_AT_ONCE", 60)
    for number in range(600):
        run = a_run("join-day", NOW + number)
        process.put(run, run.key(shard_of(run)))
    assert process.http.get("/api/v1/runs?namespace=flights&state=failed").status_code == 200
    answer = process.http.get("/api/v1/runs?namespace=other")
    assert answer.status_code == 400
    assert "name a schedule, or states of ended runs" in answer.json()["detail"]


def test_given_id_of_a_shard_that_is_not_there_then_400(process: Process) -> None:
    answer = process.http.get("/api/v1/runs/0099-mfrggzdfmztwq2lkn5wg63tqoe")
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "run_id")
