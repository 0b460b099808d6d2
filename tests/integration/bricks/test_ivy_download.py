"""Ivy under supervision, with a script in Java's place: no network takes part."""

from pathlib import Path

import pytest

from tidegate_bricks import ivy
from tidegate_bricks.download_progress import Progress, Stage, silent
from tidegate_bricks.errors import BrickUnavailable
from tidegate_bricks.ivy import retrieve
from tidegate_bricks.java_runtime import Java
from tidegate_bricks.releases import KAFKA

#: Writes its arguments to a file, says what Ivy says, and makes one file after the given pattern.
GOOD = """#!/bin/sh
echo "$@" > {seen}
echo "	found org.apache.kafka#kafka_2.13;4.1.1 in public"
echo "downloading broker.jar ..."
echo "................ (2015kB)"
echo "	[SUCCESSFUL ] org.apache.kafka#kafka_2.13;4.1.1!kafka_2.13.jar (129ms)"
for last; do :; done
touch "$(dirname "$last")/kafka_2.13-4.1.1.jar"
"""
UNREACHABLE = """#!/bin/sh
echo "Host packages.example not found. url=broker.pom"
exit 1
"""
SILENT = """#!/bin/sh
exec sleep 600
"""


def java(folder: Path, script: str) -> Java:
    executable = folder / "java"
    executable.write_text(script.replace("{seen}", str(folder / "seen")))
    executable.chmod(0o755)
    return Java(executable, 17, "amd64", "Linux")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def test_given_download_then_files_are_there_and_every_step_was_told(tmp_path: Path, workspace: Path) -> None:
    steps: list[Progress] = []
    files = retrieve(KAFKA, java(tmp_path, GOOD), Path("ivy.jar"), workspace, steps.append)
    assert [file.name for file in files.iterdir()] == ["kafka_2.13-4.1.1.jar"]
    assert [step.stage for step in steps] == [Stage.RESOLVING, *[Stage.DOWNLOADING] * 3]
    assert steps[-1].files_total == len(KAFKA.manifest().digests)


def test_given_download_then_ivy_sees_neither_the_users_home_nor_a_shared_cache(
    tmp_path: Path, workspace: Path
) -> None:
    retrieve(KAFKA, java(tmp_path, GOOD), Path("ivy.jar"), workspace, silent)
    seen = (tmp_path / "seen").read_text()
    assert f"-Duser.home={workspace / 'home'}" in seen
    assert f"-cache {workspace / 'cache'}" in seen
    assert "-settings" not in seen


def test_given_settings_file_then_ivy_is_told(tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_IVY_SETTINGS", "/etc/ivysettings.xml")
    retrieve(KAFKA, java(tmp_path, GOOD), Path("ivy.jar"), workspace, silent)
    assert "-settings /etc/ivysettings.xml" in (tmp_path / "seen").read_text()


def test_given_no_network_then_error_has_ivys_reason_and_a_remedy(tmp_path: Path, workspace: Path) -> None:
    with pytest.raises(BrickUnavailable) as refusal:
        retrieve(KAFKA, java(tmp_path, UNREACHABLE), Path("ivy.jar"), workspace, silent)
    assert refusal.value.what.startswith("Kafka 4.1.1 could not be downloaded: Host packages.example not found.")
    assert "check the network" in refusal.value.remedy


def test_given_connection_that_stays_silent_then_download_is_given_up(
    tmp_path: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ivy, "FETCH_TIMEOUT_S", 0.3)
    with pytest.raises(BrickUnavailable, match="without saying why"):
        retrieve(KAFKA, java(tmp_path, SILENT), Path("ivy.jar"), workspace, silent)
