"""Outages of a shard as durable facts: spans in which nobody served it, kept in its PROGRESS item (DESIGN 8).

Stored as texts `<begin>-<end>` in the attribute `outages`, in their order; a shard without any has no such attribute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate_core.rows.store_operations import Item, Value

ATTRIBUTE = "outages"
GAPS = "gaps"
"""Attribute of what recurring messages take for missed: see `with_gap`."""


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


def outages_of(progress: Item | None, attribute: str = ATTRIBUTE) -> tuple[Outage, ...]:
    """Returns the facts that a PROGRESS item holds, oldest first."""
    stored = [] if progress is None else progress.get(attribute, [])
    assert isinstance(stored, list)
    return tuple(Outage(*map(int, str(text).split("-"))) for text in stored)


def gaps_of(progress: Item | None) -> tuple[Outage, ...]:
    """Returns the gaps that a PROGRESS item holds, oldest first; they do not overlap."""
    return outages_of(progress, GAPS)


def with_gap(
    gaps: Sequence[Outage],
    fired_through: int,
    before: Sequence[Outage],
    outages: Sequence[Outage],
    sent_through: int = 0,
) -> list[Outage]:
    """Returns the gaps once an outage was written down, or the last one was made longer.

    What was fired is behind the delivery position, also when the store was silent already; so a gap begins there, and it is
    never changed: the one delivery that stands for it may have been made.

    Args:
        gaps: As they were; those that the position has passed are dropped.
        fired_through: Slot of the delivery position; an acquire demands it to be this one.
        before: The outages as they were.
        outages: As they are now.
        sent_through: Slot of the last fire that an owner who was there all along has sent, each of them by itself.
    """
    kept = [gap for gap in gaps if gap.end > fired_through]
    if not outages or (before and before[-1].end >= outages[-1].end):
        return kept
    begin = max([outages[-1].begin, fired_through, sent_through, *(gap.end for gap in kept)])
    return [*kept, Outage(begin, outages[-1].end)] if begin < outages[-1].end else kept


def outages_value(outages: Sequence[Outage]) -> list[Value]:
    """Returns the facts as they are stored."""
    return [f"{outage.begin}-{outage.end}" for outage in outages]
