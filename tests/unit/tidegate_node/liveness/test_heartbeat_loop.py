"""The heartbeat's loop: beats to every topic partition, a sign of life in the store, verdicts acted upon."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from tidegate_core.rows import keys
from tidegate_core.rows.effects import NotProduced, Produce, Produced
from tidegate_node.liveness.heartbeat import STORE_SILENCE_MS_MAX, Verdict
from tidegate_node.liveness.heartbeat_loop import HeartbeatLoop
from tidegate_node.liveness.overload import Limits
from tidegate_node.topics.wakeup_records import Beat, read_record

if TYPE_CHECKING:
    from tests.unit.tidegate_node.conftest import Surroundings


NEVER = Limits(0, 1_000, 1_000)


def _loop(
    around: Surroundings,
    acted: list[Verdict] | None = None,
    served: Callable[[int], dict[str, int]] = lambda now: {},
    limits: Limits = NEVER,
) -> HeartbeatLoop:
    async def act(verdict: Verdict) -> None:
        if acted is not None:
            acted.append(verdict)

    return HeartbeatLoop(
        around.facts,
        store=around.store_effects(),
        plain=around.bus,
        clock=around.clock,
        metrics=around.metrics,
        notices=around.notes,
        act=act,
        served=served,
        takes=lambda: True,
        limits=limits,
        every_ms=5,
    )


@asynccontextmanager
async def _running(loop: HeartbeatLoop) -> AsyncIterator[None]:
    task = asyncio.create_task(loop.run())
    yield
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


def _beats(around: Surroundings) -> list[Beat]:
    said = [read_record(record.value) for record in around.bus.produced]
    return [each for each in said if isinstance(each, Beat)]


async def test_given_time_then_every_topic_partition_gets_a_beat(around: Surroundings, until: Any) -> None:
    async with _running(_loop(around)):
        await until(lambda: len(around.bus.produced) == 4, "a first round")
        around.clock.pass_ms(5)
        await until(lambda: len(around.bus.produced) == 8, "a second one")

    assert [record.topic_partition for record in around.bus.produced[:4]] == [0, 1, 2, 3]
    assert {beat.owner for beat in _beats(around)} == {around.facts.owner}


async def test_given_time_then_the_node_is_seen_in_the_store(around: Surroundings, until: Any) -> None:
    loop = _loop(around)
    async with _running(loop):
        item = await until(lambda: around.store.peek(keys.node(around.facts.owner)), "seen")

    assert item["seen"] == around.clock.now_ms()
    assert item["minimum_period_ms"] == around.facts.minimum_period_ms
    assert item["node"] == "node-1"
    around.clock.pass_ms(1)
    assert await loop.write_seen()


async def test_given_what_was_served_until_when_then_the_node_says_so_of_each(around: Surroundings, until: Any) -> None:
    async with _running(_loop(around, served=lambda now: {"3": now, "1": now - 70_000})):
        item = await until(lambda: around.store.peek(keys.node(around.facts.owner)), "seen")
    assert item["served"] == {"1": around.clock.now_ms() - 70_000, "3": around.clock.now_ms()}


async def test_given_a_clock_that_is_off_then_it_is_acted_upon_and_shown(around: Surroundings, until: Any) -> None:
    acted: list[Verdict] = []
    loop = _loop(around, acted)

    def append(record: Produce) -> None:
        said = read_record(record.value)
        assert isinstance(said, Beat)
        around.bus.outcome = Produced(said.at - 800)

    around.bus.on_produce = append
    async with _running(loop):
        await until(lambda: _passed(around), "beats")
        await until(lambda: acted, "the verdict")

    assert acted[0] is Verdict.CLOCK_OFF
    assert not loop.clock_agreed.is_set()
    assert around.metrics.value("tidegate_clock_offset_ms") == 800


async def test_given_a_store_that_only_peers_reach_then_it_is_acted_upon(around: Surroundings, until: Any) -> None:
    acted: list[Verdict] = []
    loop = _loop(around, acted)
    around.clock.pass_ms(STORE_SILENCE_MS_MAX + 1)

    loop.heard(Beat("peer", 0, 10))

    assert loop.store_silence_ms == STORE_SILENCE_MS_MAX + 1
    async with _running(loop):
        await until(lambda: acted, "the verdict")
    assert acted[0] is Verdict.STORE_OUT_OF_REACH


async def test_given_a_broker_that_is_away_then_the_loop_goes_on(around: Surroundings, until: Any) -> None:
    around.bus.outcome = NotProduced("unavailable", "away")

    async with _running(_loop(around)):
        await until(lambda: _passed(around), "beats go on")

    assert around.notes.names() == []


async def test_given_a_bug_in_a_beat_then_it_is_said_and_the_loop_goes_on(around: Surroundings, until: Any) -> None:
    def explode(_: Produce) -> None:
        raise RuntimeError("a bug")

    def failed_twice() -> bool:
        around.clock.pass_ms(5)
        return around.notes.names().count("task_failed") >= 2

    around.bus.on_produce = explode
    async with _running(_loop(around)):
        await until(failed_twice, "said")

    assert set(around.notes.names()) == {"task_failed"}
    assert len(around.bus.produced) >= 2, "a beat is tried again after one that failed"


def _passed(around: Surroundings) -> bool:
    around.clock.pass_ms(5)
    return len(around.bus.produced) >= 12
