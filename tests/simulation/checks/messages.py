"""I8 and the messages' part of I7: none lost, none early, none that was taken back, whatever it expires or was cancelled."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tests.simulation.checks.case import A_MESSAGE_WAITS_FOR, position_pk
from tests.simulation.checks.recurring_messages import turn_of
from tests.simulation.checks.repeat_bound import is_at_bound
from tests.simulation.checks.request_history import SKEW_MS
from tests.simulation.users.message_senders import NAMESPACE, broken_request
from tests.simulation.world.cluster import REQUESTS_DLQ
from tests.simulation.world.timeline import START
from tidegate_core.rows import keys

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.users.sent_message import Letter
    from tests.simulation.world.observations import Delivery

READ_MS: Final = 50
"""Between a group's look at the clock and its produce."""
WRITTEN_MS: Final = 10_000
"""A create's rows are there so long after its record, where nothing is in the way."""
GOES_OUT_MS: Final = 3_000
"""A message that has its turn is sent within this, where nothing is in the way."""
MAYBE_SENT_MS: Final = 1_000
"""Production's: what is due so long after a fence may have been sent by the owner before."""


def check_messages(case: Case) -> Iterator[str]:
    deliveries: dict[str, list[Delivery]] = {}
    for delivery in case.record.deliveries:
        deliveries.setdefault(delivery.message, []).append(delivery)
    for letter in case.world.senders.letters.values():
        mine = deliveries.get(letter.name, [])
        yield from _check_time(letter, mine)
        yield from _check_number(case, letter, mine)
        yield from _check_taken_back(letter, mine)
        yield from _check_cancel(case, letter)
    yield from _check_dead_letters(case)


def _check_dead_letters(case: Case) -> Iterator[str]:
    """One by one: a letter may be there twice, and others lie on that topic as well."""
    buried = {record.value for log in case.world.cluster.broker.topics[REQUESTS_DLQ].logs for record in log}
    senders = case.world.senders
    for number in range(1, senders.broken + 1):
        records = senders.broken_at.get(number, [])
        is_gone = bool(records) and all(case.is_gone(each, open_too=True) for each in records)
        if not is_gone and broken_request(number) not in buried:
            yield f"dead letters: broken request {number} has none, its records: {[each.text() for each in records]}"


def _check_time(letter: Letter, mine: list[Delivery]) -> Iterator[str]:
    for delivery in mine:
        if delivery.sent.clock < letter.due:
            yield f"I8: {letter.name} was sent {letter.due - delivery.sent.clock} ms early by {delivery.sent.stint}"
        if letter.expires is not None and delivery.sent.clock > letter.expires + READ_MS:
            yield f"I8: {letter.name} was sent although it had expired"


def _check_number(case: Case, letter: Letter, mine: list[Delivery]) -> Iterator[str]:
    if not letter.records:
        return
    read = sum(not case.is_gone(position) for position in letter.positions)
    # Also where it was answered before a position said so: what is not passed is gone with its topic (docs/internals/protocol.md states it).
    wanted = min(1, read) if letter.has_id else read
    ids = {delivery.id for delivery in mine}
    if len(ids) < wanted and not _may_be_missing(case, letter):
        due = f"{(letter.due - START) / 1000:.3f}s"
        fate = "" if letter.ended is None or letter.ended.receipt is None else f", {letter.ended.status}"
        yield f"I8: {letter.name}, due at {due}{fate}, was delivered {len(ids)} of {wanted} times"
    if len(ids) > wanted:
        yield f"I8: {letter.name} was delivered under {len(ids)} ids, {wanted} would be right"
    right = {"accepted"} if letter.asked and len(letter.asked.appended) < 2 else {"accepted", "unchanged"}
    if letter.asked is not None and letter.asked.receipt is not None and letter.asked.status not in right:
        yield f"answers: {letter.name} was answered {letter.asked.status}"


def _may_be_missing(case: Case, letter: Letter) -> bool:
    ended = letter.ended
    if ended is not None and ended.receipt is not None and ended.status not in {"not_found", "too_late"}:
        return True
    if ended is not None and ended.receipt is not None and ended.status == "too_late" and letter.followed is not None:
        return True  # A later send under its key has replaced what was still on its way.
    return letter.expires is not None and not _was_surely_served(case, letter, letter.expires)


def _was_surely_served(case: Case, letter: Letter, expires: int) -> bool:
    """Whether it was read, and one owner was there and could work, from long before its time until it expired.

    Whoever reads its record and hands it over need not be the owner of its shard.
    """
    written = WRITTEN_MS + case.queued_ms
    since = letter.due - written
    if not _was_dealt_with(case, letter, expires):
        waits_for = {*map(position_pk, letter.positions), *map(keys.shard_pk, letter.shards)}
        since = case.records_had_since(waits_for, letter.due, written + case.scattered_ms + case.unheard_ms)
    return (
        max(map(case.request_readable_at, letter.records)) <= since
        and letter.name not in case.record.not_sent
        and not case.wide.maybe(NAMESPACE, letter.due, expires)
        and not case.is_disturbed(since, expires, A_MESSAGE_WAITS_FOR)
        and all(case.is_held(each.topic_partition, since, expires, each.topic_id) for each in letter.positions)
        and all(case.is_served(shard, since, expires) for shard in set(letter.shards))
        and not any(is_at_bound(case, shard, since, expires) for shard in set(letter.shards))
        # Rows go out in their order, as many groups at a time as may be under way: those before it may keep it from its turn.
        and all(turn_of(case, shard, letter.due, letter.due) + GOES_OUT_MS <= expires for shard in set(letter.shards))
    )


def _was_dealt_with(case: Case, letter: Letter, by: int) -> bool:
    """Whether the store says that whoever owns it might send it: of records of one id that of the first, else that of each."""
    through = [case.is_dealt_with(each, by) for each in letter.positions]
    return any(through) if letter.has_id else all(through)


def _check_taken_back(letter: Letter, mine: list[Delivery]) -> Iterator[str]:
    ended = letter.ended
    if ended is None or ended.receipt is None:
        return
    if ended.status == "too_late" and letter.followed is not None:
        ended = letter.followed
        if ended.receipt is None:
            return
    replaced = ended.document["type"] == "message.send" and ended.status in {"accepted", "unchanged"}
    if not replaced and ended.status != "cancelled":
        return
    how = "replaced" if replaced else "cancelled"
    for delivery in mine:
        if delivery.sent.at > ended.acked_at:
            late = delivery.sent.at - ended.acked_at
            yield f"I7: {letter.name} was sent {late} ms after it was acknowledged as {how} ({ended.id})"
        elif how == "cancelled":
            yield f"I8: {letter.name} was sent, and its cancel {ended.id} was answered cancelled"


def _check_cancel(case: Case, letter: Letter) -> Iterator[str]:
    """Whoever knows that it was accepted, and cancels it, hears which of the two it came to: `too_late` not before its time.

    Of one with a record that is gone with its topic the answer may be about what was there before it.
    """
    ended = letter.ended
    if ended is None or ended.receipt is None or ended.document["type"] != "message.cancel":
        return
    if any(case.is_gone(position) for position in letter.positions):
        return
    # An owner that has just come takes what is due within a moment for sent, by its own clock.
    early = letter.due - MAYBE_SENT_MS - SKEW_MS - ended.acked_at
    if ended.status not in {"cancelled", "too_late"}:
        yield f"answers: {letter.name} was accepted, and its cancel {ended.id} was answered {ended.status}"
    elif ended.status == "too_late" and early > 0:
        yield f"answers: the cancel {ended.id} of {letter.name} was answered too_late {early} ms before it could be"
