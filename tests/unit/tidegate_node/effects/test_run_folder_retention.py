"""The node has its host's run folders looked through, and tells of it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.unit.tidegate_node.conftest import ManualClock, Notes
from tidegate_node.effects import run_folder_retention
from tidegate_node.effects.run_folder_retention import RunFolderRetention
from tidegate_ports.run_folders import Swept
from tidegate_telemetry.metric_names import NODE_METRICS
from tidegate_telemetry.metrics import Metrics

PATIENCE_S = 60.0


class FakeFolders:
    """Answers what it is told to, one look after the other; then that somebody else is at it."""

    def __init__(self, *answers: Swept | OSError) -> None:
        self._answers = list(answers)
        self.asked: list[int] = []

    def sweep(self, now_ms: int, seen_through_ms: int) -> Swept | None:
        self.asked.append(seen_through_ms)
        answer = self._answers.pop(0) if self._answers else None
        if isinstance(answer, OSError):
            raise answer
        return answer


def a_keeping(*answers: Swept | OSError) -> tuple[RunFolderRetention, FakeFolders, Metrics, Notes]:
    folders, metrics, notes = FakeFolders(*answers), Metrics(NODE_METRICS), Notes()
    clock = ManualClock()
    return RunFolderRetention(folders, clock.monotonic_ms, clock, metrics, notes), folders, metrics, notes


async def test_given_a_look_then_figures_and_logs_tell_of_it() -> None:
    looking, _, metrics, notes = a_keeping(Swept(3, 4096, 2, 8192, is_over=False))
    await looking.look()
    assert metrics.value("tidegate_run_folders") == 3
    assert metrics.value("tidegate_run_folders_bytes") == 4096
    assert metrics.value("tidegate_run_folders_removed_total") == 2
    assert notes.said == [("run_folders_removed", {"attempts": 2, "bytes": 8192})]


async def test_given_more_than_there_is_room_for_then_somebody_is_told() -> None:
    looking, _, _, notes = a_keeping(Swept(3, 4096, 0, 0, is_over=True))
    await looking.look()
    assert notes.said == [("run_folders_full", {"attempts": 3, "bytes": 4096})]


async def test_given_nothing_to_do_or_somebody_else_at_it_then_nothing_is_said() -> None:
    looking, _, metrics, notes = a_keeping(Swept(0, 0, 0, 0, is_over=False))
    await looking.look()
    await looking.look()
    assert (notes.said, metrics.value("tidegate_run_folders")) == ([], 0)


async def test_given_a_disk_that_answers_nobody_then_the_node_goes_on_and_looks_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(run_folder_retention, "LOOK_EVERY_S", 0.0)
    looking, folders, _, notes = a_keeping(OSError("the disk is away"), Swept(1, 1, 1, 1, is_over=False))
    life = asyncio.create_task(looking.run())
    while len(folders.asked) < 3:  # noqa: ASYNC110 - the fake has no way to tell
        await asyncio.sleep(0.001)
    life.cancel()
    assert notes.names() == ["task_failed", "run_folders_removed"]


def test_given_a_disk_that_hangs_then_the_process_ends_without_it() -> None:
    """A node on a mount that answered nobody handed everything over, and then stayed until it was killed."""
    begun, may_answer = threading.Event(), threading.Event()

    class Hanging(FakeFolders):
        def sweep(self, now_ms: int, seen_through_ms: int) -> Swept | None:
            begun.set()
            may_answer.wait()
            return None

    async def life() -> None:
        clock = ManualClock()
        looking = asyncio.create_task(
            RunFolderRetention(Hanging(), clock.monotonic_ms, clock, Metrics(NODE_METRICS), Notes()).run()
        )
        while not begun.is_set():  # noqa: ASYNC110 - it looks in a thread
            await asyncio.sleep(0.001)
        looking.cancel()

    # Else both would wait for each other: the loop's end for the look, and the look for this.
    give_up = threading.Timer(PATIENCE_S, may_answer.set)
    give_up.start()
    try:
        asyncio.run(life())
        assert not may_answer.is_set(), "the loop's end has waited for the disk"
    finally:
        may_answer.set()
        give_up.cancel()


async def test_given_a_store_that_was_away_then_ends_count_as_seen_once_it_has_answered_for_an_hour() -> None:
    """Read: they went an hour after they were written, which is no time in which an owner saw them behind an outage."""
    folders, clock = FakeFolders(), ManualClock()
    answered_at = clock.monotonic
    looking = RunFolderRetention(folders, lambda: answered_at, clock, Metrics(NODE_METRICS), Notes())

    async def look_behind(minutes: int, *, answers: bool) -> int:
        nonlocal answered_at
        clock.pass_ms(minutes * 60_000)
        answered_at = clock.monotonic if answers else answered_at
        await looking.look()
        return (clock.wall - folders.asked[-1]) // 60_000

    await looking.look()
    assert folders.asked == [0]
    assert await look_behind(60, answers=True) == 60
    assert await look_behind(10, answers=False) == 70
    assert await look_behind(120, answers=False) == 190
    assert await look_behind(10, answers=True) == 200
    assert await look_behind(50, answers=True) == 250
    assert await look_behind(10, answers=True) == 60
