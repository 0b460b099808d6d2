"""Writes message rows, and sets how long they are kept.

Expiry only collects garbage: DynamoDB removes expired rows within days, in any order. So a row that decides about another row
(a message fence, a key row) expires later than the other row. All modules of messages that write rows call this one.
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
"""Days for which timer and message rows outlive their slot: far beyond the retention of the requests topic (7 days)."""
FENCE_DAYS = ROW_DAYS + 5
"""Days for which a fence is kept: longer than the rows that it covers, in whichever order DynamoDB removes them."""
WRITE_RETRY_MS = 200


def row_expiry(slot: int) -> int:
    """Returns the expiry of rows of this slot, in epoch seconds."""
    return expiry(slot, ROW_DAYS)


def fence_expiry(now: int, before: MessageFence | None, covered: Iterable[Message]) -> int:
    """Returns the expiry of a fence: it outlives all rows that it covers, and creates that are still in the topic."""
    latest = max((message.slot for message in covered), default=now)
    known = 0 if before is None or before.expires_at is None else before.expires_at
    return max(known, expiry(max(now, latest), FENCE_DAYS))


def outlives(fence: MessageFence, slot: int) -> bool:
    """Returns whether the fence is kept longer than rows of this slot, which it may not have considered."""
    return fence.expires_at is None or fence.expires_at > row_expiry(slot)


def presence_expiry(append_time: int) -> int:
    """Returns the expiry of a key row.

    It does not depend on the time of the message, which lies at most ten years ahead: a late repeat of an older message under
    the key must not shorten it.
    """
    return expiry(append_time + TEN_YEARS_MS, FENCE_DAYS)


def write(host: ActorContext, name: str, actions: Sequence[Put | Delete]) -> Operation[None]:
    """Writes until all rows are acknowledged, and only while this node is the owner. Raises InvalidWrite.

    These writes have no condition on the epoch. After a freeze, a former owner could write another slot, or another record of
    the same request, than its successor used for the delivery.
    """
    batch = Batch(name, tuple(actions))
    while not (yield from host.write(batch, guarded=True)):
        yield from host.sleep(WRITE_RETRY_MS)
