"""A data folder belongs to one server at a time."""

import os
from pathlib import Path

import pytest

from tidegate_bricks.errors import BrickUnavailable
from tidegate_bricks.server_folder import DataFolder


def test_given_new_folder_then_it_is_made_when_it_is_taken(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "a" / "b", "Broker 1")
    assert not folder.path.exists()
    folder.take()
    assert folder.path.is_dir()
    folder.release()


def test_given_folder_in_use_then_error_names_it(tmp_path: Path) -> None:
    first, second = DataFolder(tmp_path, "Broker 1"), DataFolder(tmp_path, "Broker 1")
    first.take()
    with pytest.raises(BrickUnavailable, match=f"the data folder {tmp_path} is in use by another Broker 1"):
        second.take(timeout_s=0)
    first.release()
    second.take(timeout_s=0)
    second.release()


def test_given_server_still_holds_the_lock_then_folder_stays_taken(tmp_path: Path) -> None:
    """A killed server's folder is free once the process is gone, and not before."""
    first, second = DataFolder(tmp_path, "Broker 1"), DataFolder(tmp_path, "Broker 1")
    first.take()
    held_by_server = os.dup(first.lock_descriptor)
    first.release()
    with pytest.raises(BrickUnavailable):
        second.take(timeout_s=0)
    os.close(held_by_server)
    second.take(timeout_s=0)
    second.release()


def test_given_no_folder_then_a_temporary_one_goes_with_the_object() -> None:
    folder = DataFolder(None, "Broker 1")
    folder.take()
    path = folder.path
    assert path.is_dir()
    folder.release()
    del folder
    assert not path.exists()
