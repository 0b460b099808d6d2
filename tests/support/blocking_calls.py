"""What is made for a loop, called from threads as if it blocked: so that tests of the blocking kind hold for both."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias, TypeVar

from tidegate_core.rows.store_operations import Delete, Item, Key, Page, Put, RangeRead, RawOutcome, Transaction
from tidegate_ports.store import AsyncStore

T = TypeVar("T")
PATIENCE_S = 60.0

Run: TypeAlias = Callable[[Coroutine[Any, Any, Any]], Any]
"""Has the loop run something, and waits for what comes of it."""


@contextmanager
def a_loop() -> Iterator[Run]:
    """Runs a loop on a thread of its own while it is entered."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="loop")
    thread.start()

    def run(coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, loop).result(PATIENCE_S)

    try:
        yield run
    finally:
        # What was closed on it gets the turns that it needs to end.
        run(asyncio.sleep(0.01))
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


async def called(action: Callable[[], None]) -> None:
    """Calls what has to be called on the loop."""
    action()


class BlockingStore:
    """Implements `tidegate_ports.store.Store` by one of a loop."""

    def __init__(self, run: Run, store: AsyncStore) -> None:
        self._run = run
        self._store = store

    def transact(self, transaction: Transaction) -> RawOutcome:
        outcome: RawOutcome = self._run(self._store.transact(transaction))
        return outcome

    def write(self, actions: Sequence[Put | Delete]) -> Sequence[Put | Delete]:
        left: Sequence[Put | Delete] = self._run(self._store.write(actions))
        return left

    def get(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        found: Mapping[Key, Item] = self._run(self._store.get(keys))
        return found

    def query(self, wanted: RangeRead) -> Page:
        page: Page = self._run(self._store.query(wanted))
        return page
