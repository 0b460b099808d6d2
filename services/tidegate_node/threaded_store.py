"""A blocking store on threads, as the loop sees it: where a proxy lies on the way, and in tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from tidegate_core.store.values import Delete, Item, Key, Page, Put, RangeRead, RawOutcome, Transaction
from tidegate_ports.store import Store

P = ParamSpec("P")
T = TypeVar("T")


class ThreadedStore:
    """Implements `tidegate_ports.store.AsyncStore`.

    Args:
        store: Thread-safe.
        threads: Pool whose size bounds the calls under way.
    """

    def __init__(self, store: Store, threads: ThreadPoolExecutor) -> None:
        self._store = store
        self._threads = threads

    async def transact(self, transaction: Transaction) -> RawOutcome:
        return await self._on_thread(self._store.transact, transaction)

    async def write(self, actions: Sequence[Put | Delete]) -> Sequence[Put | Delete]:
        return await self._on_thread(self._store.write, actions)

    async def get(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        return await self._on_thread(self._store.get, keys)

    async def query(self, wanted: RangeRead) -> Page:
        return await self._on_thread(self._store.query, wanted)

    async def _on_thread(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, lambda: call(*args, **kwargs))
