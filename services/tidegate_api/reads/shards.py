"""Reads shards: owner, progress, and stuck parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tidegate_api.bus_clients import Bus, TopicNames
from tidegate_api.http.problem_responses import not_found, unavailable
from tidegate_api.reads.node_status import read_cards
from tidegate_api.thread_pools import Pools
from tidegate_client.views import Broken, LimitView, ShardDetail, ShardView
from tidegate_core.explain.watchdog import watchdog
from tidegate_core.explain.watchdog.shard_signs import shard_signs, suspensions_of
from tidegate_core.language.values.instants import as_datetime
from tidegate_core.rows import keys
from tidegate_core.rows.effects import EndOffsets, Unavailable
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.keys import MAP_KEY, SUSPENSIONS_KEY
from tidegate_core.rows.node_status import NodeStatus, owner_of
from tidegate_core.rows.schedule import OwnLimit
from tidegate_core.rows.store_operations import Item, Key, RangeRead
from tidegate_core.writes.fencing import carried_by, whole
from tidegate_core.writes.partition_map import ClusterMap, map_of
from tidegate_ports.bus import Topic
from tidegate_ports.clock import Clock
from tidegate_ports.store import Store

COUNTED_MAX: Final = 10_000
"""Most rows of a kind that are counted: ten pages. Beyond it the exact number does not matter."""


@dataclass(frozen=True, slots=True)
class _Cluster:
    """Rows that the views of all shards are built from."""

    map: ClusterMap
    items: Mapping[Key, Item]
    cards: Sequence[NodeStatus]
    behind: Mapping[str, Mapping[int, int]]
    now: int


class ShardReads:
    """Reads shards. Each item is read consistently, but a shard may move between two reads."""

    def __init__(self, store: Store, pools: Pools, bus: Bus, topics: TopicNames, clock: Clock) -> None:
        self._store = store
        self._pools = pools
        self._bus = bus
        self._topics = topics
        self._clock = clock

    async def all(self, node: str | None) -> list[ShardView]:
        """Returns all shards, or those whose owner has this id or name."""
        stored = await self._map()
        cluster = await self._look(stored, range(stored.shards))
        views = [_view(shard, cluster) for shard in range(stored.shards)]
        return [view for view in views if node is None or node in (view.owner, view.node)]

    async def one(self, shard: int, most: int) -> ShardDetail:
        """Returns a shard with at most `most` limits of its schedules. Raises ApiProblem: 404, 503."""
        stored = await self._map()
        if not 0 <= shard < stored.shards:
            raise not_found(f"shard {shard}: does not exist; the shards are 0 to {stored.shards - 1}")
        cluster = await self._look(stored, [shard])
        view = _view(shard, cluster)
        progress = cluster.items.get(keys.progress(shard))
        counts = await self._pools.read(lambda: self._counts(shard, progress, cluster.now))
        limits = await self._pools.read(lambda: self._limits(shard))
        left_out = max(0, len(limits) - most)
        return ShardDetail.model_validate(
            {**view.model_dump(), **counts, "limits": limits[:most], "limits_left_out": left_out}
        )

    async def _map(self) -> ClusterMap:
        item = (await self._pools.read(lambda: self._store.get([MAP_KEY]))).get(MAP_KEY)
        if item is None:
            raise unavailable("the cluster has no partition map; run tidegate init")
        return map_of(item)

    async def _look(self, stored: ClusterMap, shards: Sequence[int]) -> _Cluster:
        cards = await self._pools.read(lambda: read_cards(self._store, self._clock.now_ms()))
        wanted = [SUSPENSIONS_KEY, *map(keys.lease, shards), *map(keys.progress, shards)]
        items = dict(await self._pools.read(lambda: self._store.get(wanted)))
        owners = {owner_of(items.get(keys.lease(shard))) for shard in shards} - {None}
        signs = [keys.node(str(owner)) for owner in sorted(map(str, owners))]
        items |= await self._pools.read(lambda: self._store.get(signs))
        behind = await self._behind(stored)
        return _Cluster(stored, items, cards, behind, self._clock.now_ms())

    async def _behind(self, stored: ClusterMap) -> dict[str, dict[int, int]]:
        """Returns the number of unread records by topic and ownership topic partition; empty while the broker does not answer."""
        described = await self._bus.topics.describe([self._topics.requests, self._topics.events])
        if isinstance(described, Unavailable):
            return {}
        found = {name: await self._behind_in(topic, stored) for name, topic in described.items()}
        return {name: counts for name, counts in found.items() if counts is not None}

    async def _behind_in(self, topic: Topic, stored: ClusterMap) -> dict[int, int] | None:
        """Returns the number of unread records of a topic; None if the broker does not return its end."""
        ends = await self._bus.topics.end_offsets(topic.name)
        if not isinstance(ends, EndOffsets):
            return None
        positions = {
            number: keys.topic_position(stored.cluster_id, topic.id, number) for number in range(topic.topic_partitions)
        }
        items = await self._pools.read(lambda: self._store.get(list(positions.values())))
        found: dict[int, int] = {}
        for number, key in positions.items():
            end = ends.offsets.get(f"{topic.id}/{number}", 0)
            position = whole(items[key], "next") if key in items else 0
            holder = number % stored.topic_partitions
            found[holder] = found.get(holder, 0) + max(0, end - position)
        return found

    def _counts(self, shard: int, progress: Item | None, now: int) -> dict[str, int]:
        pk, until = keys.shard_pk(shard), f"{keys.instant_text(now)}#{keys.LAST}"
        behind = keys.MESSAGE_TIMER_PREFIX
        if progress is not None:
            slot, last = whole(progress, "fired_slot"), str(progress["fired_id"])
            behind = f"{keys.MESSAGE_TIMER_PREFIX}{keys.instant_text(slot)}#{last}#{keys.LAST}"
        ranges = {
            "backlog": (behind, max(behind, f"{keys.MESSAGE_TIMER_PREFIX}{until}")),
            "fires_due": (keys.TIMER_PREFIX, f"{keys.TIMER_PREFIX}{until}"),
        }
        prefixes = {
            "jobs": keys.JOB_PREFIX,
            "runs": keys.RUN_PREFIX,
            "inbox": keys.INBOX_PREFIX,
            "outbox": keys.OUTBOX_PREFIX,
            "held": keys.HELD_MESSAGE_PREFIX,
        }
        ranges |= {name: (prefix, prefix + keys.LAST) for name, prefix in prefixes.items()}
        return {name: self._count(RangeRead(pk, low, high)) for name, (low, high) in ranges.items()}

    def _count(self, wanted: RangeRead) -> int:
        count, after = 0, None
        while count < COUNTED_MAX:
            page = self._store.query(RangeRead(wanted.pk, wanted.low, wanted.high, after=after))
            count, after = count + len(page.items), page.next_after
            if after is None:
                break
        return min(count, COUNTED_MAX)

    def _limits(self, shard: int) -> list[LimitView]:
        """Returns up to 10,000 limits with permits in use."""
        found, after = list[LimitView](), None
        while len(found) < COUNTED_MAX:
            page = self._store.query(
                RangeRead(keys.shard_pk(shard), *keys.prefix_range(keys.OWN_LIMIT_PREFIX), after=after)
            )
            limits = (from_item(OwnLimit, item) for item in page.items)
            found += [LimitView(schedule=each.ref, in_use=len(each.holders)) for each in limits if each.holders]
            after = page.next_after
            if after is None:
                break
        return found[:COUNTED_MAX]


def _view(shard: int, cluster: _Cluster) -> ShardView:
    lease, progress = cluster.items.get(keys.lease(shard)), cluster.items.get(keys.progress(shard))
    controls = suspensions_of(cluster.items.get(SUSPENSIONS_KEY))
    holder, owner = shard % cluster.map.topic_partitions, owner_of(lease)
    sign = None if owner is None else cluster.items.get(keys.node(owner))
    under_lease = cluster.map.holder_of(shard, lease)
    signs = shard_signs(shard, lease, progress, sign, topic_partition=under_lease, controls=controls)
    fired = 0 if progress is None else whole(progress, "fired_slot")
    system = controls.scope(None)
    return ShardView(
        shard=shard,
        topic_partition=holder,
        owner=owner,
        node=next((card.node for card in cluster.cards if card.owner == owner), None),
        epoch=signs.epoch,
        served=None if signs.served is None else as_datetime(signs.served),
        fired_through=as_datetime(fired) if fired else None,
        requests_behind=_of_topic(cluster.behind, "requests", holder),
        events_behind=_of_topic(cluster.behind, "events", holder),
        controls_behind=lease is not None and carried_by(lease).done < controls.version,
        stopped=system is not None and system.is_suspended,
        broken=_broken(signs, cluster),
    )


def _of_topic(behind: Mapping[str, Mapping[int, int]], ending: str, holder: int) -> int | None:
    found = next((counts for name, counts in behind.items() if name.endswith(f".{ending}")), None)
    return None if found is None else found.get(holder, 0)


def _broken(signs: watchdog.ShardSigns, cluster: _Cluster) -> list[Broken]:
    """Returns the stuck parts that this process finds, and the ones that running nodes report in their status rows."""
    found = {each.kind: each for each in watchdog.broken_promises(signs, cluster.now)}
    for card in cluster.cards:
        reported = [] if card.is_silent(cluster.now) else [watchdog.Broken.parse(text) for text in card.findings]
        found |= {each.kind: each for each in reported if each is not None and each.shard == signs.shard}
    return [
        Broken(promise=each.kind, since=as_datetime(each.since), meaning=watchdog.meaning(each.kind))
        for each in found.values()
    ]
