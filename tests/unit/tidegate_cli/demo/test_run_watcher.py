from __future__ import annotations

import io
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, cast

import pytest
from rich.console import Console

from tidegate_cli.demo import run_watcher
from tidegate_cli.demo.demo_plan import plan_from
from tidegate_cli.demo.run_watcher import Watcher
from tidegate_client.client import Client
from tidegate_client.errors import ApiUnavailable
from tidegate_client.views import OccurrenceView, RunView

MOMENT = datetime(2026, 3, 3, 5, 0, 8, tzinfo=UTC)
PLAN = plan_from(MOMENT, 1)


def a_run(schedule: str, state: str, node: str | None) -> RunView:
    return RunView(
        id=f"0001-{schedule}",
        namespace="flights",
        schedule=schedule,
        version=1,
        state=state,
        trigger="time",
        nominal=MOMENT,
        node=node,
        ended_at=MOMENT if state == "succeeded" else None,
    )


def an_occurrence(schedule: str) -> OccurrenceView:
    return OccurrenceView(
        namespace="flights",
        schedule=schedule,
        version=1,
        job_id=f"0001-{schedule}",
        trigger="time",
        nominal=MOMENT,
        disposition="launched",
        at=MOMENT,
        state="succeeded",
    )


@dataclass
class FakeCluster:
    node_names: tuple[str, ...] = ("node-1", "node-2")
    killed: list[str] = field(default_factory=list)
    looks: int = 0

    def check(self) -> None:
        self.looks += 1

    def kill_node(self, name: str) -> int | None:
        self.killed.append(name)
        return 17


@dataclass
class FakeClient:
    """Answers with one page after the other; the last one stays. None is an API that does not answer."""

    pages: list[tuple[list[RunView], int] | None]
    place: int = 0

    def runs(self, **_query: Any) -> list[RunView]:
        page = self.pages[min(self.place, len(self.pages) - 1)]
        self.place += 1
        if page is None:
            raise ApiUnavailable("no answer")
        return page[0]

    def occurrences(self, _namespace: str) -> list[OccurrenceView]:
        page = self.pages[min(self.place, len(self.pages)) - 1]
        return [an_occurrence(f"schedule-{number}") for number in range(page[1] if page else 0)]


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_watcher, "POLL_INTERVAL_S", 0)


def watched(*pages: tuple[list[RunView], int] | None) -> tuple[FakeCluster, str, list[OccurrenceView]]:
    cluster, output = FakeCluster(), io.StringIO()
    console = Console(file=output, width=200)
    ledger = Watcher(cluster, cast(Client, FakeClient(list(pages))), PLAN, console).until_all_ended()
    return cluster, output.getvalue(), ledger


def test_given_half_of_the_runs_have_ended_then_the_node_that_is_at_work_is_killed_once() -> None:
    half = ([a_run("join-day", "running", "node-2")], 2)
    cluster, said, ledger = watched(([], 0), ([a_run("land-flights", "running", "node-1")], 1), half, half, ([], 4))
    assert cluster.killed == ["node-2"]
    assert "Half-way: node-2 (process 17) was killed with kill -9 while it had join-day under way" in said
    assert len(ledger) == 4


def test_given_nothing_is_under_way_at_half_time_then_the_kill_waits_for_the_next_run() -> None:
    cluster, said, _ = watched(([], 2), ([a_run("delays", "submitted", "node-1")], 3), ([], 4))
    assert cluster.killed == ["node-1"]
    assert "while it had delays under way" in said


def test_given_runs_too_quick_to_be_seen_then_a_node_is_killed_all_the_same() -> None:
    cluster, _, _ = watched(([], 4))
    assert cluster.killed == ["node-1"]


def test_given_an_api_that_does_not_answer_then_the_watch_goes_on() -> None:
    cluster, _, ledger = watched(None, None, ([a_run("delays", "running", "node-1")], 2), ([], 4))
    assert (len(ledger), cluster.looks) == (4, 4)


def test_given_each_new_state_of_a_run_then_it_is_said_once() -> None:
    running, done = a_run("join-day", "running", "node-1"), a_run("join-day", "succeeded", "node-1")
    _, said, _ = watched(([running], 1), ([running], 1), ([done], 2), ([done], 4))
    assert [line.split()[4:6] for line in said.splitlines() if " ended  " in line] == [
        ["join-day", "running"],
        ["join-day", "succeeded"],
    ]


def test_given_time_is_up_then_it_says_what_is_open_and_returns_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_watcher, "PATIENCE_BASE_S", 0)
    monkeypatch.setattr(run_watcher, "PATIENCE_PER_DAY_S", 0)
    _, said, ledger = watched(([a_run("delays", "running", "node-1")], 3))
    assert "Time is up: 1 of 4 occurrences are undecided; open runs: delays" in said
    assert len(ledger) == 3
