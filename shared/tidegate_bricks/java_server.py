"""Life of one Java server process: ports, data folder, start until it answers, end, pause.

Subclasses add the parts of Kafka and of DynamoDB Local. Not promised: that a chosen port is still free when the
server binds it (such a start is tried again with another port), and anything on Windows.
"""

import hashlib
import os
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tidegate_bricks.download_progress import Progress, ProgressListener, Stage
from tidegate_bricks.errors import BrickFailed, PortTaken
from tidegate_bricks.jar_cache import ensure_jars
from tidegate_bricks.java_runtime import Java, find_java
from tidegate_bricks.local_server import START_TIMEOUT_S, STOP_TIMEOUT_S
from tidegate_bricks.logged_process import LoggedProcess
from tidegate_bricks.readiness import launch
from tidegate_bricks.releases import Release
from tidegate_bricks.server_folder import DataFolder

#: Flags for a small server on a laptop: with the quick compiler only and one collector thread a start takes half the CPU
#: (2.0 instead of 3.6 s for Kafka, measured).
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xshare:auto")
#: Variable with the value of `nice -n` for servers; below 0 they run before processes that only compute. Every row of DynamoDB Local
#: passes several of its threads, and on busy cores each of them waits. So a batch of 25 rows took 326
#: to 670 ms, and with -10 23 to 136 ms (three turns in one run). Only tests set it, where they may.
NICE_VARIABLE = "TIDEGATE_TEST_BRICKS_NICE"
#: Variable that names a folder with archives of loaded classes (`class_archive`). With its archive Kafka's start takes 2.3 instead of
#: 3.7 CPU-s (median of 3, load 5). The archive has 50 MB and takes 5 CPU-s to write. So it pays only for tests, which start dozens of brokers.
ARCHIVES_VARIABLE = "TIDEGATE_TEST_BRICKS_ARCHIVES"
#: Most starts with other ports; each needs another process to take a port within the second after it was chosen.
PORT_CHOICES_MAX = 3


class JavaServer(ABC):
    """One server; a context manager that starts and stops it.

    Attributes:
        release: Release of the server.
    """

    def __init__(
        self,
        release: Release,
        data_dir: Path | None,
        heap_mb: int,
        java_options: Sequence[str],
        listener: ProgressListener,
    ) -> None:
        self.release = release
        self._folder = DataFolder(data_dir, release.title)
        self._options = [f"-Xmx{heap_mb}m", *java_options]
        self._listener = listener
        self._process: LoggedProcess | None = None
        self._answered_once = False
        # One start or stop at a time. A stop first sets `_asked_to_end`, so that a running start releases the lock.
        self._life = threading.RLock()
        self._asked_to_end = threading.Event()

    # Parts that differ between servers.

    @abstractmethod
    def choose_ports(self) -> None:
        """Chooses the ports of the next start; called until a start has succeeded, then never again.

        Raises:
            PortTaken: A port that the caller requires is not free.
        """

    @abstractmethod
    def arguments(self, java: Java, jars: Path) -> list[str]:
        """Prepares the data folder and returns Java's arguments after the general options.

        Raises:
            BrickUnavailable: This machine cannot run the server.
        """

    @abstractmethod
    def answers(self) -> bool:
        """Queries the server as a client would; must return within about a second."""

    @property
    @abstractmethod
    def port(self) -> int:
        """Port for clients, once the ports are chosen."""

    @property
    @abstractmethod
    def endpoint(self) -> str: ...

    # Parts that all servers share.

    @property
    def name(self) -> str:
        return self.release.name

    @property
    def data_dir(self) -> Path:
        """Folder of the server: data, configuration, log."""
        return self._folder.path

    @property
    def log_path(self) -> Path:
        return self.data_dir / f"{self.release.name}.log"

    @property
    def note(self) -> str | None:
        return None

    @property
    def running(self) -> bool:
        process = self._process
        return process is not None and process.running

    @property
    def pid(self) -> int:
        """Process id of the Java process."""
        return self._running_process().pid

    def start(self, timeout_s: float = START_TIMEOUT_S) -> None:
        with self._life:
            if self.running:
                return
            self._asked_to_end.clear()
            self._forget_process()
            java = find_java()
            jars = ensure_jars(self.release, self._report, java=java)
            self._report(Progress(self.release.name, Stage.STARTING))
            self._folder.take()
            try:
                self._start_on_some_port(java, jars, timeout_s)
            except BaseException:
                self.kill()
                raise
            self._answered_once = True
            self._listener(Progress(self.release.name, Stage.READY))

    def stop(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        self._asked_to_end.set()
        with self._life:
            if self._process is not None:
                self._process.terminate()
                self._process.wait(timeout_s)
            self.kill()

    def kill(self) -> None:
        self._asked_to_end.set()
        with self._life:
            if self._process is not None:
                self._process.kill()
            self._forget_process()

    def pause(self) -> None:
        self._running_process().pause()

    def resume(self) -> None:
        self._running_process().resume()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _running_process(self) -> LoggedProcess:
        if self._process is None or not self._process.running:
            raise BrickFailed(f"{self.release.title} is not running", self.log_path)
        return self._process

    def _command(self, java: Java, jars: Path) -> list[str]:
        options = [*self._options, *archived_classes(os.environ, java, jars)]
        return [*_prefix(os.environ), str(java.executable), *options, *self.arguments(java, jars)]

    def _has_answered(self) -> bool:
        self._end_if_asked()
        return self.answers()

    def _report(self, progress: Progress) -> None:
        self._end_if_asked()
        self._listener(progress)

    def _end_if_asked(self) -> None:
        if self._asked_to_end.is_set():
            raise BrickFailed(f"{self.release.title} was stopped while it started")

    def _forget_process(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None
        self._folder.release()

    def _start_on_some_port(self, java: Java, jars: Path, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        for choice in range(1, PORT_CHOICES_MAX + 1):
            # A restarted server keeps its port, because clients know it.
            if not self._answered_once:
                self.choose_ports()
            try:
                self._process = launch(
                    self.release.title,
                    LoggedProcess(self._command(java, jars), self.log_path, inherited=[self._folder.lock_descriptor]),
                    self.port,
                    self._has_answered,
                    deadline,
                )
            except PortTaken:
                if self._answered_once or choice == PORT_CHOICES_MAX:
                    raise
            else:
                return


def _prefix(environment: Mapping[str, str]) -> Sequence[str]:
    """Returns the program that precedes the command and then becomes it."""
    niceness = environment.get(NICE_VARIABLE)
    return ("nice", "-n", niceness) if niceness else ()


def class_archive(folder: Path, java: Java, jars: Path) -> Path:
    """Returns the path in `folder` of the archive of classes that this Java loads from these jars. The archive may not
    exist yet.

    Raises:
        OSError: The Java or the folder of jars does not exist.
    """
    # The JVM ignores an archive of another Java or of other jars, so each pair has its own name.
    program = java.executable.resolve()
    pair = f"{program} {program.stat().st_mtime_ns} {jars} {jars.stat().st_mtime_ns}"
    return folder / f"{jars.name}-{hashlib.sha256(pair.encode()).hexdigest()[:16]}.jsa"


def archived_classes(environment: Mapping[str, str], java: Java, jars: Path) -> Sequence[str]:
    """Returns the option by which the JVM uses an archive of classes, if there is one."""
    folder = environment.get(ARCHIVES_VARIABLE)
    if not folder:
        return ()
    archive = class_archive(Path(folder), java, jars)
    return (f"-XX:SharedArchiveFile={archive}",) if archive.exists() else ()
