"""I8: a message is sent again only after a crash, and then at most 5 s or 1,000 messages of a shard are."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tests.simulation.checks.request_history import NEVER, SKEW_MS
from tidegate_core.rows import keys

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.world.observations import Delivery, Try

REPEATS_MAX: Final = 1_000
REPEATED_MS_MAX: Final = 5_000
WRITE_MS: Final = 2_500
"""What a checkpoint may take, from its time until it is there."""
COVERED_MS: Final = REPEATED_MS_MAX + WRITE_MS
"""What was sent so long ago lies before the durable position, where nothing is in a checkpoint's way."""


def check_repeats(case: Case) -> Iterator[str]:
    sent: dict[str, list[Delivery]] = {}
    for delivery in case.record.deliveries:
        sent.setdefault(delivery.id, []).append(delivery)
    again: dict[tuple[str, str], list[Delivery]] = {}
    for deliveries in sent.values():
        for before, after in itertools.pairwise(sorted(deliveries, key=lambda each: each.sent.at)):
            if (before.sent.stint, before.id) not in case.record.unsure:
                yield from _check_repeat(case, before, after)
                if before.sent.stint != after.sent.stint:
                    again.setdefault((before.sent.stint, before.id.split("-", 1)[0]), []).append(before)
    for (stint, shard), repeated in again.items():
        yield from _check_bound(case, stint, shard, repeated)


def _check_repeat(case: Case, before: Delivery, after: Delivery) -> Iterator[str]:
    stint = case.record.stints[before.sent.stint]
    if before.sent.stint == after.sent.stint:
        yield f"I8: {before.message} was sent twice by {after.sent.stint}"
    elif (
        stint.ended is not None
        and stint.orderly
        and not _is_of_a_late_row(case, before, after)
        and not _is_of_a_former_owner(case, before, after)
    ):
        yield f"I8: {before.message} was sent again by {after.sent.stint} after an orderly hand-over"


def _is_of_a_late_row(case: Case, before: Delivery, after: Delivery) -> bool:
    """Whether a row of it came from a former owner, who was put out, when who sent it first had begun, and maybe read all."""
    shard, message_id = before.id.split("-", 1)
    begun = case.record.stints[before.sent.stint].begun
    return any(
        begun <= at <= after.sent.at and writer != before.sent.owner
        for at, writer in case.world.cluster.store.rows_put[keys.shard_pk(int(shard)), message_id]
    )


def _is_of_a_former_owner(case: Case, before: Delivery, after: Delivery) -> bool:
    """Whether who sent it again had the shard before who sent it first, which took it from it: no hand-over lies in between."""
    first, again = _taken_by(case, before), _taken_by(case, after)
    return first is not None and again is not None and again < first


def _taken_by(case: Case, delivery: Delivery) -> int | None:
    """When who sent it had taken its shard."""
    pk = keys.shard_pk(int(delivery.id.split("-", 1)[0]))
    tenure = int(delivery.sent.stint.rsplit("/", 1)[1].split(".")[1])
    return max(
        (
            at
            for at, author in case.record.taken[pk]
            if at <= delivery.sent.at and (author.owner, author.tenure) == (delivery.sent.owner, tenure)
        ),
        default=None,
    )


def _check_bound(case: Case, stint: str, shard: str, repeated: list[Delivery]) -> Iterator[str]:
    """Judges what one owner of a shard sent and the next one sent again: more than 1,000 are what was sent within 5 s.

    Once its bound has stopped it, what repeats does not grow, however long it waits for a checkpoint that cannot come through. Where one
    could, those of the last seconds are all that repeats, and what stands behind a message whose record got no answer: no position passes
    that, however often it is sent (seed 39009083).
    """
    if len(repeated) <= REPEATS_MAX:
        return
    first, latest = min(each.sent.at for each in repeated), max(each.sent.at for each in repeated)
    end = case.last_act(case.record.stints[stint])
    many = f"I8: {len(repeated)} messages of shard {shard} were sent again after {stint}"
    if latest - first > REPEATED_MS_MAX + SKEW_MS:
        yield f"{many}, which had sent them within {latest - first} ms"
        return
    covered = end - COVERED_MS
    unanswered = _oldest_unanswered(case, stint, shard, covered, end)
    if any(each.sent.at < covered and each.nominal < unanswered for each in repeated) and not (
        case.is_disturbed(covered, end) or case.is_unsettled(covered, end)
    ):
        yield f"{many}, the oldest of them {end - first} ms before its end"


def _oldest_unanswered(case: Case, stint: str, shard: str, instant: int, end: int) -> int:
    """Returns the nominal of the oldest message of the shard that the stint had handed over before an instant, without an answer at that,
    and had sent again later, or not any more; without one that of nothing at all.
    """
    tries: dict[str, list[Try]] = {}
    for each in case.record.tries.get(stint, ()):
        if each.id.startswith(f"{shard}-") and (stint, each.id) in case.record.unsure:
            tries.setdefault(each.id, []).append(each)
    return min(
        (
            mine[0].nominal
            for name, mine in tries.items()
            if mine[0].at < instant <= max([mine[-1].at, *(at for at in case.record.tried[name] if at <= end)])
        ),
        default=NEVER,
    )
