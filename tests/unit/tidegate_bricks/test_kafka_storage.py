"""A broker's folder is formatted once, and by a whole file last."""

import re
from pathlib import Path

import pytest

from tidegate_bricks.kafka_storage import cluster_id_of, format_storage, new_id


def properties_of(folder: Path) -> dict[str, str]:
    lines = (folder / "meta.properties").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def test_given_two_folders_then_each_has_ids_of_its_own(tmp_path: Path) -> None:
    format_storage(tmp_path / "a")
    format_storage(tmp_path / "b")
    first, second = properties_of(tmp_path / "a"), properties_of(tmp_path / "b")
    assert (first["version"], first["node.id"]) == ("1", "1")
    assert len({first["cluster.id"], first["directory.id"], second["cluster.id"], second["directory.id"]}) == 4
    assert cluster_id_of(tmp_path / "a") == first["cluster.id"]


def test_given_formatted_folder_then_it_stays_as_it_is(tmp_path: Path) -> None:
    format_storage(tmp_path)
    before = properties_of(tmp_path)
    (tmp_path / "bootstrap.checkpoint").unlink()  # The broker may do as it likes with it.
    format_storage(tmp_path)
    assert properties_of(tmp_path) == before
    assert not (tmp_path / "bootstrap.checkpoint").exists()


def test_given_formatting_was_killed_before_its_last_file_then_it_is_done_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_written: Path, _target: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            format_storage(tmp_path)
    assert not (tmp_path / "meta.properties").exists()
    format_storage(tmp_path)
    assert cluster_id_of(tmp_path)
    assert (tmp_path / "bootstrap.checkpoint").exists()


def test_given_no_id_in_the_file_then_there_is_none(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    assert cluster_id_of(tmp_path) is None


def test_given_ids_then_none_looks_like_an_option() -> None:
    assert all(re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{21}", new_id()) for _ in range(500))
