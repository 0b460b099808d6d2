"""Raises message fences and withdraws the covered versions: no owner delivers a version below its fence (invariant I7).

Cancels and replacements call this module. It writes fence rows; the callers remove timer rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tidegate_core.engine.operations import Operation
from tidegate_core.language.values.log_position import Position
from tidegate_core.messages.wire.due_queue import CANCELLED, QueuedMessage, Stage
from tidegate_core.messages.wire.row_expiry import fence_expiry
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Committed, ReadRange, Refused
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import Message, MessageFence
from tidegate_core.rows.store_operations import Page, RangeRead
from tidegate_core.writes.message_delivery import raise_fence, refuse_version

REFUSED_MAX = 100
"""Versions that one fence refuses one by one (6 KB). Each needs a repeated request and a take-over between the records."""
VERSIONS_MAX = 200
"""Versions of one key that are read; older versions are far in the past."""


def versions_of(messages: ShardMessages, message_id: str, fence: MessageFence | None) -> Operation[list[Message]]:
    """Returns the newest versions of a message, newest first. Late rows of a refused version are left out."""
    low, high = f"{keys.MESSAGE_PREFIX}{message_id}#", f"{keys.MESSAGE_PREFIX}{message_id}#{keys.LAST}"
    found: list[Message] = []
    after: str | None = None
    while True:
        # Read in pages: four payloads of the largest size fill one.
        wanted = RangeRead(keys.shard_pk(messages.shard), low, high, VERSIONS_MAX, after, newest_first=True)
        page = yield from messages.host.read_for_good(ReadRange(wanted))
        assert isinstance(page, Page)
        found.extend(
            each for each in (from_item(Message, item) for item in page.items) if counts(messages, each, fence)
        )
        after = page.next_after
        if after is None or len(found) >= VERSIONS_MAX:
            return found


def counts(messages: ShardMessages, version: Message, fence: MessageFence | None) -> bool:
    """Returns whether a version counts: its record is not lost, and the version was not refused."""
    if messages.elsewhere.is_gone(version.origin) or messages.inboxed.is_refused_for_now(version):
        return False
    return fence is None or version.version not in fence.refused


def raise_to(
    messages: ShardMessages,
    message_id: str,
    live_from: str,
    before: MessageFence | None,
    covered: Iterable[Message],
    request_id: str | None = None,
    through: int | None = None,
    late: frozenset[str] = frozenset(),
) -> Operation[Committed | Refused]:
    """Raises a fence in the store, then in memory. If an equal or higher fence is stored, the write is refused and that one holds.

    Args:
        messages: The shard's messages.
        message_id: Message of the fence.
        live_from: Versions below this are covered.
        before: The fence as it was read.
        covered: Versions that are known to be covered; the fence outlives their rows.
        request_id: Id of the replacement; or the mark of cancels and the id of the cancel.
        through: Latest slot that a cancel covers.
        late: Versions for which a cancel comes too late.

    Raises:
        Fenced: Another owner holds the shard.
    """
    covered = list(covered)
    yield from messages.next_attempts.learn(covered)
    is_kept = before is not None and len(before.refused) > 0
    fence = MessageFence(
        id=message_id,
        live_from=live_from,
        expires_at=None if is_kept else fence_expiry(messages.host.now, before, covered),
        request_id=request_id,
        before=raised_over(before, live_from),
        through=through,
        late=late,
    )
    epoch = messages.checkpoints.durable.epoch
    messages.fences.begin(fence, before)
    try:
        verdict = yield from messages.commit(raise_fence(messages.shard, epoch, fence, messages.host.token()))
        found = verdict.failed[0][1] if isinstance(verdict, Refused) else None
        messages.fences.remember(fence if found is None else from_item(MessageFence, found))
    finally:
        messages.fences.end()
    return verdict


def fence_version(
    messages: ShardMessages, message_id: str, version: str, fence: MessageFence | None
) -> Operation[None]:
    """Refuses one version for good, also rows of it that a former owner writes late.

    Raises:
        Fenced: Another owner holds the shard.
    """
    known = frozenset() if fence is None else fence.refused
    if version in known:
        return
    if len(known) >= REFUSED_MAX:
        messages.host.note("refused_versions_full", shard=messages.shard, id=message_id)
        return
    epoch = messages.checkpoints.durable.epoch
    yield from messages.commit(refuse_version(messages.shard, epoch, message_id, version, messages.host.token()))
    messages.fences.remember(MessageFence(id=message_id, refused=frozenset({version})))


def raised_over(fence: MessageFence | None, live_from: str) -> str:
    """Returns the fence's value before it was raised to `live_from`, also when a crashed try has raised it."""
    if fence is None:
        return ""
    return fence.before if fence.live_from == live_from else fence.live_from


class WithdrawalResult(NamedTuple):
    """State of a version at the moment at which memory knows its fence.

    Attributes:
        taken_back: Whether it was removed from memory unsent; None if it was not in memory, or has moved to a later slot.
        maybe_sent: If it was not in memory, whether an owner may have sent it. Either a checkpoint passes it, or a predecessor,
            who may have sent it, raised the fence that kept it from being loaded.
    """

    taken_back: bool | None
    maybe_sent: bool


def is_too_late(messages: ShardMessages, message: Message, held: bool | None) -> bool:
    """Returns whether a version was sent, or may have been: for example, the broker's client has it or got no answer for it.

    The caller has set `DueQueue.being_cancelled`, so an unsent version stays unsent until its fence is raised.

    Args:
        messages: The shard's messages.
        message: A version that a cancel is about.
        held: If it is held or in a move, whether an owner may have sent it before; else None.
    """
    if held is not None:
        return held
    rows = [row for row in messages.queue.of(message.id) if row.version == message.version and not row.double]
    present = [row for row in rows if row.stage is not Stage.GONE]
    if present:
        return any(row.stage is Stage.DONE or row.handed or row.maybe_sent for row in present)
    if rows:
        # The broker refused the message, and memory had no room for its next attempt.
        return any(row.maybe_sent for row in rows)
    waiting = messages.next_attempts.of(message)
    if waiting is not None:
        return bool(waiting.maybe_sent) or waiting.slot <= messages.maybe_sent_through
    return message.nominal <= messages.maybe_sent_through or _is_passed(messages, message)


def remove_from_queue(messages: ShardMessages, message: Message) -> WithdrawalResult:
    """Removes a version that a fence covers from memory: if it is not in delivery in this step, it is never sent."""
    rows = [row for row in messages.queue.of(message.id) if row.version == message.version and not row.double]
    if rows and all(row.stage is Stage.GONE for row in rows):
        # The broker refused the message, and memory had no room for its next attempt: no row is left to withdraw and count. The
        # caller asks for held messages separately.
        return WithdrawalResult(None, any(row.maybe_sent for row in rows))
    waiting = None if rows else messages.next_attempts.of(message)
    if waiting is not None:
        return WithdrawalResult(None, bool(waiting.maybe_sent) or waiting.slot <= messages.maybe_sent_through)
    # All rows are withdrawn, also those after a row that is too late.
    taken_back = [_take_back_row(messages, row) for row in rows]
    return WithdrawalResult(
        all(taken_back) if rows else None,
        message.nominal <= messages.maybe_sent_through or _is_passed(messages, message),
    )


def _is_passed(messages: ShardMessages, message: Message) -> bool:
    """Returns whether a checkpoint may cover a delivery of a version that is not in memory.

    A former owner may have frozen while it wrote the rows of an overdue create, and may have put them at a later slot, after all
    deliveries since. It had read the record before this owner started. This owner chose the slot of a younger record. If no
    checkpoint covers that slot, it lies after the loaded window; after a long silence of the store, it may be in the past.
    """
    if not messages.is_checkpointed(message.nominal, message.id, message.version):
        return False
    of_before = Position.parse(message.origin).append_time <= messages.maybe_sent_through
    return of_before or messages.is_checkpointed(message.slot, message.id, message.version)


def withdraw(messages: ShardMessages, message: Message, result: WithdrawalResult, *, counted: bool) -> bool:
    """Returns whether a version that is not held was withdrawn; False when it was sent, or may have been.

    Args:
        messages: The shard's messages.
        message: A version that a fence covers.
        result: Result of `remove_from_queue` when memory knew the fence.
        counted: An earlier fence covered the version, so the tally includes it.
    """
    # It may have been released since then.
    taken_back = remove_from_queue(messages, message).taken_back if result.taken_back is None else result.taken_back
    if taken_back is not None:
        return taken_back
    if not result.maybe_sent and not counted:
        messages.checkpoints.count(CANCELLED)
    return not result.maybe_sent


def _take_back_row(messages: ShardMessages, row: QueuedMessage) -> bool:
    if row.stage is Stage.DONE or row.handed:
        return False
    if row.stage in (Stage.READY, Stage.WRITTEN, Stage.WRITING):
        messages.withdraw(row)
    # A delivery in progress checks the fence in the step in which it produces, so this row is not sent.
    return not row.maybe_sent
