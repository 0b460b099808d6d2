from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tidegate_cli.dev.errors import StackFailed
from tidegate_cli.dev.stack_folder import StackFolder


def test_given_a_new_folder_then_it_holds_a_secret_that_only_its_owner_reads(tmp_path: Path) -> None:
    folder = StackFolder(tmp_path / "data")
    folder.take()
    folder.release()
    assert stat.S_IMODE(folder.gate_secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert len(folder.gate_secret.read_text().strip()) >= 32
    assert folder.log("node-1").parent.is_dir()


def test_given_a_restart_then_the_secret_stays(tmp_path: Path) -> None:
    """Programs that outlive the stack hold tokens that were made with it."""
    secrets = []
    for _ in range(2):
        folder = StackFolder(tmp_path)
        folder.take()
        secrets.append(folder.gate_secret.read_text())
        folder.release()
    assert secrets[0] == secrets[1]


def test_given_a_folder_in_use_then_the_error_names_its_user_and_the_ways_out(tmp_path: Path) -> None:
    first = StackFolder(tmp_path)
    first.take()
    with pytest.raises(StackFailed) as refused:
        StackFolder(tmp_path).take()
    first.release()
    assert f"process {os.getpid()}" in refused.value.problem
    assert str(tmp_path) in refused.value.problem
    assert "--data-dir" in refused.value.remedy
    StackFolder(tmp_path).take()


def test_given_a_file_where_the_folder_should_be_then_the_error_says_so(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    with pytest.raises(StackFailed, match="cannot be used"):
        StackFolder(tmp_path / "data").take()


@pytest.mark.parametrize("name", ["dev.holder", "log"])
def test_given_a_part_of_the_folder_that_cannot_be_written_then_the_error_says_so(tmp_path: Path, name: str) -> None:
    (tmp_path / name).symlink_to(tmp_path / "nowhere" / name)
    with pytest.raises(StackFailed, match="cannot be used") as refused:
        StackFolder(tmp_path).take()
    assert "--data-dir" in refused.value.remedy


def test_given_an_ephemeral_folder_then_it_goes_when_it_is_released() -> None:
    folder = StackFolder(None)
    folder.take()
    assert folder.path.is_dir()
    assert folder.dynamodb is None
    folder.release()
    assert not folder.path.exists()


def test_given_an_earlier_stack_then_its_api_port_is_known_until_there_is_another(tmp_path: Path) -> None:
    ports: list[int | None] = []
    for chosen in (8080, None, 20_001, None):
        folder = StackFolder(tmp_path)
        folder.take()
        ports.append(folder.earlier_api_port)
        if chosen is not None:
            folder.remember(api_port=chosen)
        folder.release()
    assert ports == [None, 8080, 8080, 20_001]
