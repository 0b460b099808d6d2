"""Processes that block a newer version of rows, because they would misread it: live processes, and owners of shards that are silent.

`tidegate migrate` asks before it raises the version. The status rows of nodes are not enough: a frozen process outlives its row and may wake up
later. Then it may act on the shards of its leases. Any other shard it must acquire first, and after that it reads the version
(`partition_actor`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tidegate_core.rows.node_status import NodeStatus

SHOWN_MAX = 20
"""Sentences of an answer; with 10,000 shards many would say the same."""


def in_the_way(cards: Sequence[NodeStatus], owners: Mapping[int, str | None], version: int, now: int) -> list[str]:
    """Returns one sentence for each reason why rows may not be written in a version; an empty list allows it.

    Args:
        cards: Status rows of all processes.
        owners: Owner in the lease, by shard; None: the shard never had an owner.
        version: Version to be written.
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
    """Returns the live processes that may still write rows of an older version."""
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
