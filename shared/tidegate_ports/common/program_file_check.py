"""Checks whether a program's file can be run. Called by an owner before it accepts a schedule, and by the API's dry
run.

This module is no port; it stands here because both must apply the same check. Otherwise a dry run would promise what the apply then refuses. The API reads logs in
the same way, on its own daemon threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final, Literal, TypeVar

T = TypeVar("T")

LOOK_S_MAX: Final = 2.0
LOOKS_MAX: Final = 16
"""Most checks at a time; further ones wait. So at most this many threads hang on a file system that does not answer. If
all hang, every check fails until one of them returns."""


class FileSystemSilent(Exception):
    """The file system gave no answer, or no thread is free to ask it: it is unknown whether the file exists."""


class FileLooks:
    """Checks files on daemon threads. A mount that hangs delays its caller for `LOOK_S_MAX`, but neither the users of a
    shared thread pool nor the end of the process.

    Many concurrent checks do not mean that the file system is silent: they take turns in order, however long that
    takes. Only checks that exceed their time-out count as silent.
    """

    def __init__(self, patience_s: float = LOOK_S_MAX) -> None:
        self._patience_s = patience_s
        self._room = asyncio.Semaphore(LOOKS_MAX)
        self._silent = 0

    async def problem_with(self, file: str, who: str) -> str | None:
        """Returns the problem with a program's file as this process sees it, or None.

        Args:
            file: Path as written in the schedule.
            who: Name of this process in the answer, such as `the node that applied the schedule`.

        Raises:
            FileSystemSilent: See `of`.
        """

        def look() -> str | None:
            try:
                return problem_with(file, who)
            except Exception as error:  # noqa: BLE001 - the caller needs an answer
                return f"{file} cannot be looked at: {error}"

        return await self.of(file, who, look)

    async def of(self, file: str, who: str, look: Callable[[], T]) -> T:
        """Returns the result of a check, or raises its exception.

        Args:
            file: Path being checked, for messages only.
            who: Name of this process, as for `problem_with`.
            look: The check; it blocks as long as the file system does.

        Raises:
            FileSystemSilent: No answer in time, or all threads hang without an answer.
        """
        silent = FileSystemSilent(f"{file} cannot be looked at: its file system gave no answer to {who}")
        if not await self._has_room():
            raise silent
        try:
            return await asyncio.wait_for(self._seen(look), self._patience_s)
        except TimeoutError:
            raise silent from None

    async def _has_room(self) -> bool:
        """Waits for a free thread; returns False if all threads are silent."""
        turn = asyncio.create_task(self._room.acquire())
        try:
            while not turn.done() and self._silent < LOOKS_MAX:
                await asyncio.wait({turn}, timeout=self._patience_s)
        except asyncio.CancelledError:
            self._leave(turn)
            raise
        if self._silent < LOOKS_MAX:
            return True
        self._leave(turn)
        return False

    def _leave(self, turn: asyncio.Task[Literal[True]]) -> None:
        if turn.done():
            self._room.release()
        else:
            turn.cancel()

    async def _seen(self, look: Callable[[], T]) -> T:
        """Runs the check on a thread. The slot is freed when the thread returns, even if the caller has given up."""
        loop = asyncio.get_running_loop()
        seen: asyncio.Future[T] = loop.create_future()

        def come_back(tell: Callable[[], None]) -> None:
            self._room.release()
            if seen.done():
                self._silent -= 1
            else:
                tell()

        def go() -> None:
            tell: Callable[[], None]
            try:
                tell = partial(seen.set_result, look())
            except Exception as error:  # noqa: BLE001 - passed on to the caller
                tell = partial(seen.set_exception, error)
            with contextlib.suppress(RuntimeError):  # The loop has ended since.
                loop.call_soon_threadsafe(come_back, tell)

        try:
            threading.Thread(target=go, name="tidegate-look", daemon=True).start()
        except RuntimeError as none_left:
            self._room.release()
            raise FileSystemSilent(f"no file can be looked at: {none_left}") from none_left
        try:
            return await seen
        except asyncio.CancelledError:
            if seen.cancelled():  # Otherwise the answer came at the moment of the time-out.
                self._silent += 1
            raise


def problem_with(file: str, who: str) -> str | None:
    """Checks the file at once; blocks as long as the file system does."""
    path = Path(file)
    if not path.is_absolute():
        return f"{file} is not an absolute path"
    try:
        if not path.is_file():
            return f"{file} does not exist on {who}, or is no file"
    except OSError as failure:
        return f"{file} cannot be looked at: {failure.strerror}"
    return None if os.access(path, os.R_OK) else f"{file} may not be read by {who}"
