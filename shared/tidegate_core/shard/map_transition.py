"""What a holder does before it takes a shard under a map that has others before it (DESIGN 3, decision 27).

Messages of a topic partition's own shards are written without conditions, and only the move of its position says that they
are there. So while one position still carries an older map, somebody may deal with a record whose shard belongs to another topic
partition by now, and fall before it is sent: the shard's new owner, which has loaded its window, would not see the rows. Hence each
new holder waits until all positions of the map before carry its own, and what does not come by itself it raises in their place:
that fences an older holder, which is what is wanted, and takes nothing from the next one, which raises once more.
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
"""By topic id and topic partition of the requests topic: offset of the next record."""


class FormerPosition(NamedTuple):
    """A position of a map before.

    Attributes:
        place: Topic id and topic partition of the requests topic.
        carries: The map that it has to carry at least: then nobody moves it who holds under one of its own.
    """

    place: tuple[str, int]
    carries: int


HAND_OVER_MS: Final = 65_000
"""How long holders under the older map may take to hear of the new one (1 s) and to hand over in order (2.5 s): nothing that they
have sent is sent again then. Who has not heard of it by then sends nothing any more (`guard.MAP_TRUSTED_MS`), and what it had sent has
arrived, or never will (2.5 s): so nobody is told of a message that it is cancelled, or replaced, which a former owner sends afterwards.
Shards whose holder is ready sooner are served by nobody meanwhile. It is hardly ever so long: who falls or freezes leaves the group, and
who does not reach the store as well; what they held is then carried by whoever gets it."""
CHECK_MS: Final = 250


def await_former_positions(host: ActorContext, is_member: Callable[[], Operation[bool]]) -> Operation[Positions]:
    """Comes back once every position of the map before carries this map, and those of topics that were gone before it the map that
    followed theirs; at once when there was none.

    Those of the holder's own number in a topic that is gone it raises itself: the group has taken that number from whoever held it there, as it
    would have within one topic.

    Args:
        host: Of the holder.
        is_member: Proves it, once such a position was read; where it is none, nothing comes of this holder any more.

    Returns:
        Where those positions stood, but for the own one: what their former holders wrote of records behind them is not to be sent
        before it came through the inbox.

    Raises:
        Outranked: A newer map than this holder's is in force.
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
            # Refused = somebody else was quicker: the next look says with which map.
            token = host.token()
            yield from host.commit_until_settled(
                raise_topic_partition(key, items.get(key), mine, host.holding.owner, token)
            )
        if not raised:
            yield from host.sleep(CHECK_MS)


def former_positions(host: ActorContext) -> Mapping[Key, FormerPosition]:
    """Returns the items of the positions that other maps had, the own one left out."""
    holding = host.holding
    own = (holding.requests.id, holding.topic_partition)
    found = positions_of(holding.cluster_id, holding.former_maps)
    return {key: former for key, former in found.items() if former.place != own}


def positions_of(cluster_id: str, former_maps: Sequence[Cut]) -> Mapping[Key, FormerPosition]:
    """Returns the items of the positions that maps had.

    The map before had all topic partitions that older ones of its topic had. A topic that was gone before it has positions of its
    own: they say for good what was read of it.
    """
    last = {cut.topic_id: cut for cut in former_maps}
    return {
        keys.topic_position(cluster_id, cut.topic_id, number): FormerPosition((cut.topic_id, number), cut.version + 1)
        for cut in last.values()
        for number in range(cut.topic_partitions)
    }


def read_positions(host: ActorContext, wanted: tuple[Key, ...]) -> Operation[Mapping[Key, Item]]:
    """Reads positions; those that are not there yet are left out."""
    if not wanted:
        return {}
    found = yield from host.read_for_good(Read(wanted))
    assert isinstance(found, Items)
    return found.found
