"""A stack that cannot be started as it is asked for, and one that is interrupted as it is ready."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.unit.tidegate_cli.conftest import a_ready
from tidegate_cli.dev.child_environment import DYNAMODB_VARIABLE, KAFKA_VARIABLE
from tidegate_cli.dev.console import console_for
from tidegate_cli.dev.errors import SettingsWrong
from tidegate_cli.dev.options import StackOptions
from tidegate_cli.dev.stack import Pointer, Stack
from tidegate_cli.dev.stack_events import Notice, Ready, StackEvent, Stopped, Stopping


@pytest.mark.parametrize("port", ["abc", "0", "-1", "80.0", "65536", "99999", "9" * 5_000])
def test_given_a_port_that_no_machine_has_then_the_setting_is_named_before_anything_is_started(
    tmp_path: Path, port: str
) -> None:
    """A word was passed over, and a number beyond all ports was told once broker and store were up."""
    environment = {"TIDEGATE_API__PORT": port, "TIDEGATE_STATE_DIR": str(tmp_path / "state")}
    stack = Stack(
        StackOptions(data_dir=tmp_path / "data"), console_for(sys.stdout, sys.stderr, as_json=True), environment
    )
    try:
        with pytest.raises(SettingsWrong, match=rf"TIDEGATE_API__PORT is '{port[:20]}'; choose a port from 1 to 65535"):
            stack.start()
    finally:
        stack.stop()
    assert not (tmp_path / "data").exists()


class _InterruptedAtReady:
    """A console whose reader sends Ctrl-C as soon as it has the line."""

    def __init__(self) -> None:
        self.shown: list[StackEvent] = []

    def show(self, event: StackEvent) -> None:
        self.shown.append(event)
        if isinstance(event, Ready):
            raise KeyboardInterrupt

    def close(self) -> None: ...


def shown_of_a_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[StackEvent]:
    """Starts a stack without processes, and stops it as it is ready."""
    environment = {
        KAFKA_VARIABLE: "127.0.0.1:1",
        DYNAMODB_VARIABLE: "http://127.0.0.1:1",
        "TIDEGATE_STATE_DIR": str(tmp_path / "state"),
    }
    monkeypatch.setattr(Stack, "_initialise", lambda _stack, _wiring: None)
    monkeypatch.setattr(Stack, "_start_children", lambda _stack, wiring: wiring)
    console = _InterruptedAtReady()
    stack = Stack(StackOptions(data_dir=tmp_path / "data"), console, environment)
    with pytest.raises(KeyboardInterrupt):
        stack.start()
    stack.stop()
    return console.shown


def test_given_ctrl_c_right_behind_the_ready_line_then_the_stop_is_told_and_the_pointer_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # From a failure of a busy build machine: the stop said nothing, and the pointer file stayed.
    shown = shown_of_a_stack(tmp_path, monkeypatch)
    assert [type(event) for event in shown[-3:]] == [Ready, Stopping, Stopped]
    assert list((tmp_path / "state" / "dev").iterdir()) == []


def test_given_another_stack_that_runs_then_the_new_one_says_where_commands_mean_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    other = Pointer(tmp_path / "state" / "dev")
    other.write(a_ready("http://127.0.0.1:4711", "/elsewhere"))
    *_, notice, ready = shown_of_a_stack(tmp_path, monkeypatch)[:-2]
    other.remove()
    assert isinstance(notice, Notice)
    assert isinstance(ready, Ready)
    assert ready.folder == str(tmp_path)
    assert "other local stacks run (http://127.0.0.1:4711)" in notice.text
    assert f"commands in {tmp_path}" in notice.text


def test_given_a_folder_of_state_that_cannot_be_written_then_the_stack_goes_on_and_says_who_does_not_find_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container with a read-only home: all was ready, and ended with a traceback."""
    (tmp_path / "state").write_text("")
    shown = shown_of_a_stack(tmp_path, monkeypatch)
    *_, notice, ready = shown[:-2]
    assert isinstance(notice, Notice)
    assert isinstance(ready, Ready)
    assert f"--api {ready.api_url}" in notice.text
    assert "cannot be written" in notice.text
