"""What the rows of the one shard say of what comes next: an owner has only those in memory whose time is near."""

from __future__ import annotations

from tidegate_core.decisions.delivery_plane.loading import WINDOW_MS
from tidegate_core.model.instants import Instant
from tidegate_core.store import keys
from tidegate_core.store.values import Key, RangeRead
from tidegate_memory.store import MemoryStore

NEAR_MS = WINDOW_MS // 2
"""How long before its time a row is brought into memory: an owner extends a window that ends sooner than that, whenever it did so last. The one
in which it holds timer rows of the run plane is longer. Any earlier, and what else has happened shortly before would have the look come too soon."""
RECURRING_NEAR_MS = 2 * WINDOW_MS
"""Recurring messages whose next fire is further ahead have a timer row of their own, which says when to be near."""
RECURRING_LOOK_MS = 30_000
"""How far time may jump while a recurring message is near: its fires have no rows, and are found half a window ahead."""


def row_comes_near(store: MemoryStore, now: Instant) -> Instant | None:
    """Returns when a row that is not in memory yet has to be read: the routine that reads it comes by at any tick."""
    # What is nearer than that is in memory by now; of a wide suspend there are rows that lie behind us.
    firsts = [_first(store, prefix, now + NEAR_MS + 1) for prefix in ("T#", "D#")]
    instants = [int(sk.split("#")[1]) - NEAR_MS for sk in firsts if sk is not None]
    if _first(store, "C#") is not None:
        instants.append(now + RECURRING_LOOK_MS)
    return min(instants, default=None)


def limits_with_queue(store: MemoryStore) -> list[str]:
    """Returns the partition keys of all shared limits before which somebody waits."""
    found: list[str] = []
    low, high = "IW#", f"IW#{keys.LAST}"
    while page := store.query(RangeRead(keys.shard_pk(0), low, high, limit=1)).items:
        found.append(str(page[0]["limit"]))
        low = keys.waiters_of(Key(found[-1], "LIMIT"))[1]
    return found


def _first(store: MemoryStore, prefix: str, instant: Instant | None = None) -> str | None:
    """Returns the first row of a kind, from an instant on where one is given."""
    low = prefix if instant is None else f"{prefix}{keys.instant_text(instant)}"
    page = store.query(RangeRead(keys.shard_pk(0), low, f"{prefix}{keys.LAST}", limit=1))
    return str(page.items[0]["sk"]) if page.items else None
