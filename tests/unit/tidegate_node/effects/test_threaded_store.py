"""A blocking store on threads: who waits for a thread, and what may still leave then."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from tidegate_core.rows.store_operations import Delete, Key, Lost, Put, Transaction
from tidegate_node.effects.threaded_store import ThreadedStore
from tidegate_ports.store import NotSent, Store, StoreUnavailable

PATIENCE_S = 30.0
ROW = Put(Key("P", "S"), {"pk": "P", "sk": "S"})
PUT = Transaction("claim", (ROW,), "token", None)


class SlowStore:
    """Answers when the test says so."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.begun, self.may_answer = threading.Event(), threading.Event()

    def transact(self, _: Transaction) -> None:
        self.asked.append("transact")
        self.begun.set()
        assert self.may_answer.wait(PATIENCE_S)

    def write(self, _: Sequence[Put | Delete]) -> tuple[()]:
        self.asked.append("write")
        return ()


@pytest.mark.parametrize("first_is", ["answered", "cancelled"])
async def test_given_rows_that_wait_for_a_thread_then_they_leave_only_if_they_still_may(first_is: str) -> None:
    slow, holds = SlowStore(), True
    with ThreadPoolExecutor(2) as threads:
        store = ThreadedStore(cast(Store, slow), threads, calls_max=1)
        first = asyncio.ensure_future(store.transact(PUT))
        assert await asyncio.to_thread(slow.begun.wait, PATIENCE_S)
        if first_is == "cancelled":
            first.cancel()  # Its thread is still at it.
        rows = asyncio.ensure_future(store.write([ROW], lambda: holds))
        await asyncio.sleep(0)
        assert not rows.done()
        holds = False
        slow.may_answer.set()
        with pytest.raises(NotSent):
            await rows
        assert slow.asked == ["transact"]
        assert await store.write([ROW]) == ()
        assert first.cancelled() == (first_is == "cancelled")


async def test_given_a_host_without_threads_then_that_is_told_and_nothing_is_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What could not be begun kept its place for ever, and each of the last ones' actors waited for one."""
    slow = SlowStore()
    slow.may_answer.set()
    with ThreadPoolExecutor(2) as threads:
        store = ThreadedStore(cast(Store, slow), threads, calls_max=1)
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", no_thread)
            assert await store.transact(PUT) == Lost()
            with pytest.raises(StoreUnavailable, match="new thread"):
                await store.write([ROW])
        assert await asyncio.wait_for(store.write([ROW]), PATIENCE_S) == ()
    assert slow.asked == ["write"], "what was given up does not leave later"


def no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")
