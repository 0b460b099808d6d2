from __future__ import annotations

import json
import stat
from pathlib import Path

from tidegate_cli.dev.events import Ready
from tidegate_cli.dev.pointer import remove_pointer, write_pointer

READY = Ready(
    seconds=4.2,
    api_url="http://127.0.0.1:8080",
    kafka="127.0.0.1:9092",
    dynamodb="http://127.0.0.1:8000",
    data_dir="/data",
    ephemeral=False,
    nodes=("http://127.0.0.1:8081",),
    pid=17,
)


def test_given_a_stack_that_is_ready_then_the_pointer_says_where_it_is(tmp_path: Path) -> None:
    write_pointer(tmp_path / "state", READY)
    pointer = tmp_path / "state" / "dev.json"
    said = json.loads(pointer.read_text())
    assert (said["api_url"], said["kafka"], said["pid"]) == ("http://127.0.0.1:8080", "127.0.0.1:9092", 17)
    assert stat.S_IMODE(pointer.stat().st_mode) == 0o600
    assert list(pointer.parent.iterdir()) == [pointer]


def test_given_our_own_pointer_then_it_is_removed(tmp_path: Path) -> None:
    write_pointer(tmp_path, READY)
    remove_pointer(tmp_path, 17)
    assert list(tmp_path.iterdir()) == []


def test_given_the_pointer_of_another_stack_then_it_stays(tmp_path: Path) -> None:
    write_pointer(tmp_path, READY)
    remove_pointer(tmp_path, 18)
    assert (tmp_path / "dev.json").exists()


def test_given_no_pointer_or_a_broken_one_then_removing_is_no_error(tmp_path: Path) -> None:
    remove_pointer(tmp_path, 17)
    (tmp_path / "dev.json").write_text("[]")
    remove_pointer(tmp_path, 17)
    assert (tmp_path / "dev.json").exists()
