"""What takes long is done on threads of reads: on the event loop stand the start gate and the probes, and programs could not start."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.unit.tidegate_api.conftest import EVENT_SPEC, NOW, SHARDS, SPEC, Process, a_run, put_schedule, shard_of
from tidegate_api.requests.dry_run import dry_run
from tidegate_api.routes.schedule_batches import CHECKED_AT_ONCE
from tidegate_client.views import DryRun
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.run import Run
from tidegate_core.runs.run_completion import ledger_row

SCHEDULE = "/api/v1/schedules/flights/land-day"

Threads = list[str]
Watch = Callable[[str], Threads]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """Has a function note the name of the thread of each of its calls."""

    def watching(place: str) -> Threads:
        where: Threads = []
        module, _, name = place.rpartition(".")
        function = getattr(importlib.import_module(f"tidegate_api.{module}"), name)

        def call(*given: Any, **named: Any) -> Any:
            where.append(threading.current_thread().name)
            return function(*given, **named)

        monkeypatch.setattr(f"tidegate_api.{place}", call)
        return where

    return watching


@pytest.fixture
def busy(process: Process) -> Process:
    """A process with some of everything that is listed."""
    put_schedule(process)
    put_schedule(process, EVENT_SPEC)
    put_ended(process, NOW)
    put_in_ledger(process, NOW - 31 * 86_400_000)
    waiting = a_run("join-day", NOW + 60_000)
    process.put(waiting, waiting.key(shard_of(waiting)))
    evidence = Evidence(
        namespace="flights",
        name="join-day",
        incarnation="0" * 26,
        version=1,
        correlation="2013-01-01",
        id="0004-mfrggzdfmztwq2lkn5wg63tqoe",
        counts=(1, 0),
        chunks=1,
        first_at=NOW,
    )
    process.put(evidence, evidence.key(schedule_shard("flights", "join-day", SHARDS)))
    return process


def put_ended(process: Process, nominal: int) -> None:
    """Stores a run that has ended, and its entry of the ledger."""
    run = put_in_ledger(process, nominal)
    process.put_ended(run)


def put_in_ledger(process: Process, nominal: int) -> Run:
    """Stores what is left of a run that ended more than 30 days ago."""
    run = a_run("join-day", nominal, state="succeeded", started_at=nominal, ended_at=nominal + 5, outcome="succeeded")
    row = ledger_row(run, nominal + 5)
    process.put(row, row.key(shard_of(run)))
    return run


def all_on_read_threads(threads: Sequence[str]) -> bool:
    return bool(threads) and all(name.startswith("tidegate-read") for name in threads)


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("/api/v1/runs", "reads.runs.run_view"),
        ("/api/v1/schedules", "reads.schedules.schedule_view"),
        (SCHEDULE, "reads.schedules.schedule_view"),
        ("/api/v1/jobs", "reads.jobs.gathering_view"),
        ("/api/v1/occurrences?namespace=flights", "reads.occurrences.occurrence_view"),
    ],
)
def test_given_a_list_then_its_items_are_made_on_a_thread_of_reads(
    busy: Process, watch: Watch, path: str, place: str
) -> None:
    threads = watch(place)
    assert busy.http.get(path).status_code == 200
    assert all_on_read_threads(threads)


@pytest.mark.parametrize(
    "place",
    [
        "routes.schedule_batches.request_of",
        "requests.dry_run.check_schedule",
        "reads.schedules.is_unchanged",
        "reads.schedules.update_problems",
        "reads.schedules.applied_spec",
        "reads.schedules.spec_or_none",
        "reads.apply_warnings.schedule_warnings",
    ],
)
def test_given_a_batch_of_schedules_then_it_is_read_and_judged_on_threads_of_reads(
    busy: Process, watch: Watch, place: str
) -> None:
    threads = watch(place)
    batch = [{**SPEC, "name": name, "overlap": "allow"} for name in ("land-day", "b", "c")]
    assert busy.http.post("/api/v1/schedules", json=batch).status_code == 200
    assert all_on_read_threads(threads)


def test_given_a_batch_of_schedules_then_few_of_them_are_judged_at_once_and_reads_have_the_other_threads(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way, most = 0, 0

    async def counting(*given: Any, **named: Any) -> DryRun:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        try:
            return await dry_run(*given, **named)
        finally:
            under_way -= 1

    monkeypatch.setattr("tidegate_api.routes.schedule_batches.dry_run", counting)
    batch = [{**SPEC, "name": f"n{number}"} for number in range(20)]
    assert process.http.post("/api/v1/schedules", json=batch).status_code == 200
    assert most == CHECKED_AT_ONCE


def test_given_more_ended_runs_than_are_asked_for_then_views_are_made_of_the_newest_alone(
    busy: Process, watch: Watch
) -> None:
    for number in range(1, 20):
        put_ended(busy, NOW + number * 1_000)
    whole = watch("reads.runs.run_view")
    shown = busy.http.get("/api/v1/runs", params={"page_size": 5}).json()["items"]
    assert [run["nominal"][-9:] for run in shown] == ["22:01:00Z", "22:00:19Z", "22:00:18Z", "22:00:17Z", "22:00:16Z"]
    assert len(whole) == 5
