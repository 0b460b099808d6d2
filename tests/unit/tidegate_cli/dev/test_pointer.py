"""Pointer files of running stacks, and what a killed stack leaves."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from pathlib import Path

from tests.unit.tidegate_cli.conftest import a_ready
from tidegate_cli.dev.stack import Pointer
from tidegate_cli.local_stacks import running_stacks

READY = a_ready("http://127.0.0.1:8080", "/work")


def test_given_a_stack_that_is_ready_then_its_pointer_says_where_it_is(tmp_path: Path) -> None:
    Pointer(folder := tmp_path / "state" / "dev").write(READY)
    (file,) = folder.iterdir()
    said = json.loads(file.read_text())
    assert (said["api_url"], said["folder"], said["pid"]) == ("http://127.0.0.1:8080", "/work", 17)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    (stack,) = running_stacks(folder)
    assert (stack.api_url, stack.folder) == ("http://127.0.0.1:8080", "/work")


def test_given_two_stacks_then_each_takes_away_its_own_pointer_alone(tmp_path: Path) -> None:
    one, other = Pointer(tmp_path), Pointer(tmp_path)
    one.write(READY)
    other.write(a_ready("http://127.0.0.1:9090", "/other"))
    assert [stack.folder for stack in running_stacks(tmp_path)] == ["/work", "/other"]
    other.remove()
    other.remove()
    assert [stack.folder for stack in running_stacks(tmp_path)] == ["/work"]
    one.remove()
    assert list(tmp_path.iterdir()) == []


def test_given_a_stack_that_was_killed_then_its_pointer_counts_for_nothing_and_the_next_stack_removes_it(
    tmp_path: Path,
) -> None:
    code = (
        "import os, sys; from pathlib import Path; from tests.unit.tidegate_cli.conftest import a_ready;"
        "from tidegate_cli.dev.stack import Pointer;"
        "Pointer(Path(sys.argv[1])).write(a_ready('http://127.0.0.1:1', '/killed')); os.kill(os.getpid(), 9)"
    )
    killed = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert killed.returncode == -9
    assert len(list(tmp_path.iterdir())) == 1
    assert running_stacks(tmp_path) == []
    pointer = Pointer(tmp_path)
    pointer.write(READY)
    assert [stack.folder for stack in running_stacks(tmp_path)] == ["/work"]
    assert len(list(tmp_path.iterdir())) == 1


def test_given_no_pointer_then_removing_is_no_error(tmp_path: Path) -> None:
    Pointer(tmp_path / "dev").remove()
