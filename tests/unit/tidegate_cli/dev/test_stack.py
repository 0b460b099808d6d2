"""A stack that cannot be started as it is asked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tidegate_cli.dev.console import console_for
from tidegate_cli.dev.environment import DYNAMODB_VARIABLE, KAFKA_VARIABLE
from tidegate_cli.dev.failure import StackFailed
from tidegate_cli.dev.options import StackOptions
from tidegate_cli.dev.stack import Stack


@pytest.mark.parametrize("port", ["65536", "9" * 5_000])
def test_given_a_port_that_no_machine_has_then_the_setting_is_named(tmp_path: Path, port: str) -> None:
    # Bricks of somebody else: none is started.
    environment = {
        KAFKA_VARIABLE: "127.0.0.1:1",
        DYNAMODB_VARIABLE: "http://127.0.0.1:1",
        "TIDEGATE_API__PORT": port,
        "TIDEGATE_STATE_DIR": str(tmp_path / "state"),
    }
    stack = Stack(
        StackOptions(data_dir=tmp_path / "data"), console_for(sys.stdout, sys.stderr, as_json=True), environment
    )
    try:
        with pytest.raises(StackFailed, match=r"TIDEGATE_API__PORT is .*; choose a port from 1 to 65535"):
            stack.start()
    finally:
        stack.stop()
