"""A server's folder: given by the user or temporary, and used by one server at a time."""

import shutil
import tempfile
import weakref
from pathlib import Path

from tidegate_bricks.errors import BrickUnavailable
from tidegate_bricks.file_lock import FileLock

#: A server that was killed with its parent frees its folder within milliseconds; a living one does not. Seconds.
FOLDER_TIMEOUT_S = 10.0


class DataFolder:
    """The folder of one server.

    Attributes:
        path: Absolute; made when the folder is first taken.
    """

    def __init__(self, path: Path | None, title: str) -> None:
        """Takes note of the folder.

        Args:
            path: The user's folder, or None for a temporary one that goes when this object goes.
            title: How messages call the server.
        """
        if path is None:
            path = Path(tempfile.mkdtemp(prefix="tidegate-"))
            weakref.finalize(self, shutil.rmtree, path, ignore_errors=True)
        self.path = path.absolute()
        self._title = title
        self._lock = FileLock(self.path / "brick.lock")

    @property
    def lock_descriptor(self) -> int:
        """What the server inherits: the folder is ours until all that hold this are gone."""
        return self._lock.descriptor

    def take(self, timeout_s: float = FOLDER_TIMEOUT_S) -> None:
        """Makes the folder ours alone.

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
        """Ends our hold. May be called again."""
        self._lock.release()
