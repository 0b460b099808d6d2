"""Guards of messages: what a cancel or a replacement covers is not delivered by anybody (DESIGN 5, I7)."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, NamedTuple

from tidegate_core.engine.operations import Operation
from tidegate_core.language.values.log_position import Position
from tidegate_core.messages.wire.due_queue import QueuedMessage, Stage
from tidegate_core.messages.wire.row_expiry import fence_expiry
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Committed, Items, Read, ReadRange, Refused
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import Message, MessageFence
from tidegate_core.rows.store_operations import Page, RangeRead
from tidegate_core.writes.message_delivery import Tally, raise_fence, refuse_version

if TYPE_CHECKING:
    from tidegate_core.messages.message_scheduler import MessageScheduler

GUARDS_MAX = 100_000
"""Raised guards in memory (10 MB), the latest ones: far more than are raised while one page is loaded."""
REFUSED_MAX = 100
"""Versions of one key that a guard covers one by one (6 KB); each took a repeat of a request and a take-over in between."""
VERSIONS_MAX = 200
"""Versions of one key that are looked at; older ones are far in the past."""
CANCELLED = Tally(cancelled=1)


class _Raising(NamedTuple):
    """Which guard is being raised, and the versions that it comes to cover: from the first one, and below the second."""

    id: str
    before: str
    live_from: str


class MessageFences:
    """Those that this owner has raised: a load that was asked for before has to know of them; older ones are in the store."""

    def __init__(self) -> None:
        self._known: dict[str, MessageFence] = {}
        self._raising = _Raising("", "", "")

    def begin(self, guard: MessageFence, before: MessageFence | None) -> None:
        """The guard is being raised; it counts once that is known to be done. One at a time."""
        # Nothing where it is done again: it was there all along, and what it covers was not loaded.
        self._raising = _Raising(guard.id, "" if before is None else before.live_from, guard.live_from)

    def end(self) -> None:
        """It is known to be done, or has come to nothing."""
        self._raising = _Raising("", "", "")

    def remember(self, guard: MessageFence) -> None:
        """Keeps the guard, and what was known of it."""
        before = self._known.pop(guard.id, guard)
        higher = guard if guard.live_from >= before.live_from else before
        refused = guard.refused | before.refused
        self._known[guard.id] = MessageFence(id=guard.id, live_from=higher.live_from, late=higher.late, refused=refused)
        if len(self._known) > GUARDS_MAX:
            del self._known[next(iter(self._known))]

    def keep_out(self, found: MessageFence | None, version: str) -> bool:
        """Whether a version is not loaded, by the guard that was found in the store. Not by one that is being raised: whoever does that asks
        what has become of the version when it is known to be done, and takes for sent what is passed and was never there.
        """
        if found is None:
            return False
        raising = self._raising
        if found.id == raising.id and raising.before <= version < raising.live_from:
            return version in found.refused
        return found.covers(version)

    def cover(self, message_id: str, version: str) -> bool:
        """Whether this version was cancelled, replaced or refused."""
        guard = self._known.get(message_id)
        return guard is not None and guard.covers(version)


def read_guards(plane: MessageScheduler, message_ids: Collection[str]) -> Operation[dict[str, MessageFence]]:
    """Reads the guards of messages, consistently; most have none."""
    if not message_ids:
        return {}
    wanted = tuple(sorted(keys.message_fence(plane.shard, each) for each in message_ids))
    answer = yield from plane.host.read_for_good(Read(wanted))
    assert isinstance(answer, Items)
    return {guard.id: guard for guard in (from_item(MessageFence, item) for item in answer.found.values())}


def versions_of(plane: MessageScheduler, message_id: str, guard: MessageFence | None) -> Operation[list[Message]]:
    """Returns the newest versions of a message, newest first; rows of a refused one may come late, and are none."""
    low, high = f"{keys.MESSAGE_PREFIX}{message_id}#", f"{keys.MESSAGE_PREFIX}{message_id}#{keys.LAST}"
    found: list[Message] = []
    after: str | None = None
    while True:
        # Page by page: four payloads of the largest size fill one.
        wanted = RangeRead(keys.shard_pk(plane.shard), low, high, VERSIONS_MAX, after, newest_first=True)
        page = yield from plane.host.read_for_good(ReadRange(wanted))
        assert isinstance(page, Page)
        found.extend(each for each in (from_item(Message, item) for item in page.items) if counts(plane, each, guard))
        after = page.next_after
        if after is None or len(found) >= VERSIONS_MAX:
            return found


def counts(plane: MessageScheduler, version: Message, guard: MessageFence | None) -> bool:
    """Whether a version is one, and not what a former owner wrote of a record that is gone, or was refused for another one."""
    if plane.elsewhere.is_gone(version.origin) or plane.inboxed.is_refused_for_now(version):
        return False
    return guard is None or version.version not in guard.refused


def raise_to(
    plane: MessageScheduler,
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
        plane: Whose message it is.
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
    yield from plane.next_attempts.learn(covered)
    is_kept = before is not None and len(before.refused) > 0
    guard = MessageFence(
        id=message_id,
        live_from=live_from,
        expires_at=None if is_kept else fence_expiry(plane.host.now, before, covered),
        request_id=request_id,
        before=raised_over(before, live_from),
        through=through,
        late=late,
    )
    epoch = plane.checkpoints.durable.epoch
    plane.guards.begin(guard, before)
    try:
        verdict = yield from plane.commit(raise_fence(plane.shard, epoch, guard, plane.host.token()))
        found = verdict.failed[0][1] if isinstance(verdict, Refused) else None
        plane.guards.remember(guard if found is None else from_item(MessageFence, found))
    finally:
        plane.guards.end()
    return verdict


def fence_version(
    plane: MessageScheduler, message_id: str, version: str, guard: MessageFence | None
) -> Operation[None]:
    """Has a guard cover this one version, whatever a former owner wrote of it and whenever that comes.

    Raises:
        Fenced: Another owner holds the shard.
    """
    known = frozenset() if guard is None else guard.refused
    if version in known:
        return
    if len(known) >= REFUSED_MAX:
        plane.host.note("refused_versions_full", shard=plane.shard, id=message_id)
        return
    epoch = plane.checkpoints.durable.epoch
    yield from plane.commit(refuse_version(plane.shard, epoch, message_id, version, plane.host.token()))
    plane.guards.remember(MessageFence(id=message_id, refused=frozenset({version})))


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


def is_too_late(plane: MessageScheduler, message: Message, held: bool | None) -> bool:
    """Whether a message was sent, or may have been: it is with the broker's client, say, or was there without an answer.

    Asked while nothing of it is handed over (`DueQueue.asked_back`), so that what is unsent stays so until its guard is raised.

    Args:
        plane: Whose message it is.
        message: A version that a cancel is about.
        held: Where it is held back, or on its way there or back, whether somebody may have sent it before.
    """
    if held is not None:
        return held
    rows = [row for row in plane.slots.of(message.id) if row.version == message.version and not row.double]
    present = [row for row in rows if row.stage is not Stage.GONE]
    if present:
        return any(row.stage is Stage.DONE or row.handed or row.maybe_sent for row in present)
    if rows:
        # The broker refused the message, and memory had no room for its next attempt.
        return any(row.maybe_sent for row in rows)
    waiting = plane.next_attempts.of(message)
    if waiting is not None:
        return bool(waiting.maybe_sent) or waiting.slot <= plane.maybe_sent_through
    return message.nominal <= plane.maybe_sent_through or _is_passed(plane, message)


def remove_from_queue(plane: MessageScheduler, message: Message) -> WithdrawalResult:
    """Takes a version that a guard covers now out of memory: what is not on its way in this very step will never be."""
    rows = [row for row in plane.slots.of(message.id) if row.version == message.version and not row.double]
    if rows and all(row.stage is Stage.GONE for row in rows):
        # The broker refused it, and memory had no room for its next attempt: nobody withdraws and counts what is not there. What is
        # held back is asked for apart.
        return WithdrawalResult(None, any(row.maybe_sent for row in rows))
    waiting = None if rows else plane.next_attempts.of(message)
    if waiting is not None:
        return WithdrawalResult(None, bool(waiting.maybe_sent) or waiting.slot <= plane.maybe_sent_through)
    # Each of them, also behind one that is too late.
    taken_back = [_take_back_row(plane, row) for row in rows]
    return WithdrawalResult(
        all(taken_back) if rows else None, message.nominal <= plane.maybe_sent_through or _is_passed(plane, message)
    )


def _is_passed(plane: MessageScheduler, message: Message) -> bool:
    """Whether a checkpoint may cover what was sent of a version that is not in memory.

    A former owner, frozen while it made the rows of a create that was overdue, may have put them at another slot, behind all that was
    sent since. It had read the record before this owner came. The slot of a younger one is this owner's own, and where no checkpoint
    covers it, it lies beyond what is loaded: after the store was away for long, that is behind.
    """
    if not plane.is_checkpointed(message.nominal, message.id, message.version):
        return False
    of_before = Position.parse(message.origin).append_time <= plane.maybe_sent_through
    return of_before or plane.is_checkpointed(message.slot, message.id, message.version)


def withdraw(plane: MessageScheduler, message: Message, fate: WithdrawalResult, *, counted: bool) -> bool:
    """Says whether a message that is not held back was taken back; False when it was sent, or may have been.

    Args:
        plane: Whose message it is.
        message: A version that a guard covers.
        fate: Of the moment at which the guard was known here.
        counted: Another guard covered it before, so that it is in the tally.
    """
    # It may have been let go since then.
    taken_back = remove_from_queue(plane, message).taken_back if fate.taken_back is None else fate.taken_back
    if taken_back is not None:
        return taken_back
    if not fate.maybe_sent and not counted:
        plane.checkpoints.count(CANCELLED)
    return not fate.maybe_sent


def _take_back_row(plane: MessageScheduler, row: QueuedMessage) -> bool:
    if row.stage is Stage.DONE or row.handed:
        return False
    if row.stage in (Stage.READY, Stage.WRITTEN, Stage.WRITING):
        plane.withdraw(row)
    # One that is being sent, and was not handed over: whoever is about to do so looks at the guard in the same step.
    return not row.maybe_sent
