"""Fences all shards of a topic partition by raising their epochs, and creates the shard actors that serve them.

The partition actor calls it at each take-over. It writes the lease, the progress row and outage facts of each shard. No other row of any shard
is read before all shards are fenced.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate_core.engine.actor_context import ActorContext, Fenced, run_concurrently
from tidegate_core.engine.operations import Operation
from tidegate_core.ingest.topic_cursor import TopicCursor
from tidegate_core.messages.message_scheduler import MessageScheduler
from tidegate_core.ownership.shard_actor import ShardActor
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read, Refused
from tidegate_core.rows.outage import outages_of
from tidegate_core.rows.schema_version import StoreSchema
from tidegate_core.rows.store_operations import Item
from tidegate_core.shard.events.subscription_index import SubscriptionIndex
from tidegate_core.shard.map_transition import Positions
from tidegate_core.shard.outages.outage_recorder import OutageRecorder, read_signs
from tidegate_core.shard.outages.outage_time import last_sign, with_outage
from tidegate_core.writes.fencing import acquire_shard, carried_by, outranked, whole
from tidegate_core.writes.message_delivery import progress_of

ACQUIRED_TOGETHER = 16
"""Acquire transactions that run concurrently."""


class Acquisition:
    """One per take-over.

    Args:
        host: Shared parts of the partition actor.
        index: Subscription index of the node.
        requests: Cursor of the requests, with its epoch raised.
        former: Next offsets of the cursors of former maps.
        shards: Shard actors by number; filled here.
        planes: Message schedulers by number; filled here.

    Attributes:
        refusal: Reason why this process cannot read the stored rows; None: it can.
    """

    def __init__(
        self,
        host: ActorContext,
        index: SubscriptionIndex,
        requests: TopicCursor,
        former: Positions,
        shards: dict[int, ShardActor],
        planes: dict[int, MessageScheduler],
    ) -> None:
        self.refusal: str | None = None
        self._host = host
        self._index = index
        self._requests = requests
        self._former = former
        self._shards = shards
        self._planes = planes

    def of_all_shards(self) -> Operation[None]:
        """Fences all shards, a few at a time.

        Raises:
            Fenced: An owner with a later assignment, or with a newer map, has acquired a shard.
        """
        waiting = list(self._host.holding.owned_shards())
        for first in range(0, len(waiting), ACQUIRED_TOGETHER):
            group = waiting[first : first + ACQUIRED_TOGETHER]
            wanted = tuple(key for shard in group for key in (keys.lease(shard), keys.progress(shard)))
            found = yield from self._host.read_for_good(Read(wanted))
            assert isinstance(found, Items)
            items = {
                shard: (found.found.get(keys.lease(shard)), found.found.get(keys.progress(shard))) for shard in group
            }
            signs = yield from read_signs(self._host, {shard: lease for shard, (lease, _) in items.items()})
            acquired = [self._acquire(shard, lease, progress, signs) for shard, (lease, progress) in items.items()]
            yield from run_concurrently(self._host, acquired)

    def _acquire(
        self, shard: int, lease: Item | None, progress: Item | None, signs: Mapping[int, int]
    ) -> Operation[None]:
        holding, requests = self._host.holding, self._requests
        while True:
            if outranked(lease, holding.map_version, requests.at.epoch):
                raise Fenced(keys.lease(shard))
            now, before = self._host.now, outages_of(progress)
            sign = last_sign(lease, signs.get(shard))
            outages = before if sign is None else with_outage(before, sign, now)
            served = now if sign is None or (outages and outages[-1].end == now) else sign
            wanted = acquire_shard(
                shard,
                lease,
                progress,
                holding.map_version,
                requests.at.epoch,
                holding.owner,
                self._host.token(),
                served=served,
                outages=outages,
            )
            verdict = yield from self._host.commit_until_settled(wanted)
            wanted_back = (keys.lease(shard), keys.progress(shard), keys.SCHEMA_KEY)
            answer = yield from self._host.read_for_good(Read(wanted_back))
            assert isinstance(answer, Items)
            # A migration writes the version first and reads the leases then. So it sees this lease, or this read sees its version.
            self._read_in(StoreSchema.of(answer.found.get(keys.SCHEMA_KEY)))
            lease, progress = answer.found.get(keys.lease(shard)), answer.found.get(keys.progress(shard))
            if not isinstance(verdict, Refused) and lease is not None and progress is not None:
                break
            signs = yield from read_signs(self._host, {shard: lease})
        epoch = whole(lease, "epoch")
        # One read of two items is no snapshot: another owner may have raised both epochs in between.
        if lease["owner"] != holding.owner or whole(progress, "epoch") != epoch:
            raise Fenced(keys.lease(shard))
        if outages and outages[-1].end == now:
            self._host.note("outage", shard=shard, begin=outages[-1].begin, end=outages[-1].end)
        plane = MessageScheduler(self._host, shard, progress_of(progress), requests.at.next, self._former)
        self._planes[shard] = plane
        watch = OutageRecorder(self._host, shard, epoch, plane.checkpoints.durable.outages, served)
        self._shards[shard] = ShardActor(self._host, self._index, plane, shard, epoch, carried_by(lease), watch)

    def _read_in(self, schema: StoreSchema) -> None:
        """Takes the stored versions into account."""
        readable = self._host.holding.readable
        self._host.writes = max(self._host.writes, min(schema.writes, readable.newest))
        self.refusal = schema.refusal(readable) or self.refusal
