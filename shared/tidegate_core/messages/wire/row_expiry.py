"""How rows of the delivery plane are written, and how long they are kept (DESIGN 5).

Expiry is garbage collection only: DynamoDB removes what has expired within days, in any order. So whatever covers a row
(a guard, a presence row) is kept longer than what it covers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Operation
from tidegate_core.language.values.instants import TEN_YEARS_MS
from tidegate_core.rows.message import Message, MessageFence
from tidegate_core.rows.receipt import expiry
from tidegate_core.rows.store_operations import Batch, Delete, Put

ROW_DAYS = 30
"""Timer and message rows outlive their slot by this, far beyond the requests topic's retention (7 d)."""
FENCE_DAYS = ROW_DAYS + 5
"""Longer than the rows that a guard covers, whichever of them DynamoDB removes first."""
WRITE_RETRY_MS = 200


def row_expiry(slot: int) -> int:
    """Returns the TTL attribute of rows of this slot: epoch seconds."""
    return expiry(slot, ROW_DAYS)


def fence_expiry(now: int, before: MessageFence | None, covered: Iterable[Message]) -> int:
    """Returns the TTL attribute of a guard: it outlives all that it covers, and creates that are still in the topic."""
    latest = max((message.slot for message in covered), default=now)
    known = 0 if before is None or before.expires_at is None else before.expires_at
    return max(known, expiry(max(now, latest), FENCE_DAYS))


def outlives(guard: MessageFence, slot: int) -> bool:
    """Whether a guard that knew nothing of them is kept for longer than rows of this slot."""
    return guard.expires_at is None or guard.expires_at > row_expiry(slot)


def presence_expiry(append_time: int) -> int:
    """Returns the TTL attribute of a presence row.

    It does not depend on the message's time, which lies ten years ahead at most: a late repeat for an older message under
    the key must not shorten it.
    """
    return expiry(append_time + TEN_YEARS_MS, FENCE_DAYS)


def write(host: ActorContext, name: str, actions: Sequence[Put | Delete]) -> Operation[None]:
    """Writes until all of it is acknowledged, and only while this is the owner. Raises InvalidWrite.

    Rows have no fence. What a former owner still sends after a freeze could name another record of the same request, and slot,
    than those by which its successor has sent the message already.
    """
    batch = Batch(name, tuple(actions))
    while not (yield from host.write(batch, guarded=True)):
        yield from host.sleep(WRITE_RETRY_MS)
