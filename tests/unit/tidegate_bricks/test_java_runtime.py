"""Which Java is taken, and what is said where none will do."""

from pathlib import Path

import pytest

from tidegate_bricks.errors import BrickUnavailable
from tidegate_bricks.java_runtime import Java, Probe, find_java

SETTINGS = """Property settings:
    java.home = /opt/java
    java.vendor.url = https://example.org/
    java.version = {version}
    os.arch = {architecture}
    os.name = Linux
    path.separator = :

openjdk version "{version}"
"""


def printing(versions: dict[str, str | None], architecture: str = "amd64") -> Probe:
    """Returns a probe for which each executable prints its settings; None makes it fail."""

    def probe(command: list[str]) -> str | None:
        version = versions.get(command[0])
        return None if version is None else SETTINGS.format(version=version, architecture=architecture)

    return probe


def java_on_path(folder: Path) -> str:
    executable = folder / "java"
    executable.write_text("#!/bin/sh\n")
    executable.chmod(0o755)
    return str(executable)


@pytest.mark.parametrize(
    ("printed", "version"),
    [
        pytest.param("17.0.15", 17, id="a release with an update"),
        pytest.param("21", 21, id="a first release"),
        pytest.param("25-ea", 25, id="an early-access build"),
    ],
)
def test_given_new_java_on_path_then_it_is_taken(tmp_path: Path, printed: str, version: int) -> None:
    executable = java_on_path(tmp_path)
    java = find_java({"PATH": str(tmp_path)}, printing({executable: printed}, "aarch64"))
    assert java == Java(Path(executable), version, "aarch64", "Linux")


def test_given_java_home_and_path_then_java_home_wins(tmp_path: Path) -> None:
    executable = java_on_path(tmp_path)
    probe = printing({"/opt/java/bin/java": "21.0.1", executable: "17.0.15"})
    assert find_java({"JAVA_HOME": "/opt/java", "PATH": str(tmp_path)}, probe).version == 21


@pytest.mark.parametrize(
    "home_version",
    [pytest.param("11.0.2", id="too old"), pytest.param(None, id="not a Java at all")],
)
def test_given_useless_java_home_then_the_one_on_path_is_taken(tmp_path: Path, home_version: str | None) -> None:
    executable = java_on_path(tmp_path)
    probe = printing({"/opt/java/bin/java": home_version, executable: "17.0.15"})
    java = find_java({"JAVA_HOME": "/opt/java", "PATH": str(tmp_path)}, probe)
    assert java.executable == Path(executable)


@pytest.mark.parametrize(("printed", "said"), [("1.8.0_392", "Java 8"), ("16.0.2", "Java 16")])
def test_given_only_old_java_then_error_names_it_and_the_remedy(tmp_path: Path, printed: str, said: str) -> None:
    executable = java_on_path(tmp_path)
    with pytest.raises(BrickUnavailable, match=said) as refusal:
        find_java({"PATH": str(tmp_path)}, printing({executable: printed}))
    assert executable in refusal.value.what
    assert "17 or newer" in refusal.value.remedy


def test_given_no_java_then_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(BrickUnavailable, match="no Java was found; install"):
        find_java({"PATH": str(tmp_path)}, printing({}))
