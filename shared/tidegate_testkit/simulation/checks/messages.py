"""I8 and the messages' part of I7: none lost, never early, repeats only after a crash, and none that was taken back."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidegate_testkit.simulation.cluster import REQUESTS_DLQ
from tidegate_testkit.simulation.timeline import START

if TYPE_CHECKING:
    from tidegate_testkit.simulation.messages import Letter
    from tidegate_testkit.simulation.record import Delivery, Record
    from tidegate_testkit.simulation.world import World

READ_MS = 50
"""Between a group's look at the clock and its produce."""


def check_messages(world: World) -> Iterator[str]:
    deliveries: dict[str, list[Delivery]] = {}
    for delivery in world.cluster.record.deliveries:
        deliveries.setdefault(delivery.message, []).append(delivery)
    for letter in world.senders.letters.values():
        mine = deliveries.get(letter.name, [])
        yield from _check_time(letter, mine)
        yield from _check_lost(letter, mine)
        yield from _check_taken_back(letter, mine)
        yield from _check_repeats(world.cluster.record, letter, mine)
    buried = world.cluster.broker.topics[REQUESTS_DLQ].logs
    if sum(len(log) for log in buried) < world.senders.broken:
        yield f"dead letters: {sum(len(log) for log in buried)} of {world.senders.broken} broken requests are there"


def _check_time(letter: Letter, mine: list[Delivery]) -> Iterator[str]:
    for delivery in mine:
        if delivery.sent.clock < letter.due:
            yield f"I8: {letter.name} was sent {letter.due - delivery.sent.clock} ms early by {delivery.sent.tenure}"
        if letter.expires is not None and delivery.sent.clock > letter.expires + READ_MS:
            yield f"I8: {letter.name} was sent although it had expired"


def _check_lost(letter: Letter, mine: list[Delivery]) -> Iterator[str]:
    if not letter.records:
        return
    ended = letter.ended is not None and letter.ended.receipt is not None and letter.ended.status != "not_found"
    wanted = 1 if letter.has_id else len(letter.records)
    ids = {delivery.id for delivery in mine}
    if letter.expire_ms is None and not ended and len(ids) < wanted:
        yield f"I8: {letter.name}, due at {(letter.due - START) / 1000:.3f}s, was delivered {len(ids)} of {wanted} times"
    if len(ids) > wanted:
        yield f"I8: {letter.name} was delivered under {len(ids)} ids, {wanted} would be right"
    right = {"accepted"} if letter.asked and len(letter.asked.appended) < 2 else {"accepted", "unchanged"}
    if letter.asked is not None and letter.asked.receipt is not None and letter.asked.status not in right:
        yield f"answers: {letter.name} was answered {letter.asked.status}"


def _check_taken_back(letter: Letter, mine: list[Delivery]) -> Iterator[str]:
    ended = letter.ended
    if ended is None or ended.receipt is None:
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


def _check_repeats(record: Record, letter: Letter, mine: list[Delivery]) -> Iterator[str]:
    by_id: dict[str, list[Delivery]] = {}
    for delivery in sorted(mine, key=lambda each: each.sent.at):
        by_id.setdefault(delivery.id, []).append(delivery)
    for repeats in by_id.values():
        for before, after in itertools.pairwise(repeats):
            if (before.sent.tenure, letter.name) in record.unsure:
                continue
            ends = record.tenures.get(before.sent.tenure, [])
            if before.sent.tenure == after.sent.tenure:
                yield f"I8: {letter.name} was sent twice by {after.sent.tenure}"
            elif ends and all(end.orderly for end in ends):
                yield f"I8: {letter.name} was sent again by {after.sent.tenure} after an orderly hand-over"
