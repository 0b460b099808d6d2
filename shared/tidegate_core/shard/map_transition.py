"""The wait of a new owner before it acquires shards under a partition map that follows another one.

Messages are written without conditions; only the move of the cursor states that they exist. Suppose a cursor still
carries an older map. Then its owner may process a record for a shard that now belongs to another topic partition, and
crash before the message is sent. The shard's new owner has already loaded its window and would not see the rows.

So each new owner waits until all cursors of the former map carry its own map. It raises the epoch of a cursor that
lags too long. That fences the older owner, as intended, and takes nothing from the next one, which raises it again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, TypeAlias

from tidegate_core.engine.actor_context import ActorContext, NewerOwnerExists
from tidegate_core.engine.operations import Operation
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read
from tidegate_core.rows.store_operations import Item, Key
from tidegate_core.writes.fencing import cursor_of, raise_topic_partition, whole
from tidegate_core.writes.partition_map import Cut

Positions: TypeAlias = Mapping[tuple[str, int], int]
"""Offset of the next record by topic id and topic partition of the requests topic."""


class FormerPosition(NamedTuple):
    """The cursor of a former map.

    Attributes:
        place: Topic id and topic partition of the requests topic.
        carries: Lowest map that it must carry, so that no owner under its own map can move it.
    """

    place: tuple[str, int]
    carries: int


HAND_OVER_MS: Final = 65_000
"""Time for owners under the older map to learn of the new one (1 s) and hand over in order (2.5 s), so that nothing is
sent twice.

An owner that has not learned of it by then sends nothing more (`MAP_TRUSTED_MS`), and its earlier sends have arrived
or never will (2.5 s). So no sender is told that a message is cancelled or replaced which a former owner sends
afterwards. Shards whose owner is ready sooner have no owner in this time. The wait is rarely so long: a node that
crashes, freezes or loses the store leaves the group, and the next owner of its topic partitions raises the cursors.
"""
CHECK_MS: Final = 250


def await_former_positions(host: ActorContext, is_member: Callable[[], Operation[bool]]) -> Operation[Positions]:
    """Waits until every cursor of the former map carries this map; returns at once when there was none.

    A cursor of an earlier requests topic must carry the map that followed its topic. This owner raises those of its
    own number in earlier topics itself: the group has taken that number from the owner there, as it would have within
    one topic.

    Args:
        host: Context of the owner.
        is_member: Proves the membership after such a cursor was read. If there is none, this owner stops.

    Returns:
        Positions of those cursors, except the owner's present one. Messages that their former owners wrote for later
            records may be sent only after these came through the inbox.

    Raises:
        NewerOwnerExists: A newer map than this owner's is in force.
    """
    wanted = former_positions(host)
    until = host.now + HAND_OVER_MS
    while True:
        items = yield from read_positions(host, tuple(wanted))
        mine = host.holding.map_version
        if any(whole(item, "map") > mine for item in items.values()):
            raise NewerOwnerExists
        absent = [key for key in wanted if key not in items]
        behind = [key for key, item in items.items() if whole(item, "map") < wanted[key].carries]
        if not absent and not behind:
            return {wanted[key].place: cursor_of(key, item).next for key, item in items.items()}
        if not behind or host.now >= until:
            raised = [*absent, *behind]
        else:
            raised = [key for key in behind if wanted[key].place[1] == host.holding.topic_partition]
            if raised and not (yield from is_member()):
                return {}
        for key in raised:
            # A refusal means that another owner was quicker; the next read shows its map.
            token = host.token()
            yield from host.commit_until_settled(
                raise_topic_partition(key, items.get(key), mine, host.holding.owner, token)
            )
        if not raised:
            yield from host.sleep(CHECK_MS)


def former_positions(host: ActorContext) -> Mapping[Key, FormerPosition]:
    """Returns the cursors of former maps, except the owner's present one."""
    holding = host.holding
    own = (holding.requests.id, holding.topic_partition)
    found = positions_of(holding.cluster_id, holding.former_maps)
    return {key: former for key, former in found.items() if former.place != own}


def positions_of(cluster_id: str, former_maps: Sequence[Cut]) -> Mapping[Key, FormerPosition]:
    """Returns the cursors of maps.

    The former map had all topic partitions of older maps on its topic. A topic that was recreated before it has its
    own cursors, which state permanently how far it was read.
    """
    last = {cut.topic_id: cut for cut in former_maps}
    return {
        keys.topic_position(cluster_id, cut.topic_id, number): FormerPosition((cut.topic_id, number), cut.version + 1)
        for cut in last.values()
        for number in range(cut.topic_partitions)
    }


def read_positions(host: ActorContext, wanted: tuple[Key, ...]) -> Operation[Mapping[Key, Item]]:
    """Reads cursors; missing ones are left out."""
    if not wanted:
        return {}
    found = yield from host.read_for_good(Read(wanted))
    assert isinstance(found, Items)
    return found.found
