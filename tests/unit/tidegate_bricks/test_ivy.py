"""What Ivy is asked, and what its output means."""

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tidegate_bricks.download_progress import Progress, Stage
from tidegate_bricks.errors import BrickUnavailable
from tidegate_bricks.ivy import IvyReport, describe, find_ivy
from tidegate_bricks.releases import KAFKA

#: Recorded, shortened; the addresses are left out.
DOWNLOAD = """\
:: resolving dependencies :: tidegate#kafka-4.1.1;working@vm
\tconfs: [default]
\tfound org.apache.kafka#kafka_2.13;4.1.1 in public
\tfound org.apache.kafka#kafka-clients;4.1.1 in public
downloading broker.jar ...
................................................. (2015kB)
.. (0kB)
\t[SUCCESSFUL ] org.apache.kafka#kafka_2.13;4.1.1!kafka_2.13.jar (129ms)
downloading client.jar ...
................................................. (9537kB)
\t[SUCCESSFUL ] org.apache.kafka#kafka-clients;4.1.1!kafka-clients.jar (171ms)
:: retrieving :: tidegate#kafka-4.1.1
"""

NO_NETWORK = """\
Host packages.example not found. url=broker.pom
Host packages.example not found. url=broker.jar
\t\tmodule not found: org.apache.kafka#kafka_2.13;4.1.1
\t\t::          UNRESOLVED DEPENDENCIES         ::
"""


def reports(output: str) -> tuple[IvyReport, list[Progress]]:
    report = IvyReport(Progress("kafka-4.1.1", Stage.RESOLVING, files_total=2))
    return report, [report.progress for line in output.splitlines(keepends=True) if report.read(line)]


def test_given_download_then_files_and_kilobytes_are_counted_by_stage() -> None:
    _, steps = reports(DOWNLOAD)
    assert [step.files_done for step in steps if step.stage is Stage.RESOLVING] == [1, 2]
    assert steps[-1] == Progress("kafka-4.1.1", Stage.DOWNLOADING, files_done=2, files_total=2, kilobytes_done=11552)


def test_given_no_network_then_complaint_names_the_first_causes() -> None:
    report, steps = reports(NO_NETWORK)
    assert steps == []
    assert report.complaint() == (
        "Host packages.example not found. url=broker.pom, Host packages.example not found. url=broker.jar"
    )


def test_given_silence_then_complaint_says_that() -> None:
    assert reports("")[0].complaint() == "Ivy ended without saying why"


def test_given_release_then_description_names_each_module() -> None:
    dependencies = ElementTree.fromstring(describe(KAFKA)).findall("./dependencies/dependency")
    assert [(each.get("org"), each.get("name"), each.get("rev")) for each in dependencies] == [
        (module.organisation, module.name, module.revision) for module in KAFKA.modules
    ]
    assert {each.get("conf") for each in dependencies} == {"default->default"}


def pyspark_in(monkeypatch: pytest.MonkeyPatch, folder: Path | None) -> None:
    spec = None if folder is None else ModuleSpec("pyspark", None, is_package=True)
    if spec is not None:
        spec.submodule_search_locations = [str(folder)]
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: spec)


def test_given_pyspark_then_its_ivy_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    jar = tmp_path / "jars" / "ivy-2.5.3.jar"
    jar.parent.mkdir()
    jar.touch()
    pyspark_in(monkeypatch, tmp_path)
    assert find_ivy() == jar


@pytest.mark.parametrize(
    "installed", [pytest.param(True, id="a PySpark without jars"), pytest.param(False, id="no PySpark")]
)
def test_given_no_ivy_then_error_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, installed: bool
) -> None:
    pyspark_in(monkeypatch, tmp_path if installed else None)
    with pytest.raises(BrickUnavailable) as refusal:
        find_ivy()
    assert refusal.value.remedy == "pip install 'tidegate[local]'"
