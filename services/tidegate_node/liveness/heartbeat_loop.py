"""Sends the heartbeats, writes the node's heartbeat row, and acts on the verdicts. `heartbeat.py` decides.

Runs as a task of the node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, Final

from tidegate_core.rows.effects import Produced, Write
from tidegate_core.rows.store_operations import Batch
from tidegate_core.shard.outages.outage_recorder import heartbeat_row
from tidegate_node.effects.store_effects import StoreEffects
from tidegate_node.liveness.heartbeat import BEAT_EVERY_MS, Appended, Heartbeat, Verdict
from tidegate_node.liveness.overload import Limits
from tidegate_node.node_identity import NodeFacts
from tidegate_node.topics.wakeup_records import Beat, beat_record
from tidegate_ports.bus import Notices, Publisher
from tidegate_ports.clock import Clock
from tidegate_telemetry.metrics import Metrics

SEEN_EVERY_BEATS: Final = 2
"""The row `NODE#` is written every 10 s. This is the precision of an outage's start."""
SEEN_DAYS: Final = 7
"""Lifetime of the row. Each process has another UUID, and its last row matters only to the owners that take over from
it."""
LOOK_EVERY_MS: Final = 1_000


class HeartbeatLoop:
    """One per process; also receives the peers' beats.

    Args:
        plain: Publisher of unguarded records.
        act: Callback for each verdict except `STAY`.
        takes: Whether this node is in its group, or about to join.
        limits: Thresholds of overload.
        served: Callback that returns until when each assigned or formerly assigned topic partition was certainly
            served.
    """

    def __init__(
        self,
        facts: NodeFacts,
        *,
        store: StoreEffects,
        plain: Publisher,
        clock: Clock,
        metrics: Metrics,
        notices: Notices,
        act: Callable[[Verdict], Awaitable[None]],
        served: Callable[[int], Mapping[str, int]],
        takes: Callable[[], bool],
        limits: Limits,
        every_ms: int = BEAT_EVERY_MS,
    ) -> None:
        self._facts = facts
        self._store = store
        self._plain = plain
        self._clock = clock
        self._metrics = metrics
        self._notices = notices
        self._act = act
        self._served = served
        self._takes = takes
        self._every_ms = every_ms
        self._heartbeat = Heartbeat(facts.owner, limits)
        self.clock_agreed = asyncio.Event()
        """Set once, when the brokers' append times have shown that this node's clock is usable."""
        self._under_way: set[asyncio.Task[object]] = set()

    def heard(self, beat: Beat) -> None:
        self._heartbeat.heard(beat, self._clock.monotonic_ms())

    @property
    def clock_offset_ms(self) -> int:
        """Certain offset of this machine's clock from the brokers'."""
        return self._heartbeat.clock_offset_ms

    @property
    def store_silence_ms(self) -> int:
        return self._clock.monotonic_ms() - self._store.answered_at_ms

    async def run(self) -> None:
        """Runs until cancelled."""
        beats = 0
        next_beat = self._clock.monotonic_ms()
        try:
            while True:
                if self._clock.monotonic_ms() >= next_beat:
                    next_beat = self._clock.monotonic_ms() + self._pause_ms
                    self._begin(self._send_beat())
                    if beats % SEEN_EVERY_BEATS == 0:
                        self._begin(self.write_seen())
                    beats += 1
                verdict = self._heartbeat.verdict(self._clock.monotonic_ms(), self.store_silence_ms)
                if verdict is not Verdict.STAY:
                    await self._act(verdict)
                    self._acted(verdict)
                await self._look_later(min(LOOK_EVERY_MS, self._every_ms))
        finally:
            for task in self._under_way:
                task.cancel()

    def _acted(self, verdict: Verdict) -> None:
        if verdict is Verdict.OVERLOADED:
            self._heartbeat.overload.gave_way()
        elif verdict is Verdict.AT_EASE:
            self._heartbeat.overload.came_back(self._clock.monotonic_ms())

    async def _look_later(self, after_ms: int) -> None:
        begun = self._clock.monotonic_ms()
        await asyncio.sleep(after_ms / 1000)
        self._heartbeat.overload.looked(self._clock.monotonic_ms() - begun - after_ms)

    @property
    def _pause_ms(self) -> int:
        """Pause between beats; shorter at first, because the node waits for the clock check."""
        return self._every_ms if self.clock_agreed.is_set() else min(LOOK_EVERY_MS, self._every_ms)

    async def write_seen(self) -> bool:
        """Writes `NODE#<owner>`; False if the store did not answer."""
        now = self._clock.now_ms()
        expires_at = now // 1000 + SEEN_DAYS * 86_400
        served, least = self._served(now), self._facts.minimum_period_ms
        sign = heartbeat_row(self._facts.owner, self._facts.name, now, served, expires_at, minimum_period_ms=least)
        before = self._store.answered_at_ms
        await self._store.write(Write(Batch("seen", (sign,))))
        return self._store.answered_at_ms > before

    async def _send_beat(self) -> None:
        wall = self._clock.now_ms()
        beat = self._heartbeat.beat(wall, self._clock.monotonic_ms(), self.store_silence_ms, takes=self._takes())
        self._metrics.set("tidegate_loop_lag_seconds", self._heartbeat.overload.lag_ms / 1000)
        records = await asyncio.gather(*[self._append(beat, n) for n in range(self._facts.pokes.topic_partitions)])
        self._heartbeat.appended(beat, [record for record in records if record is not None])
        self._metrics.set("tidegate_clock_offset_ms", self._heartbeat.clock_offset_ms)
        if self._heartbeat.clock_agreed and not self.clock_agreed.is_set():
            self._notices("clock_agreed", offset_ms=self._heartbeat.clock_offset_ms)
            self.clock_agreed.set()

    async def _append(self, beat: Beat, topic_partition: int) -> Appended | None:
        outcome = await self._plain.produce(beat_record(beat, self._facts, topic_partition))
        if isinstance(outcome, Produced) and outcome.appended_at is not None:
            return Appended(outcome.appended_at, self._clock.now_ms())
        return None

    def _begin(self, work: Coroutine[Any, Any, object]) -> None:
        begun = asyncio.get_running_loop().create_task(work)
        self._under_way.add(begun)
        begun.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[object]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._notices("task_failed", task="heartbeat", exc_info=failure)
