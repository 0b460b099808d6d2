"""Runs, one by its id and the newest of all, while their owner moves them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from threading import Event
from typing import Any

import pytest

from tests.support.builders import DAY, MINUTE
from tests.unit.tidegate_api.conftest import NOW, SHARDS, Process, a_run, shard_of
from tidegate_api.http.page_tokens import Place
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.run import Run
from tidegate_core.rows.store_operations import Delete, Item, Key, Page, RangeRead


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
                process.put_ended(replace(run, state="succeeded", outcome="succeeded", ended_at=NOW))
                process.store.write([Delete(run.key(shard))])
            if key.sk.endswith(run.id):
                left -= 1
            found.update(read([key]))
        return found

    monkeypatch.setattr(process.store, "get", in_parts)
    assert process.http.get(f"/api/v1/runs/{run.id}").status_code == 200


OF_ONE = {"namespace": "flights", "schedule": "join-day"}


def end(process: Process, run: Run, at: int = NOW, state: str = "succeeded") -> None:
    """What the finishing transaction does."""
    process.put_ended(replace(run, state=state, outcome=state, started_at=at, ended_at=at))
    process.store.write([Delete(run.key(shard_of(run)))])


def test_given_a_run_that_ends_while_the_newest_are_read_then_it_is_among_them(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both were read at the same time: behind a scan of open runs that was the slower one it was in neither."""
    run = a_run(state="running", driver="d-1")
    process.put(run, run.key(shard_of(run)))
    read, history_was_read = process.store.query, Event()

    def query(wanted: RangeRead) -> Page:
        if wanted.table == "main":
            history_was_read.wait(0.5)
            return read(wanted)
        page = read(wanted)
        if not history_was_read.is_set():
            end(process, run)
            history_was_read.set()
        return page

    monkeypatch.setattr(process.store, "query", query)
    (shown,) = process.http.get("/api/v1/runs", params=OF_ONE).json()["items"]
    assert shown["id"] == run.id


def test_given_a_run_that_was_made_up_for_behind_a_later_one_then_it_is_the_newest(process: Process) -> None:
    """The ledger of a schedule is sorted by nominal: only as many of its rows were read as were asked for."""
    late = a_run(nominal=NOW - 3_600_000, admitted_at=NOW + 300_000)
    for run in (a_run(nominal=NOW), late):
        end(process, run, run.admitted_at)
    (shown,) = process.http.get("/api/v1/runs", params={**OF_ONE, "page_size": 1}).json()["items"]
    assert shown["id"] == late.id


def all_pages(process: Process, size: int, **query: Any) -> Iterator[list[str]]:
    """Yields the ids of each page's runs."""
    token = ""
    while True:
        params = {**query, "page_size": size, "page_token": token or None}
        answer = process.http.get("/api/v1/runs", params=params)
        assert answer.status_code == 200, answer.text
        yield [run["id"] for run in answer.json()["items"]]
        token = answer.json()["next_page_token"]
        if not token:
            return


@pytest.fixture
def a_night(process: Process) -> list[Run]:
    """Runs of 60 schedules that ended one after the other, of which each tenth failed; the newest end first."""
    runs = []
    for number in range(300):
        run = a_run(f"land-{number % 60}", NOW + number * MINUTE)
        end(process, run, NOW + number * MINUTE + 30_000, "failed" if number % 10 == 7 else "succeeded")
        runs.append(run)
    return list(reversed(runs))


@pytest.mark.parametrize("size", [1, 7, 50, 300, 1_000])
def test_given_runs_of_many_schedules_then_pages_show_each_once_and_the_newest_end_first(
    process: Process, a_night: list[Run], size: int
) -> None:
    pages = list(all_pages(process, size))
    assert [each for page in pages for each in page] == [run.id for run in a_night]
    assert max(map(len, pages)) <= size


def test_given_open_runs_then_they_stand_before_those_that_have_ended_and_pages_show_each_once(
    process: Process, a_night: list[Run]
) -> None:
    still_open = [a_run(f"join-{number}", NOW - number * 1_000, "running") for number in range(25)]
    for run in still_open:
        process.put(run, run.key(shard_of(run)))
    shown = [each for page in all_pages(process, 10) for each in page]
    assert shown == [run.id for run in [*still_open, *a_night]]


def test_given_a_night_then_what_failed_in_it_is_one_call(process: Process, a_night: list[Run]) -> None:
    """Above 500 schedules it was refused: name a namespace, or a schedule."""
    since = format_instant(NOW + 100 * MINUTE)
    failed = [run.id for number, run in enumerate(reversed(a_night)) if number % 10 == 7]
    assert list(all_pages(process, 50, state="failed")) == [failed[::-1]]
    assert list(all_pages(process, 50, state="failed", since=since)) == [failed[:9:-1]]
    assert list(all_pages(process, 50, state="failed", until=since)) == [failed[9::-1]]
    assert list(all_pages(process, 50, state="failed", since=since, until=since)) == [[]]
    assert list(all_pages(process, 50, state=["killed", "timed_out"])) == [[]]
    of_one = [each for page in all_pages(process, 2, namespace="flights", schedule="land-7") for each in page]
    assert of_one == [run.id for run in a_night if run.name == "land-7"]
    assert [each for page in all_pages(process, 50, schedule="land-7", state="failed") for each in page] == of_one


def test_given_a_filter_by_time_then_open_runs_are_shown_unless_only_what_ended_before_is_asked_for(
    process: Process, a_night: list[Run]
) -> None:
    run = a_run("join-day", NOW, "running")
    process.put(run, run.key(shard_of(run)))
    late = format_instant(NOW + DAY)
    assert list(all_pages(process, 50, since=late)) == [[run.id]]
    assert run.id not in [each for page in all_pages(process, 50, until=late) for each in page]


@pytest.mark.parametrize(("schedules", "each"), [(10, 4), (200, 20)])
def test_given_ever_more_schedules_and_runs_then_a_page_costs_as_many_reads_and_rows(
    process: Process, monkeypatch: pytest.MonkeyPatch, schedules: int, each: int
) -> None:
    for number in range(schedules * each):
        name = f"land-{number % schedules}"
        end(process, a_run(name, NOW + number), NOW + number, "failed" if number % 100 == 7 else "succeeded")
    query, reads, rows = process.store.query, 0, 0

    def counted(wanted: RangeRead) -> Page:
        nonlocal reads, rows
        page = query(wanted)
        reads, rows = reads + 1, rows + len(page.items)
        return page

    monkeypatch.setattr(process.store, "query", counted)
    answer = process.http.get("/api/v1/runs", params={"page_size": 10}).json()["items"]
    assert len(answer) == 10
    assert (reads <= 3 * SHARDS + 8, rows <= 200) == (True, True), (reads, rows)
    reads = rows = 0
    failed = process.http.get("/api/v1/runs", params={"state": "failed", "page_size": 10}).json()["items"]
    assert len(failed) == min(10, (schedules * each + 92) // 100)
    assert (reads <= SHARDS + 8, rows <= 100) == (True, True), (reads, rows)


def test_given_a_token_of_another_list_then_it_is_refused(process: Process) -> None:
    for place in (Place(2), Place(1, after="L#flights"), Place(0, after="~")):
        answer = process.http.get("/api/v1/runs", params={"page_token": place.text()})
        assert (answer.status_code, "belongs to another list" in answer.text) == (400, True)


def test_given_a_run_that_moves_to_the_next_page_while_it_ends_then_no_run_is_missed(
    process: Process, a_night: list[Run]
) -> None:
    still_open = [a_run(f"join-{number}", NOW - number * 1_000, "running") for number in range(4)]
    for run in still_open:
        process.put(run, run.key(shard_of(run)))
    shown: list[str] = []
    for page in all_pages(process, 2):
        if not shown:
            end(process, still_open[3], NOW + DAY)
        shown += page
    assert sorted(shown) == sorted(run.id for run in [*still_open, *a_night])


def test_given_few_runs_of_a_namespace_among_many_then_pages_end_early_and_all_are_found(
    process: Process, a_night: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidegate_api.reads.newest_first.SCANNED_MAX", 100)
    rare = a_run("land-3", NOW + 5, namespace="trains", id=a_run("other-3", NOW).id)
    end(process, rare, NOW + 5)
    pages = list(all_pages(process, 10, namespace="trains"))
    assert [each for page in pages for each in page] == [rare.id]
    assert 1 < len(pages) < 10
