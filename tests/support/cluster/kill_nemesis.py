"""Kills nodes with SIGKILL at moments that hurt: a run is open, a fire is due, a row is written and its position is not."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from tests.support.cluster.cluster import Cluster
from tests.support.cluster.evidence import Evidence
from tests.support.cluster.message_load import NAMESPACE, Booked, MessageBook
from tests.support.cluster.process import ClusterProcess
from tests.support.cluster.store_view import StoreView
from tests.support.cluster.until import NotInTime, now_ms, until

DUE_WITHIN_MS = 1_000
WAIT_AT_RANDOM_S = 1.0
"""Before each kill, up to this: moments are random, and not those at which a node has just come back."""
MOMENT_MS_MAX = 60_000
"""Patience with the moment; schedules fire every few seconds, messages all the time."""
WORK_S = 2.0
"""How long programs work that it may wait for: long enough that one of them is open most of the time."""
FRESH_MS = 400
"""Of a program whose run shall still be open when a burst's rows are written."""
STILL_OPEN_MS = 500
"""So long a run that counts works on at least: it is open in the moment of the kill as well, however slow the machine is. One that
was seen open, and has no more than a moment to go, ends between the look and the kill."""
BURSTS_MAX = 2
"""For each of them a run has to begin, which takes some seconds; a kill that missed is one of the others."""
BURST = 300
"""Messages that are sent at once into one topic partition: their 600 rows take the store a third of a second."""
BURST_SEEN = 40
"""Of these ids the rows are looked for: every so many of the burst, within one batch read."""
BURST_AHEAD_MS = (1_000, 5_000)
CLOSE_LOOK_S = 0.002
TAKE_OVER_S_MAX = 60.0


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill, and what was true in its moment.

    Attributes:
        at: ms since the epoch.
        topic_partitions: That the node held.
        shards: That follow from them.
        open_runs: Programs past their first line and before their last; such that worked on behind the kill.
        due_in_ms: Until the next fire of a shard of the node.
        between: Creates whose rows were written and whose position was not; read again after the death.
        took_over_ms: Until the other one served all shards.
    """

    node: str
    at: int
    topic_partitions: frozenset[int]
    shards: frozenset[int]
    open_runs: int
    due_in_ms: int
    between: int
    took_over_ms: int = 0


@dataclass(frozen=True, slots=True)
class Moment:
    """What is true at a look.

    Attributes:
        open_runs: Programs past their first line and before their last, that work on for `STILL_OPEN_MS` at least.
        youngest_ms: Since the youngest of them began; None without one.
        due_in_ms: Until the next fire of the node's.
    """

    open_runs: int
    youngest_ms: int | None
    due_in_ms: int

    def bites(self, fresh_ms: int = MOMENT_MS_MAX) -> bool:
        """Whether a kill now meets an open run, one that began within `fresh_ms`, and a fire that is due."""
        fresh = self.youngest_ms is not None and self.youngest_ms <= fresh_ms
        return fresh and self.due_in_ms <= DUE_WITHIN_MS


class NoMoment(NotInTime):
    """No moment came in which a kill would have bitten."""


class Nemesis:
    """Kills one node of two at a time; the next only when the survivor served everything and the killed one is back.

    Args:
        cluster: Of two nodes.
        book: Messages that are due.
        evidence: Of the programs.
        chance: Of moments.
        working: Schedules whose programs work for `WORK_S`; a run of any other may end at once.
    """

    def __init__(
        self,
        cluster: Cluster,
        book: MessageBook,
        evidence: Evidence,
        chance: random.Random,
        working: Collection[str],
    ) -> None:
        self._cluster = cluster
        self._book = book
        self._evidence = evidence
        self._chance = chance
        self._working = frozenset(working)
        self._view = StoreView(cluster.store)
        self._bursts = 0

    def kill(self, node: ClusterProcess, *, between: bool) -> Kill:
        """Kills a node, waits until the other one serves all, brings it back and waits until it has its share.

        Args:
            node: Runs and has a share.
            between: Aim at the moment between a row's write and its position.
        """
        held = self._view.held_by(self._owner(node))
        assert held, f"{node.name} holds nothing"
        # No synchronisation: kills shall not always come at the same distance from a node's return.
        time.sleep(self._chance.random() * WAIT_AT_RANDOM_S)
        kill = self._strike(node, held, between)
        survivor = self._cluster.other(node)
        until(
            lambda: survivor.serving_shards == self._view.map.shards,
            f"{survivor.name} serves all shards after {node.name} was killed",
            TAKE_OVER_S_MAX,
        )
        took_over_ms = now_ms() - kill.at
        node.start()
        node.until_ready()
        self._cluster.until_all_serve()
        return replace(kill, took_over_ms=took_over_ms)

    def _strike(self, node: ClusterProcess, held: frozenset[int], between: bool) -> Kill:
        target, ids, moment = -1, list[str](), None
        if between:
            target, ids, moment = self._aim_between(node, held)
        moment = moment or self._until_the_moment(held)
        at = now_ms()
        node.kill()
        # The process is gone and nobody has taken over yet: what is ahead now was so when it died.
        ahead = len(self._view.ahead(target, NAMESPACE, ids)) if between else 0
        shards = frozenset().union(*(self._view.shards_of(number) for number in held))
        return Kill(node.name, at, held, shards, moment.open_runs, moment.due_in_ms, ahead)

    def _aim_between(self, node: ClusterProcess, held: frozenset[int]) -> tuple[int, list[str], Moment | None]:
        """Stops the node where rows are written whose position is not, while a run is open; a burst that missed it is repeated.

        A look takes the store some milliseconds, many on a busy machine, and by then the moment may be over: so the node stands
        still, and is looked at once more. What it had sent arrives meanwhile, and nothing else does.

        Returns:
            The burst's topic partition and the ids to look for, with the moment; None for that where all bursts missed it.
        """
        target, ids = -1, list[str]()
        for _ in range(BURSTS_MAX):
            target = self._chance.choice(sorted(held))
            # A run that has just begun is still open when the rows are there.
            self._until_the_moment(held, FRESH_MS)
            ids, last = self._burst(target)
            self._until_rows_are_ahead(target, ids, last)
            node.pause()
            if self._view.ahead(target, NAMESPACE, ids) and (moment := self.look(held)).bites():
                return target, ids, moment
            node.resume()
        return target, ids, None

    # -- the moment ---------------------------------------------------------------------------------------------------

    def _until_the_moment(self, held: frozenset[int], fresh_ms: int = MOMENT_MS_MAX) -> Moment:
        """Returns the moment in which a kill bites. Raises NoMoment, which says what was missing at the last looks."""
        return until_it_bites(lambda: self.look(held), fresh_ms)

    def look(self, held: frozenset[int]) -> Moment:
        """Looks; the clock is read last, so that a slow look counts against the runs that it saw."""
        runs = [run for run in self._evidence.open_runs() if run.schedule in self._working]
        due_in = self._due_in(held)
        now = now_ms()
        ages = [now - run.started_at for run in runs if now - run.started_at <= WORK_S * 1_000 - STILL_OPEN_MS]
        return Moment(len(ages), min(ages, default=None), due_in)

    def _due_in(self, held: frozenset[int]) -> int:
        """Returns how many ms until the next fire of these topic partitions that the client knows of."""
        now = now_ms()
        fires = [
            message.nominal
            for message in list(self._book.booked)[-200:]
            if message.acknowledged is not None
            and (message.key or message.request_id)
            and not (message.replaced_by or message.cancelled_by)
            and self._view.topic_partition_of(NAMESPACE, message.key, message.request_id or "") in held
        ]
        return min((fire - now for fire in fires if fire > now), default=1 << 31)

    def _burst(self, topic_partition: int) -> tuple[list[str], Booked]:
        """Sends many messages at once to one topic partition, all owned by its holder.

        Returns:
            The ids to look for, and the last message, which no other sender's may stand for: offsets of theirs are of other logs.
        """
        self._bursts += 1
        ids = self._view.ids_for(topic_partition, NAMESPACE, f"burst-{self._bursts}", BURST)
        sent = [
            self._book.send(
                now_ms() + self._chance.randint(*BURST_AHEAD_MS), request_id=request_id, topic_partition=topic_partition
            )
            for request_id in ids
        ]
        return ids[:: BURST // BURST_SEEN], sent[-1]

    def _until_rows_are_ahead(self, topic_partition: int, ids: Sequence[str], last: Booked) -> None:
        """Waits for the moment, or for its passing: then this kill is one of the others."""

        def seen() -> bool:
            if self._view.ahead(topic_partition, NAMESPACE, ids):
                return True
            end = last.acknowledged.offset if last.acknowledged else None
            return end is not None and self._view.place(topic_partition).next_offset > end

        until(seen, "rows of the burst are written", MOMENT_MS_MAX / 1_000, CLOSE_LOOK_S)

    def _owner(self, node: ClusterProcess) -> str:
        return str(node.events("node_started")[-1]["owner"])


def until_it_bites(
    look: Callable[[], Moment], fresh_ms: int = MOMENT_MS_MAX, patience_s: float = MOMENT_MS_MAX / 1_000
) -> Moment:
    """Looks until a kill would bite, and returns that moment: what is told of the kill is what was seen, and not seen again later.

    Raises:
        NoMoment: None came within `patience_s`; the text says how often what was missing.
    """
    looks = without_run = without_fire = 0

    def bites() -> Moment | None:
        nonlocal looks, without_run, without_fire
        moment = look()
        looks += 1
        without_run += moment.open_runs == 0
        without_fire += moment.due_in_ms > DUE_WITHIN_MS
        return moment if moment.bites(fresh_ms) else None

    try:
        return until(bites, "a kill would bite", patience_s, look_every_s=0.01)
    except NotInTime as late:
        raise NoMoment(
            f"no moment for a kill within {patience_s:g} s: of {looks} looks {without_run} met no open run with {STILL_OPEN_MS} ms "
            f"to go, {without_fire} no fire due within {DUE_WITHIN_MS} ms; the rest none that began within {fresh_ms} ms"
        ) from late
