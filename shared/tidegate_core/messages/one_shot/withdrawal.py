"""Guards of messages: what a cancel or a replacement covers is not delivered by anybody (DESIGN 5, I7)."""

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
"""Versions of one key that a guard covers one by one (6 KB); each took a repeat of a request and a take-over in between."""
VERSIONS_MAX = 200
"""Versions of one key that are looked at; older ones are far in the past."""


def versions_of(messages: ShardMessages, message_id: str, guard: MessageFence | None) -> Operation[list[Message]]:
    """Returns the newest versions of a message, newest first; rows of a refused one may come late, and are none."""
    low, high = f"{keys.MESSAGE_PREFIX}{message_id}#", f"{keys.MESSAGE_PREFIX}{message_id}#{keys.LAST}"
    found: list[Message] = []
    after: str | None = None
    while True:
        # Page by page: four payloads of the largest size fill one.
        wanted = RangeRead(keys.shard_pk(messages.shard), low, high, VERSIONS_MAX, after, newest_first=True)
        page = yield from messages.host.read_for_good(ReadRange(wanted))
        assert isinstance(page, Page)
        found.extend(
            each for each in (from_item(Message, item) for item in page.items) if counts(messages, each, guard)
        )
        after = page.next_after
        if after is None or len(found) >= VERSIONS_MAX:
            return found


def counts(messages: ShardMessages, version: Message, guard: MessageFence | None) -> bool:
    """Whether a version is one, and not what a former owner wrote of a record that is gone, or was refused for another one."""
    if messages.elsewhere.is_gone(version.origin) or messages.inboxed.is_refused_for_now(version):
        return False
    return guard is None or version.version not in guard.refused


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
    """Raises a guard, in the store first; refused where one as high is there already, which holds then.

    Args:
        messages: The shard's messages.
        message_id: What it guards.
        live_from: Versions below this are covered.
        before: The guard as it was read.
        covered: Versions that are known to be covered; the guard outlives their rows.
        request_id: Of the replacement, or of the cancel behind its mark.
        through: Latest slot of what a cancel covers.
        late: Versions for which a cancel comes too late.

    Raises:
        Fenced: Another owner holds the shard.
    """
    covered = list(covered)
    yield from messages.next_attempts.learn(covered)
    is_kept = before is not None and len(before.refused) > 0
    guard = MessageFence(
        id=message_id,
        live_from=live_from,
        expires_at=None if is_kept else fence_expiry(messages.host.now, before, covered),
        request_id=request_id,
        before=raised_over(before, live_from),
        through=through,
        late=late,
    )
    epoch = messages.checkpoints.durable.epoch
    messages.fences.begin(guard, before)
    try:
        verdict = yield from messages.commit(raise_fence(messages.shard, epoch, guard, messages.host.token()))
        found = verdict.failed[0][1] if isinstance(verdict, Refused) else None
        messages.fences.remember(guard if found is None else from_item(MessageFence, found))
    finally:
        messages.fences.end()
    return verdict


def fence_version(
    messages: ShardMessages, message_id: str, version: str, guard: MessageFence | None
) -> Operation[None]:
    """Has a guard cover this one version, whatever a former owner wrote of it and whenever that comes.

    Raises:
        Fenced: Another owner holds the shard.
    """
    known = frozenset() if guard is None else guard.refused
    if version in known:
        return
    if len(known) >= REFUSED_MAX:
        messages.host.note("refused_versions_full", shard=messages.shard, id=message_id)
        return
    epoch = messages.checkpoints.durable.epoch
    yield from messages.commit(refuse_version(messages.shard, epoch, message_id, version, messages.host.token()))
    messages.fences.remember(MessageFence(id=message_id, refused=frozenset({version})))


def raised_over(guard: MessageFence | None, live_from: str) -> str:
    """Returns where the guard stood before it was raised to this, be that done already by whoever crashed then."""
    if guard is None:
        return ""
    return guard.before if guard.live_from == live_from else guard.live_from


class WithdrawalResult(NamedTuple):
    """What a message came to at the moment at which its guard was known in memory.

    Attributes:
        taken_back: Whether it was taken out of memory unsent; None = it was not there, or has left it for a later place.
        maybe_sent: Where it was not there, whether somebody may have sent it: it is passed by the checkpoint, or its guard kept
            it from being loaded after a predecessor, who may have sent it, had raised that.
    """

    taken_back: bool | None
    maybe_sent: bool


def is_too_late(messages: ShardMessages, message: Message, held: bool | None) -> bool:
    """Whether a message was sent, or may have been: it is with the broker's client, say, or was there without an answer.

    Asked while nothing of it is handed over (`DueQueue.asked_back`), so that what is unsent stays so until its guard is raised.

    Args:
        messages: The shard's messages.
        message: A version that a cancel is about.
        held: Where it is held back, or on its way there or back, whether somebody may have sent it before.
    """
    if held is not None:
        return held
    rows = [row for row in messages.slots.of(message.id) if row.version == message.version and not row.double]
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
    """Takes a version that a guard covers now out of memory: what is not on its way in this very step will never be."""
    rows = [row for row in messages.slots.of(message.id) if row.version == message.version and not row.double]
    if rows and all(row.stage is Stage.GONE for row in rows):
        # The broker refused it, and memory had no room for its next attempt: nobody withdraws and counts what is not there. What is
        # held back is asked for apart.
        return WithdrawalResult(None, any(row.maybe_sent for row in rows))
    waiting = None if rows else messages.next_attempts.of(message)
    if waiting is not None:
        return WithdrawalResult(None, bool(waiting.maybe_sent) or waiting.slot <= messages.maybe_sent_through)
    # Each of them, also behind one that is too late.
    taken_back = [_take_back_row(messages, row) for row in rows]
    return WithdrawalResult(
        all(taken_back) if rows else None,
        message.nominal <= messages.maybe_sent_through or _is_passed(messages, message),
    )


def _is_passed(messages: ShardMessages, message: Message) -> bool:
    """Whether a checkpoint may cover what was sent of a version that is not in memory.

    A former owner, frozen while it made the rows of a create that was overdue, may have put them at another slot, behind all that was
    sent since. It had read the record before this owner came. The slot of a younger one is this owner's own, and where no checkpoint
    covers it, it lies beyond what is loaded: after the store was away for long, that is behind.
    """
    if not messages.is_checkpointed(message.nominal, message.id, message.version):
        return False
    of_before = Position.parse(message.origin).append_time <= messages.maybe_sent_through
    return of_before or messages.is_checkpointed(message.slot, message.id, message.version)


def withdraw(messages: ShardMessages, message: Message, fate: WithdrawalResult, *, counted: bool) -> bool:
    """Says whether a message that is not held back was taken back; False when it was sent, or may have been.

    Args:
        messages: The shard's messages.
        message: A version that a guard covers.
        fate: Of the moment at which the guard was known here.
        counted: Another guard covered it before, so that it is in the tally.
    """
    # It may have been let go since then.
    taken_back = remove_from_queue(messages, message).taken_back if fate.taken_back is None else fate.taken_back
    if taken_back is not None:
        return taken_back
    if not fate.maybe_sent and not counted:
        messages.checkpoints.count(CANCELLED)
    return not fate.maybe_sent


def _take_back_row(messages: ShardMessages, row: QueuedMessage) -> bool:
    if row.stage is Stage.DONE or row.handed:
        return False
    if row.stage in (Stage.READY, Stage.WRITTEN, Stage.WRITING):
        messages.withdraw(row)
    # One that is being sent, and was not handed over: whoever is about to do so looks at the guard in the same step.
    return not row.maybe_sent
