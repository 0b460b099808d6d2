from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from tidegate_launchers.local.run_folder import Exit, Record, RunFolder


def test_given_a_run_then_its_folder_is_named_after_run_and_attempt(tmp_path: Path) -> None:
    assert RunFolder.within(tmp_path, "0007-abc", 2).path == tmp_path / "runs" / "0007-abc" / "a2"


@pytest.mark.parametrize("run_id", ["", ".", "..", "a/b", "../x", "a\0b", "-x", "x" * 129])
def test_given_a_run_id_that_could_leave_the_folder_then_it_is_refused(tmp_path: Path, run_id: str) -> None:
    with pytest.raises(ValueError, match="cannot name a folder"):
        RunFolder.within(tmp_path, run_id, 1)


def test_given_records_then_they_are_read_back(folder: RunFolder) -> None:
    record, ended = Record(7, "123", 6, "122", "node-1", "boot"), Exit(None, 9, 1_700_000_000_000, 42)
    assert (folder.record(), folder.exit(), folder.cancelled_at()) == (None, None, None)
    folder.write_record(record)
    folder.write_exit(ended)
    folder.write_cancel(5)
    assert (folder.record(), folder.exit(), folder.cancelled_at()) == (record, ended, 5)


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"pid": 7}', '{"code": 0, "signal": null, "at": "1", "cpu_ms": 0}'])
def test_given_records_that_cannot_be_read_then_whoever_asks_is_to_ask_again(folder: RunFolder, text: str) -> None:
    """One with a field less ended the shard's actor, again and again, and with it the node and every other node of the host."""
    (folder.path / "supervisor.json").write_text(text)
    (folder.path / "exit.json").write_text(text)
    for read in (folder.record, folder.exit):
        with pytest.raises(OSError, match="damaged"):
            read()


def test_given_files_of_a_run_then_only_their_owner_reads_them(folder: RunFolder) -> None:
    folder.write_json("context.json", {"nominal": None})
    assert stat.S_IMODE(folder.context.stat().st_mode) == 0o600
    for path in (folder.path, folder.path.parent, folder.path.parent.parent, folder.work, folder.scratch):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_given_a_document_that_is_no_json_then_the_old_file_stays_whole(folder: RunFolder) -> None:
    folder.write_json("context.json", {"a": 1})
    before = folder.context.read_text(encoding="utf-8")
    with pytest.raises(TypeError):
        folder.write_json("context.json", {"a": object()})
    assert folder.context.read_text(encoding="utf-8") == before
    assert [path.name for path in folder.path.iterdir() if path.is_file()] == ["context.json"]


def test_given_logs_then_last_words_are_the_wrappers_last_line_in_either(folder: RunFolder) -> None:
    assert folder.last_words() == ""
    folder.stdout.write_text("tidegate: from the driver\nmore\n", encoding="utf-8")
    folder.stderr.write_text("WARN a line of Spark\n", encoding="utf-8")
    assert folder.last_words() == "from the driver"
    folder.stderr.write_text("x\n" * 100_000 + "tidegate: first\ntidegate: last\nx\n", encoding="utf-8")
    assert folder.last_words() == "last"


def test_given_a_fifo_in_the_place_of_a_log_then_nobody_waits_for_who_writes_there(folder: RunFolder) -> None:
    """A program can put one there; for each the node lost one of the threads that look at programs, for good."""
    os.mkfifo(folder.stderr)
    folder.stdout.write_text("tidegate: from the driver\n", encoding="utf-8")
    words: list[str] = []
    reader = threading.Thread(target=lambda: words.append(folder.last_words()), daemon=True)
    reader.start()
    reader.join(60)
    assert words == ["from the driver"]
