"""What is shown of runs, and of their logs."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.unit.tidegate_api.conftest import EVENT_SPEC, NOW, SPEC, Process, a_run, put_schedule, shard_of


def test_given_open_and_ended_runs_then_the_newest_come_first(process: Process) -> None:
    put_schedule(process, EVENT_SPEC)
    put_schedule(process, {**SPEC, "name": "land-day"})
    for number in range(5):
        run = a_run(
            ("join-day", "land-day")[number % 2],
            NOW + number * 1_000,
            started_at=NOW + number * 1_000 + 50,
            ended_at=NOW + 9_000 + number,
            outcome=("succeeded", "failed")[number % 2],
            outputs='{"rows": 3}',
        )
        run = replace(run, state=str(run.outcome))
        process.put_ended(run)
    waiting = a_run("join-day", NOW + 60_000)
    process.put(waiting, waiting.key(shard_of(waiting)))
    runs = process.http.get("/api/v1/runs").json()["items"]
    assert [run["nominal"][-8:] for run in runs] == [
        "2:01:00Z",
        "2:00:04Z",
        "2:00:03Z",
        "2:00:02Z",
        "2:00:01Z",
        "2:00:00Z",
    ]
    assert (runs[0]["state"], runs[1]["outputs"], runs[1]["lateness_ms"]) == ("submitted", {"rows": 3}, 50)
    failed = process.http.get("/api/v1/runs", params={"state": "failed"}).json()["items"]
    assert {run["schedule"] for run in failed} == {"land-day"}
    of_one = process.http.get("/api/v1/runs", params={"namespace": "flights", "schedule": "join-day", "page_size": 2})
    assert [run["state"] for run in of_one.json()["items"]] == ["submitted", "succeeded"]
    assert process.http.get(f"/api/v1/runs/{runs[2]['id']}").json()["state"] == "failed"


def test_given_a_success_that_the_owner_has_not_seen_then_it_is_shown(process: Process) -> None:
    run = a_run(state="running", ended_at=NOW, outcome="succeeded", driver="d-1")
    process.put(run, run.key(shard_of(run)))
    shown = process.http.get(f"/api/v1/runs/{run.id}").json()
    assert (shown["state"], shown["ended_at"] is None) == ("succeeded", False)


def test_given_a_failure_that_the_owner_has_not_seen_then_the_run_goes_on_because_an_attempt_may_follow(
    process: Process,
) -> None:
    run = a_run(state="running", ended_at=NOW, outcome="failed", driver="d-1", reason="no_report", exit_code=1)
    process.put(run, run.key(shard_of(run)))
    shown = process.http.get(f"/api/v1/runs/{run.id}").json()
    assert shown["state"] == "running"
    assert [shown[name] for name in ("ended_at", "exit_code", "reason", "error_class")] == [None] * 4
    assert not process.http.get("/api/v1/runs", params={"state": "failed"}).json()["items"]


@pytest.mark.parametrize(("outcome", "shown_as"), [("succeeded", "succeeded"), ("failed", "running")])
def test_given_a_lost_run_that_reported_its_end_then_it_is_shown_as_any_other_run_that_did(
    process: Process, outcome: str, shown_as: str
) -> None:
    """It was an ended run in the state `lost`, so that who waited for it was told of a failure, whatever it had reported."""
    run = a_run(state="running", started_at=NOW, driver="d-1")
    process.put(replace(run, state="lost", reason="host_silent"), run.key(shard_of(run)))
    assert process.http.get("/api/v1/runs", params={"state": "lost"}).json()["items"][0]["id"] == run.id
    assert process.report(run, "finished", outcome=outcome).status_code == 200
    shown = process.http.get(f"/api/v1/runs/{run.id}").json()
    assert (shown["state"], shown["ended_at"] is None, shown["reason"]) == (shown_as, shown_as == "running", None)
    assert not process.http.get("/api/v1/runs", params={"state": "lost"}).json()["items"]


@pytest.mark.parametrize(
    ("reason", "exit_code", "signal"),
    [
        ("no_report", 137, "SIGKILL"),
        ("cancelled", 143, "SIGTERM"),
        ("no_report", 3, None),
        ("no_report", 255, None),
        ("no_report", None, None),
        ("exit code 137", 137, None),
    ],
)
def test_given_an_end_that_the_program_did_not_report_then_the_signal_behind_its_exit_code_is_named(
    process: Process, reason: str, exit_code: int | None, signal: str | None
) -> None:
    run = a_run(state="failed", ended_at=NOW, outcome="failed", reason=reason, exit_code=exit_code)
    process.put_ended(run)
    shown = process.http.get(f"/api/v1/runs/{run.id}").json()
    assert (shown["reason"], shown["exit_code"], shown["signal"]) == (reason, exit_code, signal)


def test_given_a_run_whose_program_was_never_started_then_its_logs_say_so(process: Process) -> None:
    run = a_run(state="failed", ended_at=NOW, outcome="failed", reason="start_timeout")
    process.put_ended(run)
    answer = process.http.get(f"/api/v1/runs/{run.id}/logs")
    assert answer.status_code == 404
    assert "its program never started (start_timeout), so there is no log" in answer.json()["detail"]


def test_given_logs_then_they_are_read_piece_by_piece(process: Process) -> None:
    run = a_run()
    process.put(run, run.key(shard_of(run)))
    url = f"/api/v1/runs/{run.id}/logs"
    assert process.http.get(url).json()["text"] == ""  # It has not started: whoever follows waits.
    process.put(replace(run, state="running", started_at=NOW, host="far"), run.key(shard_of(run)))
    answer = process.http.get(url)
    assert (answer.status_code, "host far" in answer.json()["detail"]) == (404, True)
    log = process.data / f"{run.id}-1.out"
    log.write_bytes("héllo".encode()[:2])
    first = process.http.get(url).json()
    assert (first["text"], first["next_offset"], first["size"], first["ended"]) == ("h", 1, 2, False)
    log.write_bytes("héllo".encode())
    second = process.http.get(url, params={"offset": 1}).json()
    assert (second["text"], second["next_offset"]) == ("éllo", 6)
    assert process.http.get(url, params={"offset": 99}).json()["next_offset"] == 6
    assert process.http.get(url, params={"stream": "stderr"}).status_code == 404


def test_given_a_run_that_waits_for_its_next_attempt_then_the_logs_of_both_can_be_followed(process: Process) -> None:
    run = a_run(state="submitting", attempt=2, started_at=NOW - 60_000, failure=json.dumps({"ended_at": NOW}))
    process.put(run, run.key(shard_of(run)))
    (process.data / f"{run.id}-1.out").write_bytes(b"first")
    url = f"/api/v1/runs/{run.id}/logs"
    first = process.http.get(url, params={"attempt": 1}).json()
    assert (first["text"], first["ended"], first["attempts"]) == ("first", True, 2)
    second = process.http.get(url).json()
    assert (second["attempt"], second["text"], second["ended"]) == (2, "", False)


def test_given_ended_run_then_a_half_character_at_the_end_of_its_log_is_given_out(process: Process) -> None:
    run = a_run(state="killed", ended_at=NOW, outcome="killed")
    process.put_ended(run)
    (process.data / f"{run.id}-1.out").write_bytes(b"x\xc3")
    piece = process.http.get(f"/api/v1/runs/{run.id}/logs").json()
    assert (piece["text"], piece["next_offset"], piece["ended"]) == ("x\ufffd", 2, True)
