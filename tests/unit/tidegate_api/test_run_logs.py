"""Logs that cannot be read: nobody else waits for them, and who asked is told why."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.tidegate_api.conftest import NOW, Process, a_run, shard_of
from tidegate_api.run_logs import FileLogs, Piece
from tidegate_ports.run_folders import LogPaths


@pytest.fixture
def log(process: Process) -> Path:
    """Where the log is of a run that has started; no file is there yet."""
    run = a_run(state="running", driver="d-1", started_at=NOW)
    process.put(run, run.key(shard_of(run)))
    return process.data / f"{run.id}-1.out"


def url_of(log: Path) -> str:
    return f"/api/v1/runs/{log.name.removesuffix('-1.out')}/logs"


@pytest.fixture
def hung_mount(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Logs on a file system that gives no answer, for which nobody has much patience."""
    answers = threading.Event()

    def read(*_: object, **__: object) -> Piece:
        answers.wait(20)
        return Piece(0, 0, 0, "")

    monkeypatch.setattr("tidegate_api.thread_pools.LOG_S_MAX", 0.05)
    monkeypatch.setattr(FileLogs, "read", read)
    yield
    answers.set()


def lines(first: int, last: int) -> str:
    return "".join(f"line {number} é\n" for number in range(first, last + 1))


@pytest.mark.parametrize(
    ("written", "tail", "shown"),
    [
        ("", 3, ""),
        (lines(1, 2), 3, lines(1, 2)),
        (lines(1, 9), 3, lines(7, 9)),
        (lines(1, 9) + "half", 1, "half"),
        (lines(1, 9) + "half", 2, lines(9, 9) + "half"),
        (lines(1, 9), 0, ""),
        (lines(1, 100_000), 10, lines(99_991, 100_000)),
        ("\n\n\n", 2, "\n\n"),
    ],
)
def test_given_a_tail_then_a_log_begins_so_many_lines_before_its_end(
    process: Process, log: Path, written: str, tail: int, shown: str
) -> None:
    log.write_text(written, encoding="utf-8")
    piece = process.http.get(url_of(log), params={"tail": tail}).json()
    size = len(written.encode())
    assert (piece["text"], piece["next_offset"], piece["size"]) == (shown, size, size)


def test_given_a_tail_of_lines_that_take_pieces_then_what_follows_is_read_by_its_offset(
    process: Process, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write_text(lines(1, 30_000), encoding="utf-8")
    monkeypatch.setattr("tidegate_api.run_logs.PIECE_BYTES_MAX", 1_000)
    first = process.http.get(url_of(log), params={"tail": 100}).json()
    second = process.http.get(url_of(log), params={"offset": first["next_offset"]}).json()
    assert f"{first['text']}{second['text']}" == lines(29_901, 30_000)[: len(first["text"] + second["text"])]
    monkeypatch.setattr("tidegate_api.run_logs.TAIL_BYTES_MAX", 100)
    bounded = process.http.get(url_of(log), params={"tail": 10_000}).json()
    assert bounded["offset"] == bounded["size"] - 100


def test_given_a_tail_and_an_offset_then_neither_is_dropped_in_silence(process: Process, log: Path) -> None:
    log.write_text(lines(1, 9), encoding="utf-8")
    answer = process.http.get(url_of(log), params={"tail": 3, "offset": 5})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "tail")


@pytest.mark.usefixtures("hung_mount")
def test_given_logs_on_a_file_system_that_hangs_then_503_and_nothing_else_waits_for_them(
    process: Process, log: Path
) -> None:
    """They kept all threads of reads, and with them all writes and the probe (review)."""
    for _ in range(6):  # There are four of these threads.
        answer = process.http.get(url_of(log))
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "2")
        assert "its stdout cannot be looked at: its file system gave no answer" in answer.json()["detail"]
    assert process.http.get("/api/v1/schedules").status_code == 200


def test_given_a_fifo_in_the_place_of_a_log_then_nobody_waits_for_who_writes_there(process: Process, log: Path) -> None:
    os.mkfifo(log)
    answer = process.http.get(url_of(log))
    assert (answer.status_code, f"{log} is no regular file" in answer.json()["detail"]) == (404, True)


def test_given_a_link_in_the_place_of_a_log_then_nothing_of_this_process_is_shown(
    process: Process, log: Path, tmp_path: Path
) -> None:
    """A program may put one there, and this process may read what it may not: its own environment, say."""
    (tmp_path / "secret").write_text("hush", encoding="utf-8")
    log.symlink_to(tmp_path / "secret")
    answer = process.http.get(url_of(log))
    assert (answer.status_code, f"{log} is no regular file" in answer.json()["detail"]) == (404, True)


def test_given_a_link_in_the_place_of_an_attempt_s_folder_then_nothing_behind_it_is_shown(tmp_path: Path) -> None:
    elsewhere, attempt = tmp_path / "elsewhere", tmp_path / "runs" / "a1"
    elsewhere.mkdir()
    attempt.parent.mkdir()
    attempt.symlink_to(elsewhere)
    (elsewhere / "stdout.log").write_text("hush", encoding="utf-8")
    logs = FileLogs(lambda _run_id, _attempt: LogPaths(f"{attempt}/stdout.log", f"{attempt}/stderr.log"))

    assert logs.read("a-run", 1, "stdout", 0, ended=True) is None


def test_given_a_folder_in_the_place_of_a_log_then_that_is_said(process: Process, log: Path) -> None:
    log.mkdir()
    answer = process.http.get(url_of(log))
    assert (answer.status_code, f"{log} is no regular file" in answer.json()["detail"]) == (404, True)


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (errno.EACCES, 404, "may not read"),
        (errno.EPERM, 404, "run it as the nodes' user"),
        (errno.EIO, 503, "cannot be read now: Input/output error"),
        (errno.ETIMEDOUT, 503, "cannot be read now: Connection timed out"),
    ],
)
def test_given_a_log_that_this_process_cannot_read_then_why_and_what_to_do_is_said(
    process: Process, log: Path, monkeypatch: pytest.MonkeyPatch, error: int, status: int, words: str
) -> None:
    opened = os.open

    def open_(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if path == log.name:
            raise OSError(error, os.strerror(error), path)
        return opened(path, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", open_)
    answer = process.http.get(url_of(log))
    assert (answer.status_code, words in answer.json()["detail"]) == (status, True)
