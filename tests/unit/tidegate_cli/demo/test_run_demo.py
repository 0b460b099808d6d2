"""The demo as a command where it cannot start."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate_cli.demo.__main__ import NEEDED

pytestmark = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED), reason="the extra [demo] is not installed"
)


def test_given_no_java_then_one_line_says_so_and_nothing_is_left_behind(tmp_path: Path) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    kept = {name: value for name, value in os.environ.items() if name not in {"JAVA_HOME", "TIDEGATE_CONFIG"}}
    environment = {**kept, "PATH": str(tmp_path / "nothing"), "TMPDIR": str(temporary), "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "tidegate_cli.demo", "--days", "1", "--output", str(tmp_path / "out")]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=150, check=False)

    said = ended.stdout + ended.stderr
    assert ended.returncode == 1
    assert "Java" in said
    assert "Traceback" not in said
    assert list(temporary.iterdir()) == []
