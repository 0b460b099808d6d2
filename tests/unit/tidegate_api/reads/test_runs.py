"""Runs, one by its id and the newest of all, while their owner moves them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from threading import Event
from weakref import WeakSet

import pytest

from tests.unit.tidegate_api.conftest import NOW, SPEC, Process, a_run, put_schedule, shard_of
from tidegate_api.reads.runs import LEDGERS_AT_ONCE
from tidegate_core.decisions.run_plane.run_ends import ledger_row
from tidegate_core.records.run_plane import Run
from tidegate_core.store import keys
from tidegate_core.store.values import Delete, Item, Key, Page, RangeRead, Value


@pytest.mark.parametrize("reads_before", [0, 1, 2])
def test_given_a_run_that_ends_between_any_two_reads_then_it_is_found(
    process: Process, monkeypatch: pytest.MonkeyPatch, reads_before: int
) -> None:
    """A batch is no snapshot: its parts may be read before and after the finishing transaction, in any order."""
    run = a_run(state="running", driver="d-1")
    shard = shard_of(run)
    process.put(run, run.key(shard))
    read = process.store.get
    left = reads_before

    def in_parts(wanted: Sequence[Key]) -> Mapping[Key, Item]:
        nonlocal left
        found: dict[Key, Item] = {}
        for key in sorted(wanted, key=lambda each: each.table == "main"):
            if left == 0:
                process.put(replace(run, state="succeeded", ended_at=NOW), keys.ended_run(shard, run.id))
                process.store.write([Delete(run.key(shard))])
            if key.sk.endswith(run.id):
                left -= 1
            found.update(read([key]))
        return found

    monkeypatch.setattr(process.store, "get", in_parts)
    assert process.http.get(f"/api/v1/runs/{run.id}").status_code == 200


OF_ONE = {"namespace": "flights", "schedule": "join-day"}


def end(process: Process, run: Run) -> None:
    """What the finishing transaction does."""
    ended = replace(run, state="succeeded", outcome="succeeded", started_at=NOW, ended_at=NOW)
    shard = shard_of(run)
    row = ledger_row(ended, NOW)
    process.put(row, row.key(shard))
    process.put(ended, keys.ended_run(shard, run.id))
    process.store.write([Delete(run.key(shard))])


def test_given_a_run_that_ends_while_the_newest_are_read_then_it_is_among_them(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both were read at the same time: behind a scan of open runs that was the slower one it was in neither."""
    run = a_run(state="running", driver="d-1")
    process.put(run, run.key(shard_of(run)))
    read, ledger_was_read = process.store.query, Event()

    def query(wanted: RangeRead) -> Page:
        if wanted.low.startswith("R#"):
            ledger_was_read.wait(0.5)
            return read(wanted)
        page = read(wanted)
        if wanted.low.startswith("L#") and not ledger_was_read.is_set():
            end(process, run)
            ledger_was_read.set()
        return page

    monkeypatch.setattr(process.store, "query", query)
    (shown,) = process.http.get("/api/v1/runs", params=OF_ONE).json()["items"]
    assert shown["id"] == run.id


def test_given_a_run_that_was_made_up_for_behind_a_later_one_then_it_is_the_newest(process: Process) -> None:
    """Only as many rows were read as were asked for, and the ledger is sorted by nominal."""
    late = a_run(nominal=NOW - 3_600_000, admitted_at=NOW + 300_000)
    for run in (a_run(nominal=NOW), late):
        end(process, run)
    (shown,) = process.http.get("/api/v1/runs", params={**OF_ONE, "limit": 1}).json()["items"]
    assert shown["id"] == late.id


class Row(dict[str, Value]):
    """An item as it comes from a store elsewhere: whoever reads it has it for himself."""

    __hash__ = object.__hash__  # type: ignore[assignment]  # a mapping has none; here each is its own


def test_given_many_schedules_with_long_ledgers_then_few_rows_are_held_at_once(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each schedule's newest rows were held until all were read: 500 schedules and a limit of 1,000 took 1.3 GB, and the pod with it."""
    schedules, limit = 8 * LEDGERS_AT_ONCE, 50
    for number in range(schedules):
        name = f"land-{number}"
        put_schedule(process, {**SPEC, "name": name})
        for each in range(limit):
            end(process, a_run(name, NOW + each * 1_000 + number))
    read, held, most = process.store.query, WeakSet[Row](), 0

    def query(wanted: RangeRead) -> Page:
        nonlocal most
        page = read(wanted)
        if not wanted.low.startswith("L#"):
            return page
        rows = tuple(Row(item) for item in page.items)
        held.update(rows)
        most = max(most, len(held))
        return Page(rows, page.next_after)

    monkeypatch.setattr(process.store, "query", query)
    shown = process.http.get("/api/v1/runs", params={"limit": limit}).json()["items"]
    newest = [f"land-{number}" for number in reversed(range(schedules))]
    assert [run["schedule"] for run in shown] == newest[:limit]
    # A thread that was put aside behind its answer still holds the rows of the round before.
    assert most <= 3 * LEDGERS_AT_ONCE * limit


def test_given_more_schedules_than_ledgers_are_read_of_then_runs_in_a_state_of_open_ones_are_listed(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No ledger has them: an operator who looks for what runs, or is lost, was told to name a schedule."""
    monkeypatch.setattr("tidegate_api.reads.runs.SCHEDULES_MAX", 1)
    for name in ("join-day", "land-day"):
        put_schedule(process, {**SPEC, "name": name})
    run = a_run(state="lost", started_at=NOW)
    process.put(run, run.key(shard_of(run)))

    def listed(**query: str) -> tuple[int, list[str]]:
        answer = process.http.get("/api/v1/runs", params=query)
        return answer.status_code, [each["id"] for each in answer.json().get("items", [])]

    assert listed() == listed(state="failed") == (400, [])
    assert listed(state="lost") == (200, [run.id])
    assert [listed(state=state) for state in ("submitting", "submitted", "running")] == [(200, [])] * 3
