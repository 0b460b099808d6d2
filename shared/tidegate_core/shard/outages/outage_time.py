"""What follows from the facts of a shard's outages; catch-up, time-outs and `why` read the same ones (DESIGN 8).

Pure: `outage_recorder.py` says how a fact comes to be. A gap below the grace is no outage, and several of them in a row are
none either. A suspended span is none by itself: a schedule that is suspended has no instants that could be missed.
"""

from __future__ import annotations

from collections.abc import Sequence

from tidegate_core.language.definitions.catch_up_policy import CatchUp
from tidegate_core.rows.outage import Outage
from tidegate_core.rows.store_operations import Item

OUTAGE_GRACE_MS = 60_000
"""SEMANTICS 3.4: what is later than this is more than late. Far above a session and a take-over, and six signs of life."""
OUTAGES_KEPT_MS = 7 * 24 * 3_600_000
"""How far catch-up looks back (SEMANTICS 3.2). Counted while the shard is served only: a long outage must not take the facts
away from a catch-up that it interrupts."""
OUTAGES_MAX = 64
"""Facts of a shard: 2 KB. Above it the oldest goes; whatever flaps so often has long caught up with that one."""


def with_outage(known: Sequence[Outage], begin: int, end: int) -> tuple[Outage, ...]:
    """Returns the facts after a gap from the last sign of life to now; the same ones when it is within the grace.

    What is written down already is never doubled and never shortened. Without a sign of life since the latest fact that
    one goes on, however short the rest is. What was served for long since is forgotten.
    """
    kept = [outage for outage in known if outage.end + OUTAGES_KEPT_MS > begin]
    if kept and begin <= kept[-1].end:
        last = kept.pop()
        return (*kept, Outage(last.begin, max(last.end, end)))
    if end - begin < OUTAGE_GRACE_MS:
        return tuple(kept)
    return (*kept, Outage(begin, end))[-OUTAGES_MAX:]


def outage_at(outages: Sequence[Outage], instant: int) -> Outage | None:
    """Returns the outage in which an instant lies, or None."""
    return next((outage for outage in outages if instant in outage), None)


def served_deadline(began: int, deadline: int, outages: Sequence[Outage]) -> int:
    """Returns when a time-out that began to run at `began` is over, if it stands still during outages (DESIGN 6)."""
    for outage in outages:
        if outage.end > began and outage.begin < deadline:
            deadline += outage.end - max(outage.begin, began)
    return deadline


def served_between(begin: int, end: int, outages: Sequence[Outage]) -> int:
    """Returns how much of a span lies in no outage, in milliseconds; 0 for one that ends before it begins."""
    away = sum(max(0, min(each.end, end) - max(each.begin, begin)) for each in outages)
    return max(0, end - begin - away)


def without_span(outages: Sequence[Outage], begin: int, end: int) -> list[Outage]:
    """Returns what of outages lies outside of a span, in its order."""
    parts = ((Outage(each.begin, min(each.end, begin)), Outage(max(each.begin, end), each.end)) for each in outages)
    return [part for both in parts for part in both if part.begin < part.end]


def last_sign(lease: Item | None, seen: int | None) -> int | None:
    """Returns when the shard was served for the last time, as far as anybody wrote it down; None = it never was.

    The delivery position is no such sign: a checkpoint may take effect long after its owner could do anything else. A
    beginning that is too early harms nobody, because what was fired is behind the cursors. A dead node's clock may have been
    ahead: then the outage seems to begin later, and what fell due before its beginning is made one by one.

    Args:
        lease: The shard's, before the acquire that ends the outage.
        seen: What the owner's `NODE#` item says of it (`outage_watch.sign_name`).
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
