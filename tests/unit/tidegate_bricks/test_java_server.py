"""Which archive of classes a server is started with. `tests/integration/bricks/test_java_server.py` has its life."""

import os
from pathlib import Path

import pytest

from tidegate_bricks.java_runtime import Java
from tidegate_bricks.java_server import ARCHIVES_VARIABLE, archived_classes, class_archive


@pytest.fixture
def java(tmp_path: Path) -> Java:
    executable = tmp_path / "java"
    executable.touch()
    return Java(executable, 17, "amd64", "Linux")


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    folder = tmp_path / "kafka-1"
    folder.mkdir()
    return folder


def test_given_no_folder_of_archives_then_there_is_no_option(java: Java, jars: Path) -> None:
    assert archived_classes({}, java, jars) == ()


def test_given_archive_then_the_option_names_it_once_it_is_there(java: Java, jars: Path, tmp_path: Path) -> None:
    environment = {ARCHIVES_VARIABLE: str(tmp_path)}
    assert archived_classes(environment, java, jars) == ()
    archive = class_archive(tmp_path, java, jars)
    archive.touch()
    assert archived_classes(environment, java, jars) == (f"-XX:SharedArchiveFile={archive}",)


def test_given_another_java_or_other_jars_then_their_archive_has_another_name(
    java: Java, jars: Path, tmp_path: Path
) -> None:
    before = class_archive(tmp_path, java, jars)
    os.utime(java.executable, (1, 1))
    with_other_java = class_archive(tmp_path, java, jars)
    os.utime(jars, (1, 1))
    assert len({before, with_other_java, class_archive(tmp_path, java, jars)}) == 3
