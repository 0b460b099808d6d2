"""Thread that owns one Kafka client at a time. It starts a new client after a failure.

Kafka clients crash when several threads use them, or when the interpreter destroys them at exit. So the function
`serve` creates, uses and closes each client on this thread.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Final

from tidegate_ports.bus import Notices

LOOK_EVERY_S: Final = 0.01
"""Interval of the check whether a stopping thread has ended. A hand-over takes some hundred milliseconds at least."""


class NotTaken(Exception):
    """Records could not be handed on because of a bug. Their client ends, and the next client reads them again, so none
    is lost.
    """


class Life:
    """State of one client, set on the loop and read on the client's thread.

    A client can end before the loop has learned that it started; so the thread reads this object, not the loop's state.

    Attributes:
        bug: First failure of a hand-over; from then on, no record of this client is handed on.
    """

    def __init__(self) -> None:
        self.bug: Exception | None = None

    def check(self) -> None:
        """Called by the client's thread in each turn.

        Raises:
            NotTaken: A hand-over failed. The client must end so that its successor reads the records again.
        """
        if self.bug is not None:
            raise NotTaken(repr(self.bug)) from self.bug


class ClientThread:
    """Runs `serve` until `stopping`. `serve` must return soon after a stop; if it raises, it is called again."""

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
        """Waits inside `serve`; returns early on a stop."""
        self._stop.wait(seconds)

    def start(self) -> None:
        """Starts the thread. Does nothing while it runs, also after a `stop` that returned False: repeat `stop`
        first.
        """
        if self._thread is not None and self._thread.is_alive():
            return
        self._stop = threading.Event()
        # A daemon thread: a client that hangs in its own close must not keep the process alive.
        self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
        self._thread.start()

    async def stop(self, patience_ms: int) -> bool:
        """Tells the thread to end and waits; returns False when it did not end in time. Idempotent."""
        self._stop.set()
        thread = self._thread
        if thread is None:
            return True
        # Poll instead of joining from another thread. The host may have no thread left, and then the drain would be
        # skipped.
        give_up = time.monotonic() + patience_ms / 1000
        while thread.is_alive() and time.monotonic() < give_up:  # noqa: ASYNC110 - a thread's end raises no event
            await asyncio.sleep(LOOK_EVERY_S)
        if thread.is_alive():
            self._notices("kafka_thread_stuck", thread=self._name, patience_ms=patience_ms)
            return False
        self._thread = None
        await asyncio.sleep(0)  # Callbacks that the ending thread posted to the loop run first.
        return True

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._serve()
            except Exception as failure:  # noqa: BLE001 - after any failure the client is closed, and a new one starts
                self._notices("kafka_client_failed", thread=self._name, reason=f"{type(failure).__name__}: {failure}")
                self._stop.wait(self._restart_wait_s)
