"""Whether a program's file can be run: asked by an owner before it accepts a schedule, and by the API's dry run of that.

No port, but both judge by it: a dry run that looked less closely would promise what the apply then refuses. The API reads logs in the same
way, from threads that nobody else waits for.
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
"""At once; who comes besides waits for one to come back. So many threads may a file system keep that does not answer; then nobody
looks until one has come back."""


class FileSystemSilent(Exception):
    """The file may be there or not: whoever would know gives no answer, or there is nobody to ask."""


class FileLooks:
    """Looks at files from daemon threads: a mount that hangs holds up whose turn it is for `LOOK_S_MAX`, and neither a pool of threads,
    from which others would wait for theirs, nor the end of the process.

    Many looks at once say nothing of the file system: they take turns, in their order and however long that takes. Only those that are out
    of patience do.
    """

    def __init__(self, patience_s: float = LOOK_S_MAX) -> None:
        self._patience_s = patience_s
        self._room = asyncio.Semaphore(LOOKS_MAX)
        self._silent = 0

    async def problem_with(self, file: str, who: str) -> str | None:
        """Returns what is wrong with a program's file as this process sees it, or None.

        Args:
            file: As the schedule says it.
            who: Names this process in the answer, such as `the node that applied the schedule`.

        Raises:
            FileSystemSilent: See `of`.
        """

        def look() -> str | None:
            try:
                return problem_with(file, who)
            except Exception as error:  # noqa: BLE001 - whatever it is, somebody waits for an answer
                return f"{file} cannot be looked at: {error}"

        return await self.of(file, who, look)

    async def of(self, file: str, who: str, look: Callable[[], T]) -> T:
        """Returns what a look finds, and raises what it raises.

        Args:
            file: What is looked at; for words alone.
            who: As of `problem_with`.
            look: Blocks for as long as the file system likes.

        Raises:
            FileSystemSilent: No answer in time, or none to all who look, one of whom would have to come back first.
        """
        silent = FileSystemSilent(f"{file} cannot be looked at: its file system gave no answer to {who}")
        if not await self._has_room():
            raise silent
        try:
            return await asyncio.wait_for(self._seen(look), self._patience_s)
        except TimeoutError:
            raise silent from None

    async def _has_room(self) -> bool:
        """Waits for its turn; False once all who look are silent: nobody comes back then."""
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
        """Has a thread look, and gives its room back when it returns, whoever still waits for it."""
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
            except Exception as error:  # noqa: BLE001 - whatever it is, who waits is told
                tell = partial(seen.set_exception, error)
            with contextlib.suppress(RuntimeError):  # The loop has ended meanwhile.
                loop.call_soon_threadsafe(come_back, tell)

        try:
            threading.Thread(target=go, name="tidegate-look", daemon=True).start()
        except RuntimeError as none_left:
            self._room.release()
            raise FileSystemSilent(f"no file can be looked at: {none_left}") from none_left
        try:
            return await seen
        except asyncio.CancelledError:
            if seen.cancelled():  # Else it was told in the very moment the patience ended.
                self._silent += 1
            raise


def problem_with(file: str, who: str) -> str | None:
    """The same at once, blocking, for as long as the file system likes."""
    path = Path(file)
    if not path.is_absolute():
        return f"{file} is not an absolute path"
    try:
        if not path.is_file():
            return f"{file} does not exist on {who}, or is no file"
    except OSError as failure:
        return f"{file} cannot be looked at: {failure.strerror}"
    return None if os.access(path, os.R_OK) else f"{file} may not be read by {who}"
