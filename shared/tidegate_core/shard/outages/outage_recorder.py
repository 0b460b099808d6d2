"""How the fact of an outage comes to be (DESIGN 8).

Whoever acquires a shard writes it in the very transaction of the acquire: there is no moment between the fence and the fact in
which a second crash could hide the outage behind the new owner's own signs of life. Who held the shard all along, but could
not reach the store or stood still, writes it before its run plane decides anything else, and until then its node's sign of life
says nothing newer than the beginning: a successor finds the same one.
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
"""Attribute of a node's item: by ownership topic partition, its last sign of life there."""


def sign_name(map_version: int, topic_partition: int) -> str:
    """Returns the name of a process's sign of life for what it holds: under another map the same number means other shards."""
    return str(topic_partition) if map_version == FIRST_VERSION else f"{map_version}:{topic_partition}"


def read_signs(host: ActorContext, leases: Mapping[int, Item | None]) -> Operation[dict[int, int]]:
    """Reads up to when the owners that these leases name have served their shards; by shard, for `last_sign`.

    A process that lost a topic partition may live on and serve others, so each has a sign of its own, and under each map. Without one it
    says nothing: it had it for less than a beat, and the lease says when the shard was served before that.
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
    """Returns what a node writes every 10 s.

    Without a condition: one process writes it, and what arrives late makes an outage seem to begin earlier, which nothing
    that was fired meanwhile minds.

    Args:
        owner: UUID of the process.
        node: Its name, for people.
        now: Its clock.
        served: By ownership topic partition (`sign_name`; the number itself under the first map), up to when it was certainly
            served (`PartitionActor.served_until`), those included that are not held any more.
        expires_at: Epoch seconds.
        minimum_period_ms: Its setting, for whoever says beforehand what an apply of it would refuse.
    """
    key = keys.node(owner)
    signs: dict[str, Value] = dict(sorted((str(name), until) for name, until in served.items()))
    item: Item = {"pk": key.pk, "sk": key.sk, "seen": now, "node": node, SERVED: signs, "expires_at": expires_at}
    if minimum_period_ms is not None:
        item[MINIMUM_PERIOD] = minimum_period_ms
    return Put(key, item)


class RecurringFires(Protocol):
    """What the watch has to know of the shard's recurring messages, and they of it."""

    @property
    def sent_through(self) -> int:
        """Slot of the last fire that was sent, or may have been."""
        ...

    def outage_opens(self) -> None:
        """What is overdue waits, and all fires behind it: which of them are missed is written down first."""

    def gap_ends(self, instant: int) -> None:
        """A gap that ends there is being written down, and begins behind the last fire that was sent: no further one of before its end is."""

    def outage_ends(self, gaps: tuple[Outage, ...]) -> None:
        """These are the gaps, written down."""


class OutageRecorder:
    """What an owner knows of its shard's outages.

    Args:
        host: Shared parts of the partition actor.
        shard: 0 to S-1.
        epoch: Under which the shard was acquired.
        known: As PROGRESS says.
        complete: Up to when they say all.

    Attributes:
        known: The facts, written down all of them.
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
        """Tells `opened` that there is one to write down, `learners` the facts, now and whenever there are others."""
        self._opened, self._learners, self._fires = opened, learners, fires
        self._learn(self.known)

    def served(self) -> None:
        """The shard is recovered: from now on it is served. Until then it was not, however long ago it was acquired."""
        complete, self._complete = self._complete, None
        if complete is not None and self._host.now - complete >= OUTAGE_GRACE_MS:
            self.unserved_since(complete)

    def unserved_since(self, instant: int) -> None:
        """The store has not answered since, or this process stood still: when it is over, that is a fact. It began earlier where the shard was
        not served yet.
        """
        if self._since is None:
            self._since = instant if self._complete is None else min(instant, self._complete)
            assert self._opened is not None
            assert self._fires is not None
            self._fires.outage_opens()
            self._opened()

    def complete_until(self, now: int) -> int:
        """Returns up to when the facts say all: a sign of life that is later would hide the rest from a successor."""
        return next((each for each in (self._complete, self._since) if each is not None), now)

    @property
    def is_open(self) -> bool:
        """Whether there is one to write down."""
        return self._since is not None

    def settle(self) -> Operation[None]:
        """Writes down what has ended, or waits for whoever does. Nothing that depends on outages is decided before.

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
            progress, end = answer.found[key], self._host.now  # The store answers: it is over.
            if whole(progress, "epoch") != self._epoch:
                raise Fenced(key)
            before = outages_of(progress)
            known, gaps = with_outage(before, self._since, end), gaps_of(progress)
            if known != before:
                fires.gap_ends(end)
                gaps = tuple(with_gap(gaps, whole(progress, "fired_slot"), before, known, fires.sent_through))
                recorded = record_outages(self._shard, self._epoch, before, known, self._host.token(), gaps=gaps)
                if isinstance((yield from self._host.commit_until_settled(recorded)), Refused):
                    continue  # It has another owner now, or the fact is there: the item says which.
                self._host.note("outage", shard=self._shard, begin=self._since, end=end)
            self._learn(known)
            # A store that fell silent again while this was written: the same outage goes on.
            self._since = end if self._host.now - end >= OUTAGE_GRACE_MS else None
            if self._since is None:
                fires.outage_ends(gaps)

    def _learn(self, known: tuple[Outage, ...]) -> None:
        self.known = known
        for learner in self._learners:
            learner(known)


@dataclass(frozen=True, slots=True)
class WriteDownOutage(Procedure):
    """Has the fact written although nothing else is to be decided: a shard may be idle for days."""

    watch: OutageRecorder
    about: str
    name: str = "outage"

    def run(self, lane: ShardWriter) -> Operation[None]:
        yield from self.watch.settle()
