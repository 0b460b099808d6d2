"""Finds a Java runtime that is new enough for the bricks: JAVA_HOME first, then PATH."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tidegate_bricks.errors import BrickUnavailable

#: Kafka 4's broker and DynamoDB Local 2.x are compiled for this release.
JAVA_VERSION_MIN = 17
#: Seconds. Printing its properties takes a Java 0.1 s; a longer run means that it hangs.
PROBE_TIMEOUT_S = 30.0
REMEDY = f"install a Java runtime {JAVA_VERSION_MIN} or newer and put it on PATH or name it in JAVA_HOME"

#: Runs a command and returns its whole output, or None if it cannot be run or fails.
Probe = Callable[[list[str]], str | None]


@dataclass(frozen=True, slots=True)
class Java:
    """A usable Java runtime.

    Attributes:
        executable: The `java` program.
        version: Feature release, for instance 17.
        architecture: Architecture that it runs as (`os.arch`): `amd64`, `aarch64`. Not always the machine's own.
        system: Operating system in Java's words (`os.name`): `Linux`, `Mac OS X`.
    """

    executable: Path
    version: int
    architecture: str
    system: str


def find_java(environment: Mapping[str, str] | None = None, probe: Probe | None = None) -> Java:
    """Returns the first Java that is new enough.

    Args:
        environment: Source of JAVA_HOME and PATH; by default the process's own.
        probe: Function that runs a candidate; tests replace it.

    Raises:
        BrickUnavailable: There is none, or all are too old.
    """
    found = [
        java
        for executable in _candidates(os.environ if environment is None else environment)
        if (java := _examine(executable, probe or run_probe)) is not None
    ]
    for java in found:
        if java.version >= JAVA_VERSION_MIN:
            return java
    if found:
        raise BrickUnavailable(f"{found[0].executable} is Java {found[0].version}, which is too old", REMEDY)
    raise BrickUnavailable("no Java was found", REMEDY)


def run_probe(command: list[str]) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=True)
    except (OSError, subprocess.SubprocessError):
        # macOS has a `java` that only reports that there is no Java; it counts as none.
        return None
    return done.stdout + done.stderr


def _candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    home = environment.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield Path(on_path)


def _examine(executable: Path, probe: Probe) -> Java | None:
    printed = probe([str(executable), "-XshowSettings:properties", "-version"])
    if printed is None:
        return None
    properties = dict(re.findall(r"^ +([a-z.]+) = (.*)$", printed, re.MULTILINE))
    version = re.match(r"(?:1\.)?(\d+)", properties.get("java.version", ""))
    if version is None:
        return None
    return Java(
        executable=executable,
        version=int(version.group(1)),
        architecture=properties.get("os.arch", "unknown"),
        system=properties.get("os.name", "unknown"),
    )
