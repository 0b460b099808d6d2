from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidegate_cli.dev.dev_command import STOP_SIGNALS, Interrupts, app
from tidegate_cli.dev.errors import StackFailed
from tidegate_cli.dev.local_servers import require_local_extra
from tidegate_cli.exit_codes import Exit


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    before = [signal.getsignal(number) for number in STOP_SIGNALS]
    yield
    for number, handler in zip(STOP_SIGNALS, before, strict=True):
        signal.signal(number, handler)


def test_given_the_first_ctrl_c_then_it_interrupts_and_the_next_one_hurries() -> None:
    interrupts = Interrupts()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    interrupts.only_count()
    assert not interrupts.hurry()
    signal.raise_signal(signal.SIGINT)
    assert interrupts.hurry()


def test_given_sigterm_then_it_stops_like_ctrl_c() -> None:
    Interrupts()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGTERM)


def test_given_a_stop_without_a_signal_then_the_first_ctrl_c_does_not_yet_hurry() -> None:
    interrupts = Interrupts()
    interrupts.only_count()
    signal.raise_signal(signal.SIGINT)
    assert not interrupts.hurry()


def test_given_both_ephemeral_and_a_folder_then_it_is_a_usage_error() -> None:
    result = CliRunner().invoke(app, ["--ephemeral", "--data-dir", "/data"])
    assert result.exit_code == 2


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("TIDEGATE_API__PORT", "abc", "TIDEGATE_API__PORT is 'abc'; choose a port from 1 to 65535"),
        ("TIDEGATE_API__PORT", "99999", "TIDEGATE_API__PORT is '99999'; choose a port from 1 to 65535"),
        ("TIDEGATE_CONFIG", "/gone/tidegate.yaml", "/gone/tidegate.yaml"),
    ],
)
def test_given_a_setting_that_is_wrong_then_the_exit_code_is_that_of_wrong_input_and_the_setting_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, value: str, told: str
) -> None:
    """It was 1, as of a failure that a repeat may mend."""
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("TIDEGATE_STATE_DIR", str(tmp_path / "state"))
    result = CliRunner().invoke(app, ["--data-dir", str(tmp_path / "data")])
    assert result.exit_code == Exit.USAGE
    assert told in result.output


def test_given_a_data_folder_that_cannot_be_used_then_the_exit_code_is_that_of_a_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TIDEGATE_STATE_DIR", str(tmp_path / "state"))
    result = CliRunner().invoke(app, ["--data-dir", str(tmp_path / "file" / "data")])
    assert result.exit_code == Exit.FAILURE


def test_given_no_pyspark_then_one_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pyspark" else find(name))
    with pytest.raises(StackFailed) as refused:
        require_local_extra()
    assert str(refused.value) == "`tidegate dev` needs PySpark; pip install 'tidegate[local]'"


def test_given_the_command_is_loaded_then_neither_the_store_client_nor_spark_is_imported() -> None:
    """They take a second each, and `tidegate dev --help` needs neither."""
    script = (
        "import sys, tidegate_cli.dev.dev_command\n"
        "print([name for name in ('boto3', 'botocore', 'pyspark') if name in sys.modules])"
    )
    printed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=150)
    assert printed.stdout.strip() == "[]"
