"""Work that nobody waits for once the process ends."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tidegate_ports.common.daemon_threads import apart

PATIENCE_S = 60.0


def test_given_work_then_what_it_returns_and_raises_is_had_on_the_loop() -> None:
    def fails() -> None:
        raise KeyError("k")

    async def scenario() -> None:
        assert await apart(threading.current_thread, "tidegate-test") is not threading.current_thread()
        with pytest.raises(KeyError):
            await apart(fails, "tidegate-test")

    asyncio.run(scenario())


def test_given_work_that_hangs_then_neither_the_loop_nor_the_process_waits_for_it() -> None:
    begun, may_end = threading.Event(), threading.Event()
    threads: list[threading.Thread] = []

    def hangs() -> None:
        threads.append(threading.current_thread())
        begun.set()
        may_end.wait(PATIENCE_S)

    async def scenario() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(apart(hangs, "tidegate-test"), 0.05)

    asyncio.run(scenario())
    assert begun.wait(PATIENCE_S)
    assert threads[0].is_alive()
    assert threads[0].daemon
    may_end.set()
    threads[0].join(PATIENCE_S)


def test_given_a_host_without_threads_then_that_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="new thread"):
        asyncio.run(apart(threading.current_thread, "tidegate-test"))
