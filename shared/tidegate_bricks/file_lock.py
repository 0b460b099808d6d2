"""A lock between processes: a file that at most one of them locks; the kernel frees it when that process dies."""

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

#: Seconds between two attempts of a waiting process; locks are rarely awaited, so this does not matter.
POLL_INTERVAL_S = 0.1


class FileLock:
    """An exclusive `flock` on a file, which is created if missing and kept after the release.

    Child processes that inherit the descriptor share the lock: it is free once all of them have ended.

    Attributes:
        path: The file.
        descriptor: Open descriptor while the lock is held.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None

    @property
    def descriptor(self) -> int:
        assert self._descriptor is not None, f"{self.path} is not locked"
        return self._descriptor

    def acquire(self, timeout_s: float, on_wait: Callable[[], None] = lambda: None) -> bool:
        """Takes the lock, or returns False if another process still holds it after `timeout_s` seconds.

        Args:
            timeout_s: Time to wait; 0 tries once.
            on_wait: Called every `POLL_INTERVAL_S` during the wait; may raise to give up.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            if self._locked_before(time.monotonic() + timeout_s, on_wait):
                return True
        except BaseException:
            self.release()
            raise
        self.release()
        return False

    def release(self) -> None:
        """Releases the lock of this process. Idempotent."""
        if self._descriptor is not None:
            # Closed and not unlocked: unlocking would also release it for the children that inherited it.
            os.close(self._descriptor)
            self._descriptor = None

    def _locked_before(self, deadline: float, on_wait: Callable[[], None]) -> bool:
        while not _try_lock(self.descriptor):
            if time.monotonic() >= deadline:
                return False
            on_wait()
            time.sleep(POLL_INTERVAL_S)
        return True

    def __enter__(self) -> "FileLock":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
