"""Calculations with a shard's recorded outages, for catch-up, time-outs and `why`.

All functions are pure; `outage_recorder.py` records outages. A gap below the grace is no outage, and several in a row
are none either. A suspended span is no outage: a suspended schedule has no instants to miss.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate_core.language.definitions.catch_up_policy import CatchUp
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.store_operations import Item

OUTAGE_GRACE_MS = 60_000
"""Gaps below this are mere lateness: far above a session and a take-over, and six heartbeats."""
OUTAGES_KEPT_MS = 7 * 24 * 3_600_000
"""How far catch-up looks back, counted in served time only.

A long outage must not remove the outages of a catch-up that it interrupts.
"""
OUTAGES_MAX = 64
"""Outages of a shard: 2 KB. Above that the oldest is dropped; a shard with so many has long caught up with it."""


def with_outage(known: Sequence[Outage], begin: int, end: int) -> tuple[Outage, ...]:
    """Returns the outages after a gap from the last heartbeat to now; unchanged when the gap is within the grace.

    A recorded outage is never doubled or shortened. Without a heartbeat since the latest outage, that one continues,
    even for a short gap. Outages before a long served time are dropped.
    """
    kept = [outage for outage in known if outage.end + OUTAGES_KEPT_MS > begin]
    if kept and begin <= kept[-1].end:
        last = kept.pop()
        return (*kept, Outage(last.begin, max(last.end, end)))
    if end - begin < OUTAGE_GRACE_MS:
        return tuple(kept)
    return (*kept, Outage(begin, end))[-OUTAGES_MAX:]


def outage_at(outages: Sequence[Outage], instant: int) -> Outage | None:
    """Returns the outage that contains an instant, or None."""
    return next((outage for outage in outages if instant in outage), None)


def served_deadline(began: int, deadline: int, outages: Sequence[Outage]) -> int:
    """Returns the end of a time-out that started at `began` and pauses during outages."""
    for outage in outages:
        if outage.end > began and outage.begin < deadline:
            deadline += outage.end - max(outage.begin, began)
    return deadline


def served_between(begin: int, end: int, outages: Sequence[Outage]) -> int:
    """Returns the served part of a span in ms; 0 for a span that ends before it begins."""
    away = sum(max(0, min(each.end, end) - max(each.begin, begin)) for each in outages)
    return max(0, end - begin - away)


def without_span(outages: Sequence[Outage], begin: int, end: int) -> list[Outage]:
    """Returns the parts of outages outside a span, in order."""
    parts = ((Outage(each.begin, min(each.end, begin)), Outage(max(each.begin, end), each.end)) for each in outages)
    return [part for both in parts for part in both if part.begin < part.end]


def last_sign(lease: Item | None, seen: int | None) -> int | None:
    """Returns the last time at which the shard was certainly served; None = never.

    The delivery position does not count: a checkpoint may take effect long after its owner has stopped. An outage
    that begins too early is harmless, because cursors exclude all fired instants. A dead node's clock may have been
    ahead: then the outage seems to begin later, and instants before its begin fire one by one.

    Args:
        lease: Lease of the shard before the acquisition that ends the outage.
        seen: Last heartbeat of its owner for this shard (`outage_recorder.read_signs`).
    """
    if lease is None:
        return None
    served = lease.get("served", 0)
    assert isinstance(served, int)
    return max(served, seen or 0) or None


__all__ = [
    "OUTAGES_KEPT_MS",
    "OUTAGES_MAX",
    "OUTAGE_GRACE_MS",
    "CatchUp",
    "last_sign",
    "outage_at",
    "served_between",
    "served_deadline",
    "with_outage",
    "without_span",
]
