"""Folder of a server: given by the user or temporary, and used by one server at a time."""

import shutil
import tempfile
import weakref
from pathlib import Path

from tidegate_bricks.errors import BrickUnavailable
from tidegate_bricks.file_lock import FileLock

#: Seconds. A server killed with its parent frees its folder within milliseconds; a living server does not free it.
FOLDER_TIMEOUT_S = 10.0


class DataFolder:
    """The folder of one server.

    Attributes:
        path: Absolute path; created when the folder is first taken.
    """

    def __init__(self, path: Path | None, title: str) -> None:
        """Stores the path; `take` creates the folder.

        Args:
            path: Folder of the user, or None for a temporary one that is removed with this object.
            title: Name of the server in messages.
        """
        if path is None:
            path = Path(tempfile.mkdtemp(prefix="tidegate-"))
            weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)
        self.path = path.absolute()
        self._title = title
        self._lock = FileLock(self.path / "brick.lock")

    @property
    def lock_descriptor(self) -> int:
        """Descriptor for the server to inherit: the folder stays locked until all processes that hold it have ended."""
        return self._lock.descriptor

    def take(self, timeout_s: float = FOLDER_TIMEOUT_S) -> None:
        """Locks the folder for this server.

        Raises:
            BrickUnavailable: Another server uses it.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        if not self._lock.acquire(timeout_s):
            raise BrickUnavailable(
                f"the data folder {self.path} is in use by another {self._title}",
                "stop that one, or choose another folder",
            )

    def release(self) -> None:
        """Releases the folder. Idempotent."""
        self._lock.release()
