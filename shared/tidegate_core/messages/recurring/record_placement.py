"""Where the record of a recurring message belongs: among those that a recovery reads, or out of its way until its time comes near."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidegate_core.messages.recurring.fire_series import Fire, FireSeries
from tidegate_core.messages.wire.due_queue import Place
from tidegate_core.rows.recurring_message import Interval, Recurring


class Placement(NamedTuple):
    """Where a record belongs.

    Attributes:
        spans: What is left of its intervals.
        first: Fire of the open one that is to come next.
        is_near: Something of it has to be known at a recovery.
    """

    spans: list[Interval]
    first: Fire | None
    is_near: bool


def belongs_of(
    spans: Sequence[tuple[Interval, FireSeries]],
    record: Recurring,
    position: Place,
    searched: Mapping[int, int],
    far_from: int,
) -> Placement:
    """Returns where a record of these intervals belongs.

    Ended intervals are kept until all of theirs is certainly done, so that a successor counts what this owner has seen and no checkpoint
    told.

    Args:
        spans: The intervals, each with its fires.
        record: As it is now; what its summons says was searched is not searched again.
        position: What is certainly done.
        searched: By generation: the slot before which nothing is to be sent, as far as it is known in memory.
        far_from: Instant behind which a fire is far.
    """
    kept = [(span, series) for span, series in spans if span.is_open or _has_more(series, position)]
    following = [
        series.after(max(position, _searched(record, span, searched))) for span, series in kept if span.is_open
    ]
    first = following[0] if following else None
    is_near = any(not span.is_open for span, _ in kept) or (first is not None and first.slot <= far_from)
    return Placement([span for span, _ in kept], first, is_near)


def _has_more(series: FireSeries, position: Place) -> bool:
    return series.after(position) is not None or any(True for _ in series.cancelled(position))


def _searched(record: Recurring, interval: Interval, searched: Mapping[int, int]) -> Place:
    is_of_the_record = any(span.is_open and span.generation == interval.generation for span in record.spans())
    told = (record.summons or 0) if is_of_the_record else 0
    return (max(told, searched.get(interval.generation, 0)), "", "")
