"""The look at a program's file that an apply and its dry run share."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from tidegate_ports.common import program_file_check
from tidegate_ports.common.program_file_check import LOOKS_MAX, FileLooks, FileSystemSilent, problem_with

PATIENCE_S = 60.0
"""With a file system that answers, on a machine that stands still for a while."""


def test_given_file_that_can_be_read_then_no_problem(tmp_path: Path) -> None:
    (tmp_path / "land.py").write_text("")
    assert problem_with(str(tmp_path / "land.py"), "this host") is None


def test_given_no_file_a_folder_or_a_relative_path_then_what_is_wrong_is_named(tmp_path: Path) -> None:
    assert problem_with("jobs/land.py", "this host") == "jobs/land.py is not an absolute path"
    for path in (tmp_path, tmp_path / "none.py"):
        assert problem_with(str(path), "this host") == f"{path} does not exist on this host, or is no file"


def test_given_a_name_that_no_file_can_have_then_it_is_a_problem_and_no_error() -> None:
    found = problem_with("/" + "x" * 1_000, "this host")
    assert found is not None
    assert "x cannot be looked at" in found or "does not exist" in found


@pytest.fixture
def hung_mount(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """What is below `/hung` gets no answer until the event is set."""
    answers = threading.Event()

    def look(file: str, who: str) -> str | None:
        if file.startswith("/hung"):
            answers.wait()
        return problem_with(file, who)

    monkeypatch.setattr(program_file_check, "problem_with", look)
    yield answers
    answers.set()


async def test_given_a_mount_that_hangs_then_who_asks_is_told_so_and_others_get_their_answers(
    hung_mount: threading.Event, tmp_path: Path
) -> None:
    looks = FileLooks(patience_s=0.01)
    with pytest.raises(FileSystemSilent, match=r"/hung/land\.py cannot be looked at: .* no answer to this host"):
        await looks.problem_with("/hung/land.py", "this host")
    assert (
        await FileLooks(PATIENCE_S).problem_with(str(tmp_path), "this host")
        == f"{tmp_path} does not exist on this host, or is no file"
    )


async def test_given_as_many_looks_without_an_answer_as_there_may_be_then_the_next_one_is_told_at_once(
    hung_mount: threading.Event,
) -> None:
    looks = FileLooks(patience_s=0.001)
    for number in range(LOOKS_MAX):
        with pytest.raises(FileSystemSilent):
            await looks.problem_with(f"/hung/{number}.py", "this host")
    with pytest.raises(FileSystemSilent):
        await looks.problem_with("/gone.py", "this host")


async def test_given_far_more_looks_at_once_than_threads_then_all_get_their_answers(tmp_path: Path) -> None:
    """A thousand applies in one moment: the file system answers each of them."""
    looks = FileLooks(PATIENCE_S)
    (tmp_path / "land.py").write_text("")
    files = [str(tmp_path / ("land.py" if number % 2 else "none.py")) for number in range(8 * LOOKS_MAX)]
    found = await asyncio.gather(*(looks.problem_with(file, "this host") for file in files))
    assert [each is None for each in found] == [bool(number % 2) for number in range(len(files))]


async def test_given_a_crowd_whose_turns_take_longer_than_the_patience_with_one_then_none_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """10,000 applies at once on a machine with others on its cores: 32 of them were told that the file system was silent."""
    turns, begun, answers = 4, threading.Semaphore(0), threading.Event()

    def look(file: str, who: str) -> str | None:
        begun.release()
        answers.wait(PATIENCE_S)
        return problem_with(file, who)

    async def of(count: int) -> list[str | None]:
        return await asyncio.gather(*(looks.problem_with(file, "this host") for _ in range(count)))

    monkeypatch.setattr(program_file_check, "problem_with", look)
    (tmp_path / "land.py").write_text("")
    looks, file = FileLooks(PATIENCE_S), str(tmp_path / "land.py")
    first = asyncio.create_task(of(LOOKS_MAX))
    for _ in range(LOOKS_MAX):
        assert await asyncio.to_thread(begun.acquire, timeout=PATIENCE_S)
    # Those behind them wait in line for many times theirs, which counts for the looks of their own turns alone.
    monkeypatch.setattr(looks, "_patience_s", 0.001)
    others = asyncio.create_task(of((turns - 1) * LOOKS_MAX))
    await asyncio.wait({others}, timeout=0.05)
    monkeypatch.setattr(looks, "_patience_s", PATIENCE_S)
    answers.set()
    assert [*await first, *await others] == [None] * turns * LOOKS_MAX


class _Places(asyncio.Semaphore):
    """Counts how often somebody stands in line."""

    asked = 0

    async def acquire(self) -> Literal[True]:
        self.asked += 1
        return await super().acquire()


async def test_given_a_wait_of_many_patiences_then_who_waits_keeps_its_place_in_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Who had waited longest went to the end of it again and again (review)."""
    looks, places = FileLooks(patience_s=0.001), _Places(0)
    monkeypatch.setattr(looks, "_room", places)
    waiting = asyncio.create_task(looks.problem_with(str(tmp_path), "this host"))
    await asyncio.wait({waiting}, timeout=0.05)
    monkeypatch.setattr(looks, "_patience_s", PATIENCE_S)
    places.release()
    assert await waiting == f"{tmp_path} does not exist on this host, or is no file"
    assert places.asked == 1


async def test_given_a_crowd_before_a_mount_that_hangs_then_all_of_it_is_told_so(hung_mount: threading.Event) -> None:
    looks = FileLooks(patience_s=0.05)
    told = await asyncio.gather(
        *(looks.problem_with("/hung/land.py", "this host") for _ in range(4 * LOOKS_MAX)), return_exceptions=True
    )
    assert {type(each) for each in told} == {FileSystemSilent}


async def test_given_looks_that_come_back_late_then_there_is_room_again(
    hung_mount: threading.Event, tmp_path: Path
) -> None:
    looks = FileLooks(patience_s=0.01)
    for number in range(LOOKS_MAX):
        with pytest.raises(FileSystemSilent):
            await looks.problem_with(f"/hung/{number}.py", "this host")
    hung_mount.set()
    async with asyncio.timeout(2 * PATIENCE_S):
        while await _is_silent(looks, tmp_path):
            # Threads of its own; the others come back meanwhile.
            assert not await _is_silent(FileLooks(PATIENCE_S), tmp_path)


async def _is_silent(looks: FileLooks, path: Path) -> bool:
    try:
        found = await looks.problem_with(str(path), "this host")
    except FileSystemSilent:
        return True
    assert found == f"{path} does not exist on this host, or is no file"
    return False


async def test_given_a_host_without_threads_then_that_is_told_and_there_is_room_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After as many looks that could not be begun as there may be at once nobody ever looked again, and no program was started any more."""
    looks = FileLooks(PATIENCE_S)
    (tmp_path / "land.py").write_text("")

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", start)
        for _ in range(LOOKS_MAX):
            with pytest.raises(FileSystemSilent, match="new thread"):
                await looks.problem_with(str(tmp_path / "land.py"), "this host")
    assert await asyncio.wait_for(looks.problem_with(str(tmp_path / "land.py"), "this host"), 2 * PATIENCE_S) is None
