"""Drives the actor of one ownership topic partition: passes inputs, effects, results and clock ticks. It holds no rule.

Called by `assigned_partitions.py`. All work happens on the asyncio loop. Inputs are processed one after another, in
order of arrival. An exception in the actor is a bug. The actor is dropped with its pending work, and a new one is built
from the store. The successor fences late writes of the dropped actor. Too many bugs end the process, so that the
platform notices them.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol

from tidegate_core.engine.actor_inputs import Assignment, Begin, Drain, Input, RecordsArrived, Tick
from tidegate_core.ownership.partition_actor import PartitionActor
from tidegate_core.rows.effects import (
    Cancel,
    Drained,
    EffectRequest,
    EffectResult,
    Notice,
    ProduceMany,
    Result,
    ReturnCredits,
    StartReading,
    StopReading,
    WakeUp,
)
from tidegate_core.rows.schema_version import NEWEST
from tidegate_core.shard.events.subscription_index import SubscriptionIndex
from tidegate_core.writes.partition_map import FIRST_VERSION
from tidegate_node.effects.effect_router import EffectRouter

INPUTS_PER_TURN_MAX: Final = 256
TURN_S_MAX: Final = 0.02
"""Time after which the loop continues with other work: heartbeats, health, other assignments, and the end of this one.
"""
CLOCK_LOOK_MS_MAX: Final = 1_000
"""Longest wait on the loop's clock before the wall clock is read again, because the wall clock may be set."""
REBUILDS_MAX: Final = 5
REBUILD_WINDOW_MS: Final = 60_000
"""More bugs than `REBUILDS_MAX` within this time are no accident: the process ends with 70 and the platform starts a
new one."""
REBUILD_PAUSE_FIRST_MS: Final = 250
REBUILD_PAUSE_LAST_MS: Final = 8_000


class Actor(Protocol):
    """Interface of an actor for its driver; implemented by `PartitionActor` and by tests."""

    is_serving: bool

    @property
    def writes(self) -> int: ...

    def step(self, now: int, incoming: Input) -> list[EffectRequest]: ...

    def next_wake(self) -> int | None: ...

    def awaits(self, token: int) -> bool: ...

    def served_until(self, now: int) -> int | None: ...

    @property
    def has_ended(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class DriverEvents:
    """Callbacks of a driver.

    Attributes:
        failed: Called after a bug; `True` means that there are too many and the process must end.
        ended: Called if the actor ended without an order to drain.
    """

    failed: Callable[[int, BaseException, bool], None]
    ended: Callable[[int], None]


class PartitionDriver:
    """One per assigned ownership topic partition, from `begin` to `drop`.

    Args:
        topic_partition: Number of the topic partition.
        make_actor: Builds an actor without state.
        shell: Router that carries effects out.

    Attributes:
        map_version: Version of the map of this assignment, set before `begin`.
    """

    def __init__(
        self,
        topic_partition: int,
        make_actor: Callable[[], Actor],
        shell: EffectRouter,
        events: DriverEvents,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.topic_partition = topic_partition
        self.map_version = FIRST_VERSION
        self._make_actor = make_actor
        self._shell = shell
        self._events = events
        self._loop = loop
        self._actor: Actor | None = None
        self._inputs: deque[Input] = deque()
        self._is_scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._rebuild: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Result]] = set()
        self._reading: set[tuple[str, int]] = set()
        self._failures: deque[int] = deque(maxlen=REBUILDS_MAX)
        self._drained: Callable[[], None] | None = None
        self._served: int | None = None

    def _may_act(self, actor: Actor, token: int) -> bool:
        return actor.awaits(token) and self._shell.may_act(self.topic_partition, self.map_version)

    # -- from outside -------------------------------------------------------------------------------------------------

    @property
    def is_serving(self) -> bool:
        return self._actor is not None and self._actor.is_serving

    @property
    def writes(self) -> int:
        """Version in which the actor writes rows (`rows/schema_version.py`). Without an actor no rows are written."""
        return NEWEST if self._actor is None else self._actor.writes

    def served_until(self, now: int) -> int | None:
        """Returns until when the assignment was certainly served; None if it never was."""
        until = None if self._actor is None else self._actor.served_until(now)
        if until is not None:
            self._served = until
        return self._served

    def begin(self) -> None:
        """Starts an actor that takes the topic partition over."""
        self._rebuild = None
        try:
            self._actor = self._make_actor()
        except Exception as failure:  # noqa: BLE001 - a failed build is a bug like a failed step, and is retried alike
            self._fail(failure)
        self.give(Begin())

    def give(self, incoming: Input) -> None:
        """Queues an input. Without an actor the input is dropped, because the next actor begins from the store.

        Records that this actor did not request are dropped. They were read for the actor before it and begin after its
        position. Processing them would skip the records between.
        """
        if self._actor is None or self._is_unasked(incoming):
            return
        self._inputs.append(incoming)
        self._schedule()

    def drain(self, drained: Callable[[], None]) -> None:
        """Finishes the pending work, then calls back, at once if there is none. A second order replaces the callback of
        the first.
        """
        if self._drained is not None:
            self._drained = drained
            return
        if self._actor is None:
            self.drop()
            drained()
            return
        self._drained = drained
        self.give(Drain())

    def drop(self) -> None:
        """Ends everything at once. Pending writes may still be applied; the store's conditions make them harmless.
        Idempotent.
        """
        # A driver may begin and end between two heartbeat rows. Its last served instant must be recorded too.
        self.served_until(self._shell.clock.now_ms())
        self._actor = self._drained = None
        self._inputs.clear()
        for timer in (self._timer, self._rebuild):
            if timer is not None:
                timer.cancel()
        self._timer = self._rebuild = None
        tasks, self._tasks = self._tasks, set()
        for task in tasks:
            task.cancel()
        reading, self._reading = self._reading, set()
        for topic, topic_partition in reading:
            self._shell.tell(StopReading(topic, topic_partition))

    # -- inputs -------------------------------------------------------------------------------------------------------

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._work)

    def _work(self) -> None:
        self._is_scheduled = False
        until = self._loop.time() + TURN_S_MAX
        for _ in range(INPUTS_PER_TURN_MAX):
            if self._actor is None or not self._inputs or self._loop.time() >= until:
                break
            incoming = self._inputs.popleft()
            if not self._is_unasked(incoming):  # The actor may have stopped reading while the records waited.
                self._step(self._actor, incoming)
        if self._actor is not None:
            self._arm()
            if self._inputs:
                self._schedule()

    def _is_unasked(self, incoming: Input) -> bool:
        return isinstance(incoming, RecordsArrived) and (incoming.topic, incoming.topic_partition) not in self._reading

    def _step(self, actor: Actor, incoming: Input) -> None:
        try:
            for ask in actor.step(self._shell.clock.now_ms(), incoming):
                self._carry_out(actor, ask)
        except Exception as failure:  # noqa: BLE001 - any exception of the logic is a bug
            self._fail(failure)
            return
        if actor.has_ended and actor is self._actor:
            self._end()

    # -- effects ------------------------------------------------------------------------------------------------------

    def _carry_out(self, actor: Actor, ask: EffectRequest) -> None:
        match ask.effect:
            case Drained():
                pass  # `has_ended` reports it too, after all other effects of this step.
            case StartReading(topic, topic_partition):
                self._reading.add((topic, topic_partition))
                self._shell.tell(ask.effect)
            case StopReading(topic, topic_partition):
                self._reading.discard((topic, topic_partition))
                self._shell.tell(ask.effect)
            case Notice() | WakeUp() | Cancel() | ReturnCredits():
                self._shell.tell(ask.effect)
            case ProduceMany() as group:
                may_act = partial(self._may_act, actor, ask.token)
                self._shell.produce_many(group, may_act, partial(self._settled, actor, ask.token))
            case effect:
                may_act = partial(self._may_act, actor, ask.token)
                self._begin_task(actor, ask.token, self._shell.ask(effect, may_act))

    def _begin_task(self, actor: Actor, token: int, asked: Coroutine[Any, Any, Result]) -> None:
        task = self._loop.create_task(asked)
        self._tasks.add(task)
        task.add_done_callback(partial(self._answered, actor, token))

    def _answered(self, actor: Actor, token: int, task: asyncio.Task[Result]) -> None:
        self._tasks.discard(task)
        if task.cancelled() or actor is not self._actor:
            return
        failure = task.exception()
        if failure is not None:
            self._fail(failure)
        elif token:
            self.give(EffectResult(token, task.result()))

    def _settled(self, actor: Actor, token: int, result: Result) -> None:
        if actor is self._actor:
            self.give(EffectResult(token, result))

    # -- time ---------------------------------------------------------------------------------------------------------

    def _arm(self) -> None:
        """Sets the timer for the actor's next wake, unless an earlier timer is set."""
        wake = None if self._actor is None else self._actor.next_wake()
        if wake is None:
            return
        wait_ms = min(max(0, wake - self._shell.clock.now_ms()), CLOCK_LOOK_MS_MAX)
        at = self._loop.time() + wait_ms / 1000
        if self._timer is not None:
            if self._timer.when() <= at:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(at, self._ring)

    def _ring(self) -> None:
        self._timer = None
        wake = None if self._actor is None else self._actor.next_wake()
        if wake is not None and wake <= self._shell.clock.now_ms():
            self.give(Tick())
        else:
            self._arm()

    # -- ends ---------------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        drained, self._drained = self._drained, None
        self.drop()
        if drained is not None:
            drained()
        else:
            self._events.ended(self.topic_partition)

    def _fail(self, failure: BaseException) -> None:
        now = self._shell.clock.monotonic_ms()
        drained, self._drained = self._drained, None
        self.drop()
        too_many = len(self._failures) == REBUILDS_MAX and now - self._failures[0] <= REBUILD_WINDOW_MS
        self._failures.append(now)
        self._events.failed(self.topic_partition, failure, too_many)
        if drained is not None:
            # The work has ended, which is the purpose of a drain. The successor finishes the rest.
            drained()
        elif not too_many:
            recent = sum(now - at <= REBUILD_WINDOW_MS for at in self._failures)
            pause_ms = min(REBUILD_PAUSE_FIRST_MS << (recent - 1), REBUILD_PAUSE_LAST_MS)
            self._rebuild = self._loop.call_later(pause_ms / 1000, self.begin)


def partition_actor(holding: Callable[[], Assignment], index: SubscriptionIndex) -> Callable[[], Actor]:
    """Returns a function that builds the core's actors. Each has an assignment with a unique tenure, because no token
    may repeat.
    """
    return lambda: PartitionActor(holding(), index)
