"""Watches other nodes and shards: reads their rows and reports what is stuck. The core's `watchdog` judges.

Runs as a task of the node. It writes logs and metrics only. It exists because a frozen process cannot report itself.
Each process checks its share of the shards, half of it in each round.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence, Set
from typing import Final

from tidegate_core.engine.actor_inputs import TopicFacts
from tidegate_core.explain.watchdog.shard_signs import heads, shard_signs, suspensions_of
from tidegate_core.explain.watchdog.watchdog import (
    FINDINGS_MAX,
    TOLD_BY_ROWS,
    Broken,
    Cursors,
    ShardSigns,
    broken_promises,
    is_watched_by,
)
from tidegate_core.ingest.topic_follower import facts_of
from tidegate_core.rows import keys
from tidegate_core.rows.effects import EndOffsets, Items, Read, ReadRange, Unavailable
from tidegate_core.rows.keys import SUSPENSIONS_KEY
from tidegate_core.rows.node_status import (
    PAGES_MAX,
    Absence,
    NodeStatus,
    absences,
    all_cards,
    cards_of,
    may_be_gone,
    missing,
    owner_of,
)
from tidegate_core.rows.store_operations import Item, Key, Page, RangeRead
from tidegate_core.writes.fencing import whole
from tidegate_node.effects.store_effects import StoreEffects
from tidegate_node.node_identity import NodeFacts
from tidegate_node.topics.offset_gaps import LogGaps
from tidegate_ports.bus import Notices, Topics
from tidegate_ports.clock import Clock
from tidegate_telemetry.metrics import Metrics

WATCH_EVERY_S: Final = 10.0
TURNS: Final = 2
"""Rounds in which a process checks all of its share."""
CLOSELY_MAX: Final = 64
"""Shards of a round whose rows are read, three pages each: 20 reads a second. If there are more, the rest is read in
later rounds. The owner's heartbeat row is checked for all shards in each round.
"""


class Unreadable(Exception):
    """The store or the broker does not answer; the next round asks again."""


class WatchdogLoop:
    """One per process."""

    def __init__(
        self,
        facts: NodeFacts,
        store: StoreEffects,
        topics: Topics,
        gaps: LogGaps,
        clock: Clock,
        metrics: Metrics,
        notices: Notices,
    ) -> None:
        self._facts = facts
        self._store = store
        self._topics = topics
        self._gaps = gaps
        self._clock = clock
        self._metrics = metrics
        self._notices = notices
        self._cursors = Cursors()
        self._events = facts.events
        self._round = 0
        self._found: dict[int, tuple[Broken, ...]] = {}
        self._silent: frozenset[str] = frozenset()
        self._gone: set[tuple[str, int]] = set()

    @property
    def findings(self) -> tuple[str, ...]:
        """Findings now, as the status row reports them."""
        return tuple(each.text() for shard in sorted(self._found) for each in self._found[shard])[:FINDINGS_MAX]

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            try:
                await self.look()
            except Unreadable:
                continue
            except Exception as failure:  # noqa: BLE001 - a bug in the watchdog must not end what it watches
                self._notices("task_failed", task="watching", exc_info=failure)

    async def look(self) -> None:
        """Makes one round. Raises Unreadable."""
        now = self._clock.now_ms()
        cards = await self._cards(now)
        # A node that is gone stays gone until it writes its status row again.
        self._gone &= {(card.owner, card.seen) for card in cards}
        waited_for = [card for card in cards if (card.owner, card.seen) not in self._gone]
        self._tell_nodes(waited_for, absences(waited_for, now, await self._owners(waited_for, now)))
        alive = sorted({self._facts.owner, *(card.owner for card in cards if not card.is_silent(now))})
        self._round += 1
        turn = [
            shard
            for shard in range(self._facts.cluster.shards)
            # The owner is not known here, so this process may be one of two candidates.
            if shard % TURNS == self._round % TURNS and self._may_be_mine(shard, alive)
        ]
        leases = await self._items([keys.lease(shard) for shard in turn])
        mine = [
            shard
            for shard in turn
            if is_watched_by(self._facts.owner, shard, owner_of(leases.get(keys.lease(shard))), alive)
        ]
        for shard in [each for each in self._found if each % TURNS == self._round % TURNS and each not in mine]:
            del self._found[shard]  # Another node watches it now.
        closely = self._closely(mine)
        for signs in await self._signs(mine, closely, leases, now):
            self._judge(signs, now, has_rows=signs.shard in closely)
        self._metrics.set("tidegate_broken_promises", sum(map(len, self._found.values())))

    def _may_be_mine(self, shard: int, alive: Sequence[str]) -> bool:
        return any(is_watched_by(self._facts.owner, shard, owner, alive) for owner in (None, *alive))

    # -- reading ------------------------------------------------------------------------------------------------------

    async def _cards(self, now: int) -> list[NodeStatus]:
        items: list[Item] = []
        after: str | None = None
        for _ in range(PAGES_MAX):
            page = await self._read_page(all_cards(after))
            items += page.items
            after = page.next_after
            if after is None:
                break
        return cards_of(items, now)

    async def _owners(self, cards: Sequence[NodeStatus], now: int) -> frozenset[str] | None:
        """Returns the owners in all leases. Returns None if no node may be gone, which is nearly always."""
        if not may_be_gone(missing(cards, now), now):
            return None
        shards = range(self._facts.cluster.shards)
        leases = await self._items([keys.lease(shard) for shard in shards])
        return frozenset(owner for item in leases.values() if (owner := owner_of(item)) is not None)

    async def _signs(
        self, shards: Sequence[int], closely: Set[int], leases: Mapping[Key, Item], now: int
    ) -> list[ShardSigns]:
        owners = {owner for shard in shards if (owner := owner_of(leases.get(keys.lease(shard)))) is not None}
        wanted = [keys.progress(shard) for shard in shards] + [keys.node(owner) for owner in sorted(owners)]
        items = await self._items([*wanted, SUSPENSIONS_KEY])
        controls = suspensions_of(items.get(SUSPENSIONS_KEY))
        unread = await self._unread(shards, now)
        found = []
        for shard in shards:
            lease, progress = leases.get(keys.lease(shard)), items.get(keys.progress(shard))
            owner = owner_of(lease)
            rows: list[list[Item]] = [[], [], []]
            if shard in closely and progress is not None:
                rows = [await self._page(each) for each in heads(shard, progress, now)]
            holder = self._facts.holder_of(shard)
            found.append(
                shard_signs(
                    shard,
                    lease,
                    progress,
                    None if owner is None else items.get(keys.node(owner)),
                    topic_partition=self._facts.cluster.holder_of(shard, lease),
                    controls=controls,
                    messages=rows[0],
                    timers=rows[1],
                    runs=rows[2],
                    unread_since=unread.get(holder),
                )
            )
        return found

    def _closely(self, shards: Sequence[int]) -> frozenset[int]:
        """Returns the shards whose rows are read in this round."""
        begin = (self._round // TURNS * CLOSELY_MAX) % max(1, len(shards))
        return frozenset((*shards[begin:], *shards[:begin])[:CLOSELY_MAX])

    async def _unread(self, shards: Sequence[int], now: int) -> dict[int, int]:
        """Returns since when each ownership topic partition of these shards has not advanced although records are
        unread.
        """
        holders = {self._facts.holder_of(shard) for shard in shards}
        stands: dict[int, int] = {}
        for topic in (self._facts.requests, self._events):
            for number, since in (await self._standing(topic, holders, now)).items():
                holder = number % self._facts.cluster.topic_partitions
                stands[holder] = min(since, stands.get(holder, since))
        return stands

    async def _standing(self, topic: TopicFacts, holders: Set[int], now: int) -> dict[int, int]:
        """Returns the same by topic partition; of the events topic, those that the owners read."""
        cluster = self._facts.cluster
        positions = {
            number: keys.topic_position(cluster.cluster_id, topic.id, number)
            for number in range(topic.topic_partitions)
            if number % cluster.topic_partitions in holders
        }
        items = await self._items(list(positions.values()))
        # Ends are read after the positions. Otherwise a reader could seem ahead, and unread records would be missed. No
        # owner can read beyond a stable end; `OpenTransactions` reports that.
        ends = await self._topics.stable_ends(topic.name)
        if not isinstance(ends, EndOffsets):
            raise Unreadable
        if topic is self._events and ends.offsets:
            # The topic may grow or be recreated; the next round uses the new state.
            self._events = facts_of(topic.name, ends)
        found: dict[int, int] = {}
        spans: dict[int, tuple[int, int]] = {}
        for number, key in positions.items():
            if key in items:
                position = (whole(items[key], "next"), str(items[key].get("page", "-")))
                end = ends.offsets.get(f"{topic.id}/{number}", 0)
                since = self._cursors.unread_since(topic.name, number, position, end, now)
                if since is not None:
                    found[number], spans[number] = since, (position[0], end)
        gaps = await self._gaps.among(topic.name, topic.id, spans)
        if isinstance(gaps, Unavailable):
            raise Unreadable
        return {number: since for number, since in found.items() if number not in gaps}

    async def _items(self, wanted: Sequence[Key]) -> Mapping[Key, Item]:
        if not wanted:
            return {}
        answer = await self._store.read(Read(tuple(wanted)))
        if not isinstance(answer, Items):
            raise Unreadable
        return answer.found

    async def _page(self, wanted: RangeRead) -> list[Item]:
        return list((await self._read_page(wanted)).items)

    async def _read_page(self, wanted: RangeRead) -> Page:
        answer = await self._store.read_range(ReadRange(wanted))
        if not isinstance(answer, Page):
            raise Unreadable
        return answer

    # -- telling ------------------------------------------------------------------------------------------------------

    def _tell_nodes(self, cards: Sequence[NodeStatus], absent: Mapping[str, Absence]) -> None:
        """Reports each node that fell silent and was not restarted, once. All watching nodes report it, because any of
        them may fail next.
        """
        self._gone |= {(card.owner, card.seen) for card in cards if absent.get(card.owner) == "gone"}
        silent = {
            card.owner: card for card in cards if absent.get(card.owner) == "silent" and card.owner != self._facts.owner
        }
        for owner in sorted(silent.keys() - self._silent):
            self._notices("node_silent", owner=owner, name=silent[owner].node, since=silent[owner].seen)
        self._silent = frozenset(silent)
        self._metrics.set("tidegate_silent_nodes", len(silent))

    def _judge(self, signs: ShardSigns, now: int, *, has_rows: bool) -> None:
        found = self._found.pop(signs.shard, ())
        before = {each.kind for each in found}
        broken = broken_promises(signs, now)
        if not has_rows and signs.owner is not None and not signs.is_stopped:
            # The rows were not read this time, so what they showed before still counts.
            broken += tuple(each for each in found if each.kind in TOLD_BY_ROWS)
        if broken:
            self._found[signs.shard] = broken
        for each in broken:
            if each.kind not in before:
                self._notices(
                    "promise_broken", shard=each.shard, promise=each.kind, since=each.since, owner=signs.owner
                )
        if before and not broken:
            self._notices("promise_kept_again", shard=signs.shard)
