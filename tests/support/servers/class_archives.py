"""Archives of the classes that Kafka's broker loads, which lie in the cache and make each later start cheaper.

`servers.py` calls this before the first broker of a process. DynamoDB Local has no archive: the JVM refuses to write one, because the
manifest of its jar names a folder.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from tidegate_bricks.file_lock import FileLock
from tidegate_bricks.jar_cache import ensure_jars
from tidegate_bricks.java_runtime import find_java
from tidegate_bricks.java_server import ARCHIVES_VARIABLE, QUICK_START, class_archive
from tidegate_bricks.kafka_broker import KafkaBrick
from tidegate_bricks.releases import KAFKA

STOP_S_MAX: Final = 120.0
"""The broker writes the archive at its end: 4 s of CPU."""


def archive_kafkas_classes() -> None:
    """Writes the archive once for each pair of a Java and the broker's jars; does nothing where no folder is named.

    A process that meets another one at it goes on without the archive.

    Raises:
        BrickUnavailable: The broker cannot run here.
        BrickFailed: It did not start.
        OSError: The folder cannot be written.
    """
    named = os.environ.get(ARCHIVES_VARIABLE)
    if not named:
        return
    folder, java = Path(named), find_java()
    archive = class_archive(folder, java, ensure_jars(KAFKA, java=java))
    if archive.exists():
        return
    with FileLock(folder / f"{KAFKA.name}.lock") as lock:
        if lock.acquire(0) and not archive.exists():
            _write(archive)


def _write(archive: Path) -> None:
    for outdated in archive.parent.glob(f"{KAFKA.name}-*.jsa"):
        outdated.unlink()
    with tempfile.TemporaryDirectory(dir=archive.parent) as workspace:
        written = Path(workspace) / archive.name
        broker = KafkaBrick(None, java_options=[*QUICK_START, f"-XX:ArchiveClassesAtExit={written}"])
        with broker:
            broker.stop(STOP_S_MAX)
        # If the broker was killed at the deadline, there is no archive, and a later process tries again.
        if written.exists():
            written.replace(archive)
