"""The folder of a local stack: used by one `tidegate dev` at a time, with the secret of its start gate inside."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
from pathlib import Path

from tidegate_bricks.file_lock import FileLock
from tidegate_cli.dev.errors import StackFailed

FOLDER_MODE = 0o700
SECRET_MODE = 0o600
SECRET_BYTES = 32


class StackFolder:
    """Paths of a stack's data, and the lock that makes them ours.

    Attributes:
        path: Absolute.
        ephemeral: Whether the folder goes when it is released.
        earlier_api_port: Where the API of the stack before this one was, if there was one: programs that outlive a
            stack report there.
    """

    def __init__(self, path: Path | None) -> None:
        self.ephemeral = path is None
        self.path = Path(tempfile.mkdtemp(prefix="tidegate-dev-")) if path is None else path.expanduser().absolute()
        self._lock = FileLock(self.path / "dev.lock")
        self.earlier_api_port: int | None = None

    @property
    def kafka(self) -> Path:
        return self.path / "kafka"

    @property
    def dynamodb(self) -> Path | None:
        """None keeps the tables in memory, which is several times quicker, where nothing is to be kept."""
        return None if self.ephemeral else self.path / "dynamodb"

    @property
    def runs(self) -> Path:
        return self.path / "runs"

    @property
    def gate_secret(self) -> Path:
        return self.path / "gate.secret"

    def log(self, component: str) -> Path:
        return self.path / "log" / f"{component}.log"

    def take(self) -> None:
        """Makes the folder ours alone and completes it.

        Raises:
            StackFailed: Another `tidegate dev` uses it, or it cannot be written.
        """
        try:
            self.path.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            taken = self._lock.acquire(timeout_s=0)
        except OSError as error:
            raise self._unusable(error) from error
        if not taken:
            raise StackFailed(
                f"another `tidegate dev` (process {self._holder('pid')}) uses the data folder {self.path}",
                "stop that one with Ctrl-C, or choose another folder with --data-dir, or use --ephemeral",
            )
        self.earlier_api_port = self._holder("api_port")
        self.remember(api_port=None)
        try:
            self.log("any").parent.mkdir(mode=FOLDER_MODE, exist_ok=True)
            self._make_secret()
        except OSError as error:
            raise self._unusable(error) from error

    def release(self) -> None:
        """Ends our hold, and removes an ephemeral folder. May be called again."""
        self._lock.release()
        if self.ephemeral:
            shutil.rmtree(self.path, ignore_errors=True)

    def remember(self, api_port: int | None) -> None:
        """Notes who uses the folder, for the next one that comes. Raises StackFailed."""
        note = {"pid": os.getpid(), "api_port": api_port or self.earlier_api_port}
        try:
            self._holder_file.write_text(json.dumps(note), encoding="utf-8")
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> StackFailed:
        return StackFailed(f"the data folder {self.path} cannot be used: {error}", "choose another with --data-dir")

    @property
    def _holder_file(self) -> Path:
        return self.path / "dev.holder"

    def _holder(self, field: str) -> int | None:
        """Returns what the last user of the folder noted."""
        try:
            found = json.loads(self._holder_file.read_text(encoding="utf-8"))[field]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found if isinstance(found, int) else None

    def _make_secret(self) -> None:
        """Kept over restarts: a program that outlives one still holds a token that was made with it."""
        if self.gate_secret.exists():
            return
        # Under another name first, so that a crash in between leaves no empty secret.
        written = self.gate_secret.with_name(f".gate.secret.{os.getpid()}")
        handle = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, SECRET_MODE)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(SECRET_BYTES) + "\n")
        written.replace(self.gate_secret)
