"""A thread that owns one Kafka client after another: begun once, begun again after a failure, ended once.

Kafka clients crash when several threads use them or when they are torn down by the interpreter's end; so each belongs to
the function that `serve` is, which makes it, uses it and closes it.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Final

from tidegate_ports.bus import Notices

LOOK_EVERY_S: Final = 0.01
"""Whether a thread that is to end has ended; a hand-over takes some hundred milliseconds at least."""


class NotTaken(Exception):
    """What was read could not be handed on, a bug: to skip it would lose it, so its client ends and the next one reads it again."""


class Life:
    """One client's: set on the loop, read on the client's thread. A client's end must not depend on when the loop heard of its birth.

    Attributes:
        bug: Since when nothing that this client read is handed on.
    """

    def __init__(self) -> None:
        self.bug: Exception | None = None

    def check(self) -> None:
        """On the client's thread, each turn.

        Raises:
            NotTaken: The client is to end, so that its successor reads again what was not taken.
        """
        if self.bug is not None:
            raise NotTaken(repr(self.bug)) from self.bug


class ClientThread:
    """Runs `serve` until `stopping`; `serve` is to return soon after that and is called again when it raises."""

    def __init__(self, name: str, serve: Callable[[], None], notices: Notices, restart_wait_ms: int) -> None:
        self._name = name
        self._serve = serve
        self._notices = notices
        self._restart_wait_s = restart_wait_ms / 1000
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    def pause(self, seconds: float) -> None:
        """For `serve`: waits, but not beyond the order to stop."""
        self._stop.wait(seconds)

    def start(self) -> None:
        """Idempotent while it runs. After a `stop` that said False it does nothing: ask for the end until it has come."""
        if self._thread is not None and self._thread.is_alive():
            return
        self._stop = threading.Event()
        # A daemon: a client that hangs in its own close must not keep the process from ending.
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    async def stop(self, patience_ms: int) -> bool:
        """Asks it to end and waits; False when it did not end in time. Idempotent."""
        self._stop.set()
        thread = self._thread
        if thread is None:
            return True
        # Not by another thread that joins it: the host may have none left, and whoever stops would leave what it holds undrained.
        give_up = time.monotonic() + patience_ms / 1000
        while thread.is_alive() and time.monotonic() < give_up:  # noqa: ASYNC110 - nobody tells of a thread's end
            await asyncio.sleep(LOOK_EVERY_S)
        if thread.is_alive():
            self._notices("kafka_thread_stuck", thread=self._name, patience_ms=patience_ms)
            return False
        self._thread = None
        await asyncio.sleep(0)  # What it has posted to the loop as it ended goes before.
        return True

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._serve()
            except Exception as failure:  # noqa: BLE001 - whatever it was, the client is gone and a new one is made
                self._notices("kafka_client_failed", thread=self._name, reason=f"{type(failure).__name__}: {failure}")
                self._stop.wait(self._restart_wait_s)
