"""What long lists take: the chart gives an API process 512 MB, and what is looked at may be far more than what is shown."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace

import pytest

from tests.unit.tidegate_api.conftest import NOW, SPEC, Process, a_run, put_schedule, shard_of
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Page, Put, RangeRead
from tidegate_core.writes.limit_permits import key_text

RUNS = 400
ORDER_CHARACTERS = 50_000
ALL_ORDERS = RUNS * ORDER_CHARACTERS
LIMIT = keys.shared_limit("flights", "program", "/jobs/load.py")


@pytest.fixture
def crowded(process: Process, monkeypatch: pytest.MonkeyPatch) -> Process:
    """Many open runs with long orders, of which the store gives 20 at once, 1 MB, each time as objects of their own."""
    for number in range(RUNS):
        run = a_run(f"s-{number}", NOW + number, "running", limits=(key_text(LIMIT),))
        process.put(run, run.key(shard_of(run)))
    process.store.write([Put(LIMIT, {"pk": LIMIT.pk, "sk": LIMIT.sk, "in_use": RUNS})])
    query = process.store.query

    def in_pages(wanted: RangeRead) -> Page:
        page = query(replace(wanted, limit=min(20, wanted.limit or 20)))
        if not wanted.low.startswith("R#"):
            return page
        long = '{"args": ["' + "x" * ORDER_CHARACTERS
        return replace(page, items=tuple({**item, "order": f'{long}{item["id"]!s}"]}}'} for item in page.items))

    monkeypatch.setattr(process.store, "query", in_pages)
    return process


@pytest.mark.parametrize("path", ["/api/v1/runs", "/api/v1/runs?state=running", "/api/v1/limits"])
def test_given_many_open_runs_then_a_list_holds_little_of_those_that_it_looks_at(crowded: Process, path: str) -> None:
    """With all that runs have, 80,000 open ones were hundreds of MB, and the pod was killed."""
    crowded.http.get(path)  # What is imported and built at a first use counts for nobody.
    tracemalloc.start()
    try:
        answer = crowded.http.get(path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert answer.status_code == 200
    assert answer.json()["items"]
    # A page of the store in each of the 16 threads, and not the lot.
    assert peak < 0.85 * ALL_ORDERS


def test_given_the_newest_of_many_open_runs_then_they_are_shown_with_all_they_have(crowded: Process) -> None:
    items = crowded.http.get("/api/v1/runs", params={"page_size": 5}).json()["items"]
    assert [item["schedule"] for item in items] == [f"s-{number}" for number in range(RUNS - 1, RUNS - 6, -1)]
    assert all(item["program"] for item in items)


def test_given_more_outputs_than_one_answer_holds_then_a_page_has_fewer_runs_and_the_pages_show_each_once(
    process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand runs with all the outputs that they may report took 520 MB: the pod was killed, and with it the start gate."""
    monkeypatch.setattr("tidegate_api.reads.runs.SHOWN_CHARACTERS_MAX", 1_000_000)
    outputs = json.dumps({"text": "x" * 10_000})
    for number in range(120):
        run = a_run(f"s-{number}", NOW + number, "running", outputs=outputs)
        process.put(run, run.key(shard_of(run)))
    first = process.http.get("/api/v1/runs", params={"page_size": 120}).json()
    second = process.http.get("/api/v1/runs", params={"page_size": 120, "page_token": first["next_page_token"]}).json()
    assert [len(first["items"]), len(second["items"]), second["next_page_token"]] == [50, 70, ""]
    shown = [item["schedule"] for item in [*first["items"], *second["items"]]]
    assert shown == [f"s-{number}" for number in range(119, -1, -1)]


def test_given_large_definitions_then_a_page_ends_early_and_the_pages_show_each_once(process: Process) -> None:
    """A thousand of 64 KiB each were an answer of 64 MB, for which the process took ten times as much."""
    target = {"type": "message", "topic": "t", "payload_text": "x" * 50_000}
    names = {f"s-{number:03}" for number in range(150)}
    for name in names:
        put_schedule(process, {**SPEC, "name": name, "target": target})
    found: list[str] = []
    token, pages = "", 0
    while token or not pages:
        answer = process.http.get("/api/v1/schedules", params={"page_size": 1_000, "page_token": token or None})
        assert len(answer.content) < 5_000_000
        found += [item["name"] for item in answer.json()["items"]]
        token, pages = answer.json()["next_page_token"], pages + 1
    assert (sorted(found), pages) == (sorted(names), 3)
