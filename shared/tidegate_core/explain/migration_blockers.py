"""Who would misread rows of a newer version: processes that live, and those that hold shards, whether or not anything is heard of them.

Cards alone would not do: a process that stands still longer than they are believed wakes up some day. What it holds then is in the
leases; what it does not hold it has to acquire, and it reads the version after that (`partition_actor`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidegate_core.rows.node_status import NodeStatus

SHOWN_MAX = 20
"""Sentences about what is in the way: of 10,000 shards each says the same."""


def in_the_way(cards: Sequence[NodeStatus], owners: Mapping[int, str | None], version: int, now: int) -> list[str]:
    """Returns why rows may not be written in a version yet, one sentence each; empty when they may.

    Args:
        cards: Of all processes.
        owners: By shard, as the leases say; None where nobody ever had it.
        version: Which is to be written.
        now: Milliseconds since the epoch.
    """
    living = {card.owner: card for card in cards if not card.is_silent(now)}
    found = [
        f"node {card.node} ({card.owner[:8]}, release {card.version}) reads rows up to version {card.reads} and not {version}: "
        "replace it by the newer release, or end it"
        for card in living.values()
        if card.reads < version
    ]
    for owner, shards in sorted(_by_owner(owners).items()):
        if owner not in living:
            found.append(
                f"shards {_some(shards)}: their owner {owner[:8]} says nothing; wait until a node of the newer release has taken them over"
            )
    return found[:SHOWN_MAX]


def behind(cards: Iterable[NodeStatus], version: int, now: int) -> list[str]:
    """Returns the living processes that may still write rows of an older version."""
    return sorted(
        f"{card.node} ({card.owner[:8]})" for card in cards if not card.is_silent(now) and card.writes < version
    )


def _by_owner(owners: Mapping[int, str | None]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for shard, owner in sorted(owners.items()):
        if owner is not None:
            found.setdefault(owner, []).append(shard)
    return found


def _some(shards: Sequence[int]) -> str:
    shown = ", ".join(map(str, shards[:5]))
    return shown if len(shards) <= 5 else f"{shown} and {len(shards) - 5} more"
