"""Work in a thread of its own beside a block of a test."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import Self


class Background(ABC):
    """Works from the begin of its `with` block to its end; what does it says so in `run`.

    Attributes:
        stopping: Set when the block is left; `run` then returns soon.
    """

    def __init__(self, name: str) -> None:
        self.stopping = threading.Event()
        self._thread = threading.Thread(target=self.run, name=name)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stopping.set()
        self._thread.join()
        self.close()

    @abstractmethod
    def run(self) -> None:
        """Works until `stopping`; called in the thread."""

    def close(self) -> None:  # noqa: B027 - many have nothing to close
        """Called once the thread has ended."""


class Repeatedly(Background):
    """Does something again and again."""

    def __init__(self, act: Callable[[], object], every_s: float) -> None:
        super().__init__("repeatedly")
        self._act = act
        self._every_s = every_s

    def run(self) -> None:
        while not self.stopping.wait(self._every_s):
            self._act()
