"""Fetches published modules with the Ivy inside PySpark, so that no other build tool is needed.

Ivy queries its own default repository. A settings file named in `TIDEGATE_IVY_SETTINGS` selects another one, for
instance a company's mirror. Proxies are set as for every Java program (`JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=…`).
"""

import importlib.util
import os
import re
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from xml.sax.saxutils import quoteattr

from tidegate_bricks.download_progress import Progress, ProgressListener, Stage
from tidegate_bricks.errors import BrickUnavailable
from tidegate_bricks.guarded_process import GuardedProcess
from tidegate_bricks.java_runtime import Java
from tidegate_bricks.releases import Release

SETTINGS_VARIABLE = "TIDEGATE_IVY_SETTINGS"
#: Seconds. A cold fetch took 36 s (Kafka) and 77 s (DynamoDB Local) on a fast line; a line ten times slower is allowed for.
FETCH_TIMEOUT_S = 900.0
#: Most complaints of Ivy that an error shows: the first ones name the cause, an unreachable host or a missing file.
COMPLAINTS_MAX = 2

#: Includes the classifier, which distinguishes a module's variants; without it, two variants would overwrite each other.
FILE_PATTERN = "[artifact]-[revision](-[classifier]).[ext]"


def find_ivy() -> Path:
    """Returns Ivy's jar inside the installed PySpark.

    Raises:
        BrickUnavailable: PySpark, or the jars in it, are not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    for location in (spec.submodule_search_locations or []) if spec else []:
        for jar in sorted(Path(location, "jars").glob("ivy-*.jar")):
            return jar
    raise BrickUnavailable(
        "PySpark is not installed, and the local Kafka and DynamoDB are fetched with the Ivy inside it",
        "pip install 'tidegate[local]'",
    )


def retrieve(release: Release, java: Java, ivy: Path, workspace: Path, listener: ProgressListener) -> Path:
    """Downloads a release with all its dependencies.

    Args:
        release: Release to fetch.
        java: Java that runs Ivy.
        ivy: Jar of Ivy.
        workspace: Empty folder for this download only; Ivy's own cache and home are in it.
        listener: Receives the progress of each file.

    Returns:
        The folder in `workspace` with the files.

    Raises:
        BrickUnavailable: Some files could not be downloaded.
    """
    files = workspace / "files"
    for folder in (files, workspace / "home", workspace / "cache"):
        folder.mkdir()
    description = workspace / "ivy.xml"
    description.write_text(describe(release), encoding="utf-8")
    reading, writing = os.pipe()
    process = GuardedProcess(_command(java, ivy, workspace, description, files, os.environ), output=writing)
    os.close(writing)
    # Ivy has no time-out for a connection that stays open and silent.
    watchdog = threading.Timer(FETCH_TIMEOUT_S, process.kill)
    watchdog.start()
    try:
        with open(reading, encoding="utf-8", errors="replace") as lines:  # noqa: PTH123 - a descriptor, not a path
            report = IvyReport(Progress(release.name, Stage.RESOLVING, files_total=len(release.manifest().digests)))
            for line in lines:
                if report.read(line):
                    listener(report.progress)
        status = process.wait()
    finally:
        watchdog.cancel()
        process.close()
    if status != 0:
        raise BrickUnavailable(
            f"{release.title} could not be downloaded: {report.complaint()}",
            "check the network (behind a proxy: JAVA_TOOL_OPTIONS=-Dhttps.proxyHost=… -Dhttps.proxyPort=…; "
            f"with a mirror: {SETTINGS_VARIABLE}=<ivysettings.xml>), or name endpoints that exist already",
        )
    return files


class IvyReport:
    """Parses Ivy's output during a download.

    Attributes:
        progress: Progress after the last line that changed it.
    """

    def __init__(self, start: Progress) -> None:
        self.progress = start
        self._complaints: list[str] = []

    def read(self, line: str) -> bool:
        """Parses one line; returns whether it changed the progress."""
        if re.match(r"\s+found ", line):
            self.progress = replace(self.progress, files_done=self.progress.files_done + 1)
        elif line.startswith("downloading ") and self.progress.stage is Stage.RESOLVING:
            self.progress = replace(self.progress, stage=Stage.DOWNLOADING, files_done=0)
        elif (size := re.search(r"\((\d+)kB\)$", line)) and line.startswith("."):
            self.progress = replace(self.progress, kilobytes_done=self.progress.kilobytes_done + int(size.group(1)))
        elif "[SUCCESSFUL ]" in line:
            self.progress = replace(self.progress, files_done=self.progress.files_done + 1)
        else:
            self._listen_for_complaint(line.strip())
            return False
        return True

    def complaint(self) -> str:
        return ", ".join(self._complaints) or "Ivy ended without saying why"

    def _listen_for_complaint(self, line: str) -> None:
        complains = re.search(r"not found|FAILED|ERROR|[a-z]Exception|refused|timed out", line)
        if complains and len(self._complaints) < COMPLAINTS_MAX:
            self._complaints.append(line.strip(": "))


def describe(release: Release) -> str:
    """Returns the release as an Ivy file: its modules with their runtime dependencies."""
    dependencies = "".join(
        f"<dependency org={quoteattr(module.organisation)} name={quoteattr(module.name)} "
        f'rev={quoteattr(module.revision)} conf="default->default"/>'
        for module in release.modules
    )
    return (
        '<ivy-module version="2.0">'
        f'<info organisation="tidegate" module={quoteattr(release.name)}/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies>"
        "</ivy-module>"
    )


def _command(
    java: Java, ivy: Path, workspace: Path, description: Path, files: Path, environment: Mapping[str, str]
) -> list[str]:
    settings = environment.get(SETTINGS_VARIABLE)
    return [
        str(java.executable),
        # A separate home: a local Maven repository that holds a module's description without its jar makes Ivy fail.
        f"-Duser.home={workspace / 'home'}",
        "-jar",
        str(ivy),
        *(["-settings", settings] if settings else []),
        "-cache",
        str(workspace / "cache"),
        "-ivy",
        str(description),
        "-confs",
        "default",
        "-retrieve",
        f"{files}/{FILE_PATTERN}",
    ]
