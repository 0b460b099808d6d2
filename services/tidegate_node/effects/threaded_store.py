"""Runs a blocking store on threads behind the asynchronous port: used with a proxy, and in tests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from tidegate_core.rows.store_operations import Delete, Item, Key, Lost, Page, Put, RangeRead, RawOutcome, Transaction
from tidegate_ports.store import NotSent, Store, StoreUnavailable, always

P = ParamSpec("P")
T = TypeVar("T")


class _NoThread(StoreUnavailable):
    """The host has no more threads at the moment. An existing thread may still have taken the call."""


class ThreadedStore:
    """Implements `tidegate_ports.store.AsyncStore`.

    Args:
        store: Thread-safe store.
        threads: Pool that makes the calls, of at least `calls_max` threads.
        calls_max: Concurrent calls. Further calls wait in order on the loop, because a call that waits for a thread
            counts as sent.
    """

    def __init__(self, store: Store, threads: ThreadPoolExecutor, calls_max: int) -> None:
        self._store = store
        self._threads = threads
        self._room = asyncio.Semaphore(calls_max)

    async def transact(self, transaction: Transaction) -> RawOutcome:
        try:
            return await self._on_thread(always, self._store.transact, transaction)
        except _NoThread:
            return Lost()

    async def write(
        self, actions: Sequence[Put | Delete], may_leave: Callable[[], bool] = always
    ) -> Sequence[Put | Delete]:
        return await self._on_thread(may_leave, self._store.write, actions)

    async def get(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        return await self._on_thread(always, self._store.get, keys)

    async def query(self, wanted: RangeRead) -> Page:
        return await self._on_thread(always, self._store.query, wanted)

    async def _on_thread(
        self, may_leave: Callable[[], bool], call: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        await self._room.acquire()
        if not may_leave():
            self._room.release()
            raise NotSent
        void: list[RuntimeError] = []

        def go() -> T:
            if void:
                raise void[0]
            return call(*args, **kwargs)

        try:
            under_way = asyncio.get_running_loop().run_in_executor(self._threads, go)
        except RuntimeError as none_left:
            # The call stays in the pool's queue, and must not be sent when a thread becomes free.
            void.append(none_left)
            self._room.release()
            raise _NoThread(f"store: {none_left}") from none_left
        under_way.add_done_callback(self._has_ended)
        return await asyncio.shield(under_way)  # A cancelled call keeps its thread and its place until it ends.

    def _has_ended(self, under_way: asyncio.Future[T]) -> None:
        self._room.release()
        if not under_way.cancelled():
            under_way.exception()  # Retrieve the exception, because a cancelled caller does not.
