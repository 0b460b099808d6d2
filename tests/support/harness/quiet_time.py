"""What a bench that passes over routine has to know of the store: which row an owner has to read next, and which limits are waited for.

The simulator does the same with its one shard (`tidegate_simulator.virtual_cluster`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key, RangeRead
from tidegate_memory.store import MemoryStore
from tidegate_simulator.virtual_cluster import NEAR_MS, RECURRING_LOOK_MS


def row_comes_near(store: MemoryStore, shard: int, now: int) -> int | None:
    """Returns when a row that is not in memory yet has to be read: the routine that reads it comes by at any tick."""
    firsts = [_first(store, shard, prefix, keys.instant_text(now + NEAR_MS + 1)) for prefix in ("T#", "D#")]
    instants = [int(sk.split("#")[1]) - NEAR_MS for sk in firsts if sk is not None]
    if _first(store, shard, "C#") is not None:
        instants.append(now + RECURRING_LOOK_MS)
    return min(instants, default=None)


def limits_with_queue(store: MemoryStore, shards: Iterable[int]) -> Iterator[tuple[int, str]]:
    """Yields owner shard and partition key of each shared limit before which a job waits."""
    for shard in list(shards):
        low, high = "IW#", f"IW#{keys.LAST}"
        while page := store.query(RangeRead(keys.shard_pk(shard), low, high, limit=1)).items:
            limit = str(page[0]["limit"])
            yield shard, limit
            low = keys.queue_entries_of(Key(limit, "LIMIT"))[1]


def _first(store: MemoryStore, shard: int, prefix: str, start: str = "") -> str | None:
    """Returns the sort key of the first row of a kind, from an instant on."""
    page = store.query(RangeRead(keys.shard_pk(shard), f"{prefix}{start}", f"{prefix}{keys.LAST}", limit=1))
    return str(page.items[0]["sk"]) if page.items else None
