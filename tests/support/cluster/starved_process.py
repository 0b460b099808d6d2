"""A process whose machine gives it hardly any time: stopped for seconds again and again."""

from __future__ import annotations

import os
import signal
import threading
from types import TracebackType
from typing import Final, Self

STOPPED_S: Final = 5.0
RUNS_S: Final = 1.0


class Starved:
    """For a `with` block; the process runs freely behind it."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._starve, name=f"starves-{pid}", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def _starve(self) -> None:
        while not self._end.is_set():
            os.kill(self._pid, signal.SIGSTOP)
            self._end.wait(STOPPED_S)
            os.kill(self._pid, signal.SIGCONT)
            self._end.wait(RUNS_S)
