"""I8's bound: an owner that has sent as much behind its shard's durable position as may lie there waits for a checkpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from tidegate_core.messages.wire import checkpoints

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.world.observations import Try

SENT_BEHIND: Final = "messages.wire.checkpoints:CHECKPOINT_AFTER_FIRES"
"""The knob that says how much that is."""


def is_at_bound(case: Case, shard: int, begin: int, end: int) -> bool:
    """Whether an owner had sent so much behind the shard's durable position, at some time in between, that the bound has it
    wait for a checkpoint. What the broker refused counts as well, with a place of its own for each try. Messages that moved
    to a later slot are taken for passed: this errs on the strict side.
    """
    most = case.limit(SENT_BEHIND, checkpoints.CHECKPOINT_AFTER_FIRES)
    passed = case.record.passed[shard]
    moments = [end, *(at - 1 for at, _ in passed if begin < at <= end)]
    return any(_is_behind(case, shard, moment, most) for moment in moments)


def _is_behind(case: Case, shard: int, moment: int, most: int) -> bool:
    slot = max((slot for at, slot in case.record.passed[shard] if at <= moment), default=0)
    return any(
        len(sent) >= most and moment - min(sent) >= checkpoints.CHECKPOINT_AFTER_MS
        for sent in (_sent_behind(tries, shard, slot, moment) for tries in case.record.tries.values())
    )


def _sent_behind(tries: Sequence[Try], shard: int, slot: int, moment: int) -> list[int]:
    """Returns when each place behind the slot was sent first: a refused try moves its message to another place."""
    places: dict[tuple[str, int], int] = {}
    refused: Counter[str] = Counter()
    for each in tries:
        if each.at <= moment and each.nominal > slot and each.id.startswith(f"{shard:04d}-"):
            places.setdefault((each.id, refused[each.id]), each.at)
            refused[each.id] += each.refused is not None
    return list(places.values())
