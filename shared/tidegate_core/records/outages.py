"""Outages of a shard as durable facts: spans in which nobody served it, kept in its PROGRESS item (DESIGN 8).

Stored as texts `<begin>-<end>` in the attribute `outages`, in their order; a shard without any has no such attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate_core.store.values import Item, Value

ATTRIBUTE = "outages"


@dataclass(frozen=True, slots=True)
class Outage:
    """A span without an owner at work.

    Attributes:
        begin: Last sign of life before it, milliseconds since the epoch; inclusive.
        end: When somebody was there again; exclusive.
    """

    begin: int
    end: int

    def __contains__(self, instant: int) -> bool:
        return self.begin <= instant < self.end


def outages_of(progress: Item | None) -> tuple[Outage, ...]:
    """Returns the facts that a PROGRESS item holds, oldest first."""
    stored = [] if progress is None else progress.get(ATTRIBUTE, [])
    assert isinstance(stored, list)
    return tuple(Outage(*map(int, str(text).split("-"))) for text in stored)


def outages_value(outages: Sequence[Outage]) -> list[Value]:
    """Returns the facts as they are stored."""
    return [f"{outage.begin}-{outage.end}" for outage in outages]
