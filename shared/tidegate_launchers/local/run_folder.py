"""The folder of one attempt, `<data_dir>/runs/<run id>/a<attempt>/`: what supervisor and launchers tell each other.

`lock` is held by the one supervisor while it lives · `supervisor.json` is written before the program's first
instruction, so that a program without a record cannot exist · `exit.json` is the program's end as the supervisor saw it ·
`cancel.json` is a request that outlives the node that made it, and `told` says that the program has heard of it ·
`context.json`, `stdout.log`, `stderr.log` are the program's · `work/` is its current folder, `scratch/` holds Spark's
spill files and goes with the group.

Little beside the standard library: the supervisor imports it. Everything is readable by the node's user alone.
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
"""What may become the name of a folder: no separators, no leading dot."""

TAIL_BYTES = 64 * 1024
"""How much of a log is searched for the wrapper's last line, and for what a program said last: an exception of Java stands before hundreds of
frames."""

_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class Record:
    """`supervisor.json`: which process is the program. Its pid is also its process group and its session."""

    pid: int
    started: str
    supervisor_pid: int
    supervisor_started: str
    host: str
    boot_id: str


@dataclass(frozen=True, slots=True)
class Exit:
    """`exit.json`: exit code, or the signal that ended the program; `at` in epoch milliseconds.

    `cpu_ms` is the processor time of the program and of those of its children that it waited for.
    """

    code: int | None
    signal: int | None
    at: int
    cpu_ms: int


_Document = TypeVar("_Document", Record, Exit)


class RunFolder:
    """Paths and records of one attempt. What cannot be read raises OSError: the disk damaged it, somebody edited it, or it is of another
    release. It may be mended, so whoever asks is to ask again.
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
        """Returns the attempt's folder, which need not exist.

        Raises:
            ValueError: The run id cannot name a folder.
        """
        if not RUN_ID.fullmatch(run_id) or attempt < 1:
            raise ValueError(f"run {run_id!r} attempt {attempt}: cannot name a folder")
        return cls(data_dir / "runs" / run_id / f"a{attempt}")

    def make(self) -> None:
        """Makes the folders, the run's and those above for this user only."""
        self.path.parent.parent.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        for folder in (self.path.parent, self.path, self.work, self.scratch):
            folder.mkdir(mode=FOLDER_MODE, exist_ok=True)

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other nodes of this host out of the block, for milliseconds. The lock is on the folder itself: a full disk does not matter.

        Without a folder there is nothing to keep anybody from, and the block runs all the same.
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
        """Returns when a cancel was first asked for, in epoch milliseconds."""
        document = self._read("cancel.json")
        at = document.get("at") if document else None
        return at if isinstance(at, int) else None

    def write_cancel(self, at: int) -> None:
        self.write_json("cancel.json", {"at": at})

    def write_json(self, name: str, document: Mapping[str, object]) -> None:
        """Writes a file so that readers see all of it or none, also after a power failure."""
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
        """Returns the wrapper's last line from the logs without its prefix, or nothing.

        Under spark-submit the JVM writes the driver's stderr to stdout, so both are searched.
        """
        for log in (self.stderr, self.stdout):
            for line in reversed(_tail(log).splitlines()):
                if line.startswith("tidegate: "):
                    return keep_ends(line.removeprefix("tidegate: "))
        return ""

    def last_lines(self) -> str:
        """Returns the end of the program's error output; of one that has written none that of its output, where spark-submit puts the
        driver's errors. At most 1 KiB.
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
        except ValueError as error:  # Written whole or not at all: the disk damaged it, or somebody edited it.
            raise OSError(errno.EIO, f"{self.path / name} is damaged: {error}") from error
        if not isinstance(document, dict):
            raise OSError(errno.EIO, f"{self.path / name} is damaged: it is no object")
        return document


def _tail(path: Path) -> str:
    try:
        # Of a FIFO, which a program may have put there, this would else wait for somebody who writes; and it cannot be sought in.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            begin = max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES)
            file.seek(begin)
            text = file.read(TAIL_BYTES).decode("utf-8", "replace")
            # Of a line that begins before, its end is no line.
            return text.partition("\n")[2] or text if begin else text
    except OSError:
        return ""
