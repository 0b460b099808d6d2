"""The end of a client's thread; its beginning and its failures are in the tests of whoever has one."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tidegate_kafka.clients.client_thread import ClientThread
from tidegate_ports.bus import Notices

if TYPE_CHECKING:
    from tests.unit.tidegate_kafka.conftest import Notes

PATIENCE_MS = 60_000


def started(serve: Callable[[ClientThread], None], notices: Notices) -> ClientThread:
    """Returns a thread that is in `serve`: one that is told to end as it is born never comes there."""
    begun = threading.Event()

    def begin() -> None:
        begun.set()
        serve(thread)

    thread = ClientThread("test", begin, notices, 10)
    thread.start()
    assert begun.wait(PATIENCE_MS / 1000)
    return thread


async def test_given_a_host_without_threads_then_a_client_is_ended_and_waited_for_all_the_same(
    notes: Notes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found in review: the wait wanted a thread of its own. A node that could not have one ended without giving anything back."""

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    ended = threading.Event()

    def serve(thread: ClientThread) -> None:
        while not thread.stopping:
            thread.pause(PATIENCE_MS / 1000)
        ended.set()

    thread = started(serve, notes)
    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", start)
        assert await thread.stop(PATIENCE_MS)
    assert ended.is_set()


async def test_given_a_client_that_does_not_end_then_that_is_told_and_it_can_be_waited_for_again(notes: Notes) -> None:
    may_end = threading.Event()

    def serve(_: ClientThread) -> None:
        may_end.wait()

    thread = started(serve, notes)
    assert not await thread.stop(20)
    may_end.set()
    assert await thread.stop(PATIENCE_MS)


async def test_given_a_client_that_posts_to_the_loop_as_it_ends_then_that_is_done_once_its_end_is_known(
    notes: Notes,
) -> None:
    loop, done = asyncio.get_running_loop(), list[int]()
    for number in range(100):

        def serve(thread: ClientThread, number: int = number) -> None:
            while not thread.stopping:
                thread.pause(PATIENCE_MS / 1000)
            loop.call_soon_threadsafe(done.append, number)

        assert await started(serve, notes).stop(PATIENCE_MS)
        assert done[-1] == number
