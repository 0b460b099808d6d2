"""The folder of one attempt, `<data_dir>/runs/<run id>/a<attempt>/`, with which supervisor and launchers communicate.

- `lock`: held by the one supervisor while it lives.
- `supervisor.json`: written before the program's first instruction, so a program without a record cannot exist.
- `exit.json`: the program's end as the supervisor saw it.
- `cancel.json`: a cancel request, which outlives the node that made it. `told`: the program has received SIGTERM.
- `context.json`, `stdout.log`, `stderr.log`: files of the program.
- `work/`: its current folder. `scratch/`: Spark's spill files, removed after the program's end.

The module needs little more than the standard library, because the supervisor imports it. Only the node's user can read
the files.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, Self, TypeVar, get_type_hints

from tidegate_ports.common.shortened_text import keep_ends, last_lines

FOLDER_MODE = 0o700
FILE_MODE = 0o600
RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
"""Permitted folder names: no separators, no leading dot."""

TAIL_BYTES = 64 * 1024
"""Part of a log that is searched for the wrapper's last line and the program's last words: a Java exception precedes
hundreds of frames."""

_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Record:
    """`supervisor.json`: identity of the program's process. Its pid is also its process group and its session."""

    pid: int
    started: str
    supervisor_pid: int
    supervisor_started: str
    host: str
    boot_id: str


@dataclass(frozen=True, slots=True)
class Exit:
    """`exit.json`: exit code, or the signal that ended the program; `at` in epoch milliseconds.

    `cpu_ms` is the processor time of the program and of those children that it waited for.
    """

    code: int | None
    signal: int | None
    at: int
    cpu_ms: int


_Document = TypeVar("_Document", Record, Exit)


class RunFolder:
    """Paths and records of one attempt.

    An unreadable file raises OSError: a damaged disk, an edited file, or another release. It may be repaired, so
    callers ask again.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = path / "lock"
        self.told = path / "told"
        self.context = path / "context.json"
        self.stdout = path / "stdout.log"
        self.stderr = path / "stderr.log"
        self.work = path / "work"
        self.scratch = path / "scratch"

    @classmethod
    def within(cls, data_dir: Path, run_id: str, attempt: int) -> Self:
        """Returns the attempt's folder, which may not exist.

        Raises:
            ValueError: The run id cannot name a folder.
        """
        if not RUN_ID.fullmatch(run_id) or attempt < 1:
            raise ValueError(f"run {run_id!r} attempt {attempt}: cannot name a folder")
        return cls(data_dir / "runs" / run_id / f"a{attempt}")

    def make(self) -> None:
        """Creates the folders, all for this user only."""
        self.path.parent.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        for folder in (self.path.parent, self.path, self.work, self.scratch):
            folder.mkdir(mode=FOLDER_MODE, exist_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Excludes other nodes of this host from the block, for milliseconds. The lock is on the folder itself, so a
        full disk does not matter.

        Without a folder the block runs without a lock: there is nothing to protect.
        """
        try:
            folder = os.open(self.path, os.O_RDONLY)
        except FileNotFoundError:
            yield
            return
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            yield
        finally:
            os.close(folder)

    def record(self) -> Record | None:
        return self._whole(Record, "supervisor.json")

    def write_record(self, record: Record) -> None:
        self.write_json("supervisor.json", asdict(record))

    def exit(self) -> Exit | None:
        return self._whole(Exit, "exit.json")

    def write_exit(self, ended: Exit) -> None:
        self.write_json("exit.json", asdict(ended))

    def cancelled_at(self) -> int | None:
        """Returns the time of the first cancel request in epoch milliseconds, or None."""
        document = self._read("cancel.json")
        at = document.get("at") if document else None
        return at if isinstance(at, int) else None

    def write_cancel(self, at: int) -> None:
        self.write_json("cancel.json", {"at": at})

    def write_json(self, name: str, document: Mapping[str, object]) -> None:
        """Writes a file so that readers see all of it or none, even after a power failure."""
        text = json.dumps(dict(document), indent=1)
        temporary = self.path / f".{name}.{os.urandom(4).hex()}"
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(self.path / name)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        folder = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def last_words(self) -> str:
        """Returns the wrapper's last line from the logs without its prefix, or an empty text.

        Under spark-submit the JVM writes the driver's stderr to stdout, so both logs are searched.
        """
        for log in (self.stderr, self.stdout):
            for line in reversed(_tail(log).splitlines()):
                if line.startswith("tidegate: "):
                    return keep_ends(line.removeprefix("tidegate: "))
        return ""

    def last_lines(self) -> str:
        """Returns the end of the program's error output, at most 1 KiB. Without error output, returns the end of the
        output, where spark-submit writes the driver's errors.
        """
        return last_lines(_tail(self.stderr)) or last_lines(_tail(self.stdout))

    def _whole(self, kind: type[_Document], name: str) -> _Document | None:
        document = self._read(name)
        if document is None:
            return None
        wanted = get_type_hints(kind)
        if wrong := [field for field, hint in wanted.items() if not isinstance(document.get(field, _MISSING), hint)]:
            raise OSError(errno.EIO, f"{self.path / name} is damaged, or of another release: {', '.join(wrong)}")
        return kind(**{field: document[field] for field in wanted})

    def _read(self, name: str) -> Mapping[str, Any] | None:
        try:
            document = json.loads((self.path / name).read_text(encoding="utf-8"))
        except (FileNotFoundError, NotADirectoryError):
            return None
        except ValueError as error:  # Files are written as a whole: the disk damaged it, or it was edited.
            raise OSError(errno.EIO, f"{self.path / name} is damaged: {error}") from error
        if not isinstance(document, dict):
            raise OSError(errno.EIO, f"{self.path / name} is damaged: it is no object")
        return document


def _tail(path: Path) -> str:
    try:
        # A program may have put a FIFO there. Opened normally, it would block until a writer comes; and it cannot seek.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            begin = max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES)
            file.seek(begin)
            text = file.read(TAIL_BYTES).decode("utf-8", "replace")
            # The first line may be cut, so it is dropped.
            return text.partition("\n")[2] or text if begin else text
    except OSError:
        return ""
