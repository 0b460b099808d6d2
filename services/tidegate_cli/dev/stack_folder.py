"""The data folder of a local stack. One `tidegate dev` uses it at a time; it holds the secret of the start gate."""

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
    """Paths of a stack's data, and the lock on them.

    Attributes:
        path: Absolute path of the folder.
        ephemeral: Whether the folder is removed when it is released.
        earlier_api_port: API port of the previous stack, None if there was none. Programs that outlive a stack still report to it.
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
        """Folder of the tables. None keeps them in memory, which is several times faster, because nothing is kept."""
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
        """Locks the folder for this process and creates its content.

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
                "stop it with Ctrl-C, choose another folder with --data-dir, or use --ephemeral",
            )
        self.earlier_api_port = self._holder("api_port")
        self.remember(api_port=None)
        try:
            self.log("any").parent.mkdir(mode=FOLDER_MODE, exist_ok=True)
            self._make_secret()
        except OSError as error:
            raise self._unusable(error) from error

    def release(self) -> None:
        """Releases the lock, and removes an ephemeral folder. May be called again."""
        self._lock.release()
        if self.ephemeral:
            shutil.rmtree(self.path, ignore_errors=True)

    def remember(self, api_port: int | None) -> None:
        """Stores process id and API port for the next user of the folder. Raises StackFailed."""
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
        """Returns a field that the last user of the folder stored."""
        try:
            found = json.loads(self._holder_file.read_text(encoding="utf-8"))[field]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return found if isinstance(found, int) else None

    def _make_secret(self) -> None:
        """Creates the secret if there is none. It is kept over restarts: a program that outlives a stack holds a token signed with it."""
        if self.gate_secret.exists():
            return
        # Written under another name first, because a crash would otherwise leave an empty secret.
        written = self.gate_secret.with_name(f".gate.secret.{os.getpid()}")
        handle = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, SECRET_MODE)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(SECRET_BYTES) + "\n")
        written.replace(self.gate_secret)
