"""One node: joins the group, serves its assignments, and gives them back in order.

Built by `assembly.py` from ready parts. It ends for one of these reasons: a signal (0), too many bugs (70), a clock
that is off (75), or rows of a version that this release cannot read (78). It never ends running programs.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Final, Protocol

from tidegate_core.engine.membership_lease import MapLease
from tidegate_node.assigned_partitions import AssignedPartitions
from tidegate_node.effects.launch_effects import LaunchEffects
from tidegate_node.effects.run_folder_retention import RunFolderRetention
from tidegate_node.liveness.health_server import HealthServer, Standing
from tidegate_node.liveness.heartbeat import Verdict
from tidegate_node.liveness.heartbeat_loop import HeartbeatLoop
from tidegate_node.liveness.node_status import NodeStatusWriter
from tidegate_node.liveness.watchdog_loop import WatchdogLoop
from tidegate_node.node_identity import NodeFacts
from tidegate_node.startup_checks import EXIT_BUG, EXIT_CONFIGURATION, EXIT_TRY_LATER
from tidegate_node.topics.partition_map_watch import MapWatch
from tidegate_node.topics.stalled_reader_watch import ReadingWatch
from tidegate_ports.bus import Membership, Notices
from tidegate_ports.clock import Clock
from tidegate_telemetry.metrics import Metrics
from tidegate_telemetry.open_transactions import OpenTransactions

STORE_ASK_AGAIN_S: Final = 2.0
"""Pause between checks whether a store that only this node could not reach answers again."""
LEAVE_S_MAX: Final = 2.0
"""Time after which a silent store no longer delays the end."""


class Startable(Protocol):
    """A Kafka client with a thread."""

    polled_at_ms: int

    def start(self) -> None: ...

    async def stop(self) -> bool: ...


class Member(Startable, Membership, Protocol):
    """The membership client with its figures."""

    rebalances: int
    joined: bool


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of a node."""

    facts: NodeFacts
    holdings: AssignedPartitions
    membership: Member
    reader: Startable
    guarded: Startable
    plain: Startable
    map_guard: MapLease
    launch: LaunchEffects
    clock: Clock
    metrics: Metrics
    notices: Notices


class Node:
    """One node, which runs once."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._exit: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._heartbeats: HeartbeatLoop | None = None
        self._health: HealthServer | None = None
        self._presence: NodeStatusWriter | None = None
        self._watching: WatchdogLoop | None = None
        self._maps: MapWatch | None = None
        self._reading: ReadingWatch | None = None
        self._keeping: RunFolderRetention | None = None
        self._transactions: OpenTransactions | None = None
        self._away = False
        self._drained = False
        self._overloaded = False
        self._member = False
        self._moving = asyncio.Lock()
        """Lock around each start and stop of the membership while the node serves."""
        self._rebalances_counted = 0

    def connect(self, heartbeats: HeartbeatLoop, health: HealthServer) -> None:
        """Sets the parts that query this node, and that are therefore built after it."""
        self._heartbeats, self._health = heartbeats, health

    def attend(
        self,
        presence: NodeStatusWriter,
        watching: WatchdogLoop,
        maps: MapWatch,
        reading: ReadingWatch,
        keeping: RunFolderRetention,
        transactions: OpenTransactions,
    ) -> None:
        """Sets the background tasks: node status, watchdog, partition map, stalled readers, run folders and open
        transactions.
        """
        self._presence, self._watching, self._maps = presence, watching, maps
        self._reading, self._keeping, self._transactions = reading, keeping, transactions

    # -- life ---------------------------------------------------------------------------------------------------------

    def stop(self, exit_code: int = 0) -> None:
        """Orders the end of the node; the first order counts."""
        if not self._exit.done():
            self._exit.set_result(exit_code)

    async def run(self) -> int:
        """Serves until `stop`, then gives everything back and returns the exit code."""
        parts = self._parts
        assert self._heartbeats is not None
        assert self._health is not None
        self._health.start()
        parts.notices("health_listening", port=self._health.port)
        for client in (parts.plain, parts.guarded, parts.reader):
            client.start()
        begun = (self._heartbeats.run, self._join_at_first, *self._lives())
        lives = [asyncio.create_task(life(), name=life.__qualname__) for life in begun]
        for life in lives:
            life.add_done_callback(self._life_ended)
        parts.notices("node_started", owner=parts.facts.owner, node=parts.facts.name)
        exit_code = await self._exit
        parts.notices("node_stopping", exit_code=exit_code, held=sorted(parts.holdings.held))
        for life in lives:
            life.cancel()
        # `_life_ended` has reported their errors. An error must not stop this node from giving its assignments back.
        await asyncio.gather(*lives, return_exceptions=True)
        await self._close()
        parts.notices("node_stopped", exit_code=exit_code)
        return exit_code

    async def _join_at_first(self) -> None:
        """Joins the group after the clock check. A clock that is off by an hour would fire that hour's messages between
        the first assignment and the second heartbeat.
        """
        assert self._heartbeats is not None
        await self._heartbeats.clock_agreed.wait()
        async with self._moving:
            self._join()

    def _join(self) -> None:
        """Joins, unless a reason against it holds. The end of that reason calls this again."""
        if self.takes:
            self._parts.membership.start()
            self._member = True

    @property
    def takes(self) -> bool:
        """Whether no reason keeps this node from a share of the shards."""
        assert self._heartbeats is not None
        return self._heartbeats.clock_agreed.is_set() and not (
            self._drained or self._away or self._overloaded or self._exit.done()
        )

    async def _close(self) -> None:
        """Leaves the group, which drains; then flushes the sent records; then stops the health pages."""
        parts = self._parts
        assert self._health is not None
        await parts.membership.stop()
        parts.holdings.drop_all()
        parts.launch.stop()
        await parts.reader.stop()
        await asyncio.gather(parts.guarded.stop(), parts.plain.stop())
        if self._presence is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._presence.leave(), LEAVE_S_MAX)
        await self._health.stop()

    def _lives(self) -> list[Callable[[], Coroutine[Any, Any, None]]]:
        lives = (self._presence, self._watching, self._maps, self._reading, self._keeping, self._transactions)
        return [each.run for each in lives if each is not None]

    # -- what may end it ----------------------------------------------------------------------------------------------

    def actor_failed(self, topic_partition: int, failure: BaseException, too_many: bool) -> None:
        """Reports a bug in the logic of a topic partition. Too many of them end the process."""
        self._parts.notices("actor_failed", topic_partition=topic_partition, exc_info=failure, ends_process=too_many)
        if too_many:
            self.stop(EXIT_BUG)

    def actor_ended(self, topic_partition: int) -> None:
        self._parts.notices("actor_ended", topic_partition=topic_partition)

    async def act(self, verdict: Verdict) -> None:
        """Acts on a verdict of the heartbeats."""
        if verdict is Verdict.CLOCK_OFF:
            self._parts.notices("clock_off", offset_ms=self._parts.metrics.value("tidegate_clock_offset_ms"))
            self.stop(EXIT_TRY_LATER)
        elif verdict is Verdict.STORE_OUT_OF_REACH:
            await self._step_aside()
        elif verdict is Verdict.OVERLOADED:
            await self._give_way()
        elif verdict is Verdict.AT_EASE:
            await self._come_back()

    async def _step_aside(self) -> None:
        """Leaves the group while only this node cannot reach the store. Other nodes serve its shards until it can."""
        assert self._heartbeats is not None
        self._parts.notices("store_out_of_reach", silence_ms=self._heartbeats.store_silence_ms)
        async with self._moving:
            await self._leave_group()
            self._away = True
            while not await self._heartbeats.write_seen():  # noqa: ASYNC110 - asking is the only way to know
                await asyncio.sleep(STORE_ASK_AGAIN_S)
            self._parts.notices("store_back")
            self._away = False
            self._join()

    async def _give_way(self) -> None:
        """Leaves the group because this node is too late and another node is at ease."""
        parts = self._parts
        parts.notices(
            "node_overloaded", lag_s=parts.metrics.value("tidegate_loop_lag_seconds"), held=sorted(parts.holdings.held)
        )
        async with self._moving:
            self._overloaded = True
            await self._leave_group()

    async def _come_back(self) -> None:
        self._parts.notices("node_at_ease")
        async with self._moving:
            self._overloaded = False
            self._join()

    def outdated(self, refusal: str) -> None:
        """Ends the node, because rows are written in a version that this release cannot read. It was suspended while
        `tidegate migrate` ran.
        """
        self._parts.notices("node_outdated", message=refusal)
        self.stop(EXIT_CONFIGURATION)

    async def drain(self, wanted: bool) -> None:
        """Follows an operator's order: hands everything over as at a planned end, and joins again only by another
        order.
        """
        if wanted == self._drained:
            return
        async with self._moving:
            self._drained = wanted
            if wanted:
                self._parts.notices("node_drained", held=sorted(self._parts.holdings.held))
                await self._leave_group()
            else:
                self._parts.notices("node_takes_again")
                self._join()

    async def _leave_group(self) -> None:
        # Wait until the thread has ended, because it cannot be started before. Liveness restarts a process whose thread
        # hangs.
        while not await self._parts.membership.stop():
            continue
        self._member = False

    def _life_ended(self, life: asyncio.Task[None]) -> None:
        if not life.cancelled() and (failure := life.exception()) is not None:
            # Without heartbeats a wrong clock would stay unnoticed, so a new process is better. The other tasks restart
            # their own work.
            self._parts.notices("task_failed", task=life.get_name(), exc_info=failure)
            self.stop(EXIT_BUG)

    # -- figures ------------------------------------------------------------------------------------------------------

    def standing(self) -> Standing:
        """Returns the state that the health pages report."""
        parts = self._parts
        assert self._heartbeats is not None
        now = parts.clock.monotonic_ms()
        clients: dict[str, Startable] = {"reader": parts.reader, "guarded": parts.guarded, "plain": parts.plain}
        if self._member:
            clients["membership"] = parts.membership
        return Standing(
            poll_silence_ms={name: now - client.polled_at_ms for name, client in clients.items()},
            joined=parts.membership.joined,
            # A topic partition that is newer than the map is owned, but has no shards.
            held=parts.holdings.held
            | frozenset(each for each in parts.membership.owned() if each < parts.facts.cluster.topic_partitions),
            serving=parts.holdings.serving,
            store_silence_ms=self._heartbeats.store_silence_ms,
            map_is_known=parts.map_guard.holds(parts.facts.cluster.version, parts.clock.monotonic_ms()),
            standing_still=frozenset(parts.holdings.standing_still.positions),
            open_transactions=() if self._transactions is None else tuple(self._transactions.reasons()),
            waits_for_transactions=() if self._transactions is None else tuple(self._transactions.waits()),
            made_anew=None if self._maps is None else self._maps.made_anew,
            stopping=self._exit.done(),
            drained=self._drained,
            overloaded=self._overloaded,
            clock_agreed=self._heartbeats.clock_agreed.is_set(),
            broken=() if self._watching is None else self._watching.findings,
        )

    def refresh(self) -> None:
        """Updates the gauges."""
        parts, standing = self._parts, self.standing()
        rebalances = parts.membership.rebalances
        parts.metrics.count("tidegate_rebalances_total", rebalances - self._rebalances_counted)
        self._rebalances_counted = rebalances
        parts.metrics.set("tidegate_owned_topic_partitions", len(standing.held))
        parts.metrics.set("tidegate_owned_shards", parts.holdings.shards(standing.held))
        parts.metrics.set("tidegate_serving_shards", parts.holdings.shards(standing.serving))
        parts.metrics.set("tidegate_guard_holds", parts.membership.guard_holds() and standing.map_is_known)
        parts.metrics.set("tidegate_store_silence_seconds", standing.store_silence_ms / 1000)
