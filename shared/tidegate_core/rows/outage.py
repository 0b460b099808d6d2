"""Outages of a shard: recorded spans in which no owner served it, kept in its PROGRESS item.

The attribute `outages` holds them in order, as texts `<begin>-<end>`. A shard without outages has no such attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate_core.rows.store_operations import Item, Value

ATTRIBUTE = "outages"
GAPS = "gaps"
"""Attribute with the spans that recurring messages treat as missed; see `with_gap`."""


@dataclass(frozen=True, slots=True)
class Outage:
    """A span in which no owner served the shard.

    Attributes:
        begin: Last heartbeat before it, in ms since the epoch; inclusive.
        end: First time at which an owner served again; exclusive.
    """

    begin: int
    end: int

    def __contains__(self, instant: int) -> bool:
        return self.begin <= instant < self.end


def outages_of(progress: Item | None, attribute: str = ATTRIBUTE) -> tuple[Outage, ...]:
    """Returns the outages in a PROGRESS item, oldest first."""
    stored = [] if progress is None else progress.get(attribute, [])
    assert isinstance(stored, list)
    return tuple(Outage(*map(int, str(text).split("-"))) for text in stored)


def gaps_of(progress: Item | None) -> tuple[Outage, ...]:
    """Returns the gaps in a PROGRESS item, oldest first; they do not overlap."""
    return outages_of(progress, GAPS)


def with_gap(
    gaps: Sequence[Outage],
    fired_through: int,
    before: Sequence[Outage],
    outages: Sequence[Outage],
    sent_through: int = 0,
) -> list[Outage]:
    """Returns the gaps after an outage was recorded or extended.

    Fires up to the delivery position are sent, also when the store was unreachable at the time. So a gap begins
    there. A gap never changes: the one delivery that stands for it may already be sent.

    Args:
        gaps: Gaps before; those that the position has passed are dropped.
        fired_through: Slot of the delivery position, which the acquisition's condition demands.
        before: Outages before.
        outages: Outages now.
        sent_through: Slot of the last fire that an owner who was present throughout has sent individually.
    """
    kept = [gap for gap in gaps if gap.end > fired_through]
    if not outages or (before and before[-1].end >= outages[-1].end):
        return kept
    begin = max([outages[-1].begin, fired_through, sent_through, *(gap.end for gap in kept)])
    return [*kept, Outage(begin, outages[-1].end)] if begin < outages[-1].end else kept


def outages_value(outages: Sequence[Outage]) -> list[Value]:
    """Returns the outages in their stored form."""
    return [f"{outage.begin}-{outage.end}" for outage in outages]
