"""Which group protocol the nodes follow, and what befalls their membership."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal, TypeAlias

GroupProtocol: TypeAlias = Literal["classic", "consumer"]
CONSUMER_SHARE = 0.3
"""Of the worlds whose nodes follow KIP-848."""


@dataclass(frozen=True, slots=True)
class GroupFaults:
    """Attributes:
    protocol: `classic` (cooperative-sticky) or `consumer` (KIP-848).
    late_heartbeat_ms: How long a node that goes on after a freeze needs for its next heartbeat: its connection is gone.
        Its commits may be quicker. Matters with `consumer` only, where commits do not keep a member.
    """

    protocol: GroupProtocol = "classic"
    late_heartbeat_ms: int = 0


def calm_group() -> GroupFaults:
    return GroupFaults()


def draw_group(chance: Random) -> GroupFaults:
    return GroupFaults(
        protocol="consumer" if chance.random() < CONSUMER_SHARE else "classic",
        late_heartbeat_ms=chance.choice((0, 500, 2_000)),
    )
