"""Records a shard's outages, and writes the heartbeats from which they follow.

The acquisition of a shard records the outage before it, in its own transaction. So no second crash can hide the
outage behind the new owner's heartbeats. An owner that kept the shard, but froze or could not reach the store,
records its outage before its next decision. Until then its node's heartbeat states the begin of that outage, so a
successor finds the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidegate_core.engine.actor_context import ActorContext, Fenced
from tidegate_core.engine.decision import Procedure
from tidegate_core.engine.operations import Mutex, Operation
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read, Refused
from tidegate_core.rows.outage import Outage, gaps_of, outages_of, with_gap
from tidegate_core.rows.store_operations import Item, Put, Value
from tidegate_core.shard.outages.outage_time import OUTAGE_GRACE_MS, with_outage
from tidegate_core.writes.fencing import record_outages, whole
from tidegate_core.writes.partition_map import FIRST_VERSION

SERVED = "served"
MINIMUM_PERIOD = "minimum_period_ms"
"""Attributes of a node's heartbeat row: last heartbeat by ownership topic partition, and the node's shortest period."""


def sign_name(map_version: int, topic_partition: int) -> str:
    """Returns the name of a process's heartbeat for a topic partition: under another map the same number means other
    shards.
    """
    return str(topic_partition) if map_version == FIRST_VERSION else f"{map_version}:{topic_partition}"


def read_signs(host: ActorContext, leases: Mapping[int, Item | None]) -> Operation[dict[int, int]]:
    """Reads the heartbeats of the owners in these leases; by shard, for `last_sign`.

    A process that lost a topic partition may still serve others, so it has one heartbeat per topic partition and map.
    If there is none, it owned the topic partition for less than one interval, and the lease states when the shard was
    served before.
    """
    held = {shard: lease for shard, lease in leases.items() if lease is not None}
    if not held:
        return {}
    wanted = {owner: keys.node(owner) for owner in sorted({str(lease["owner"]) for lease in held.values()})}
    answer = yield from host.read_for_good(Read(tuple(wanted.values())))
    assert isinstance(answer, Items)
    signs: dict[int, int] = {}
    for shard, lease in held.items():
        served = answer.found.get(wanted[str(lease["owner"])], {}).get(SERVED)
        version = whole(lease, "map")
        topic_partition = host.holding.topic_partition_under(version, shard)
        if not isinstance(served, dict) or topic_partition is None:
            continue
        own = served.get(sign_name(version, topic_partition))
        if own is not None:
            signs[shard] = int(str(own))
    return signs


def heartbeat_row(
    owner: str,
    node: str,
    now: int,
    served: Mapping[int, int] | Mapping[str, int],
    expires_at: int,
    *,
    minimum_period_ms: int | None = None,
) -> Put:
    """Returns the heartbeat row that a node writes every 10 s.

    It needs no condition: one process writes it. A late write makes an outage seem to begin earlier, which harms no
    fired instant.

    Args:
        owner: UUID of the process.
        node: Name of the node, for people.
        now: Its clock.
        served: Last certainly served time (`PartitionActor.served_until`) by ownership topic partition (`sign_name`;
            the number itself under the first map), former ones included.
        expires_at: Epoch seconds.
        minimum_period_ms: Setting of the node, for a check of an apply before it is sent.
    """
    key = keys.node(owner)
    signs: dict[str, Value] = dict(sorted((str(name), until) for name, until in served.items()))
    item: Item = {"pk": key.pk, "sk": key.sk, "seen": now, "node": node, SERVED: signs, "expires_at": expires_at}
    if minimum_period_ms is not None:
        item[MINIMUM_PERIOD] = minimum_period_ms
    return Put(key, item)


class RecurringFires(Protocol):
    """The link between the recorder and the shard's recurring messages."""

    @property
    def sent_through(self) -> int:
        """Slot of the last fire that was or may have been sent."""
        ...

    def outage_opens(self) -> None:
        """Pauses overdue fires and all after them: the outage is recorded before they are judged as missed or not."""

    def gap_ends(self, instant: int) -> None:
        """States the end of a gap that is being recorded.

        The gap begins after the last sent fire; no further fire before its end is sent.
        """

    def outage_ends(self, gaps: tuple[Outage, ...]) -> None:
        """Passes on the gaps once they are recorded."""


class OutageRecorder:
    """An owner's record of its shard's outages.

    Args:
        host: Shared parts of the partition actor.
        shard: 0 to S-1.
        epoch: Epoch under which the shard was acquired.
        known: Outages in PROGRESS.
        complete: Time up to which they are complete.

    Attributes:
        known: Recorded outages.
    """

    def __init__(self, host: ActorContext, shard: int, epoch: int, known: Sequence[Outage], complete: int) -> None:
        self.known = tuple(known)
        self._opened: Callable[[], None] | None = None
        self._learners: Sequence[Callable[[tuple[Outage, ...]], None]] = ()
        self._fires: RecurringFires | None = None
        self._host = host
        self._shard = shard
        self._epoch = epoch
        self._complete: int | None = complete
        self._since: int | None = None
        self._turn = Mutex(host.operations, f"outage {shard}")

    def connect(
        self,
        opened: Callable[[], None],
        learners: Sequence[Callable[[tuple[Outage, ...]], None]],
        fires: RecurringFires,
    ) -> None:
        """Registers `opened`, called when an outage must be recorded, and `learners`, called with the outages now and
        after each change.
        """
        self._opened, self._learners, self._fires = opened, learners, fires
        self._learn(self.known)

    def served(self) -> None:
        """Notes that recovery is complete: the shard is served from now on, not from its acquisition."""
        complete, self._complete = self._complete, None
        if complete is not None and self._host.now - complete >= OUTAGE_GRACE_MS:
            self.unserved_since(complete)

    def unserved_since(self, instant: int) -> None:
        """Notes that the store has not answered, or the process has been frozen, since an instant: an outage once it is
        over.

        It began earlier when the shard was not served at that instant.
        """
        if self._since is None:
            self._since = instant if self._complete is None else min(instant, self._complete)
            assert self._opened is not None
            assert self._fires is not None
            self._fires.outage_opens()
            self._opened()

    def complete_until(self, now: int) -> int:
        """Returns the time up to which the outages are complete.

        A later heartbeat would hide the rest from a successor.
        """
        return next((each for each in (self._complete, self._since) if each is not None), now)

    @property
    def is_open(self) -> bool:
        """Whether an outage must be recorded."""
        return self._since is not None

    def settle(self) -> Operation[None]:
        """Records an outage that has ended, or waits for the operation that does.

        No decision depends on outages before that.

        Raises:
            Fenced: Another owner has acquired the shard.
        """
        if self._since is not None:
            yield from self._turn.of(self._write_down())

    def _write_down(self) -> Operation[None]:
        key, fires = keys.progress(self._shard), self._fires
        assert fires is not None
        while self._since is not None:
            answer = yield from self._host.read_for_good(Read((key,)))
            assert isinstance(answer, Items)
            progress, end = answer.found[key], self._host.now  # The store answers, so the outage is over.
            if whole(progress, "epoch") != self._epoch:
                raise Fenced(key)
            before = outages_of(progress)
            known, gaps = with_outage(before, self._since, end), gaps_of(progress)
            if known != before:
                fires.gap_ends(end)
                gaps = tuple(with_gap(gaps, whole(progress, "fired_slot"), before, known, fires.sent_through))
                recorded = record_outages(self._shard, self._epoch, before, known, self._host.token(), gaps=gaps)
                if isinstance((yield from self._host.commit_until_settled(recorded)), Refused):
                    # Another owner has the shard now, or the outage is recorded already: the next read shows which.
                    continue
                self._host.note("outage", shard=self._shard, begin=self._since, end=end)
            self._learn(known)
            # If the store fell silent again during the write, the same outage continues.
            self._since = end if self._host.now - end >= OUTAGE_GRACE_MS else None
            if self._since is None:
                fires.outage_ends(gaps)

    def _learn(self, known: tuple[Outage, ...]) -> None:
        self.known = known
        for learner in self._learners:
            learner(known)


@dataclass(frozen=True, slots=True)
class WriteDownOutage(Procedure):
    """Records the outage although no decision is queued: a shard may be idle for days."""

    watch: OutageRecorder
    about: str
    name: str = "outage"

    def run(self, writer: ShardWriter) -> Operation[None]:
        yield from self.watch.settle()
