"""WAKE"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from tidegate_core.engine.operations import Operation
from tidegate_core.messages.recurring.fire_series import Fire, FireSeries
from tidegate_core.messages.wire.due_queue import Place, QueuedMessage, Stage
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.messages.wire.timer_window import place_of
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.recurring_message import SUMMONS, Interval, Recurring, WakeRow
from tidegate_core.rows.store_operations import Item, Key


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


LEFT_AFTER_MS: Final = 120_000
"""After its slot: a row that is taken as it comes near waits for the lane by then, or is dealt with."""


class WakeRows:
    """One per shard: the summons that the lane has not come to yet. No checkpoint passes their places before it has."""

    def __init__(self, messages: ShardMessages, is_near: Callable[[str], bool]) -> None:
        self._messages = messages
        self._is_near = is_near
        self._waiting: dict[Key, tuple[str, QueuedMessage]] = {}
        self._place: Callable[[str, Key | None], None] | None = None
        self._place_alone: Callable[[str, Key], Operation[None]] | None = None

    def begin(
        self, place: Callable[[str, Key | None], None], place_alone: Callable[[str, Key], Operation[None]]
    ) -> None:
        """Says how the lane is asked; see `RecurringQueue.begin`."""
        self._place, self._place_alone = place, place_alone

    def learn(self, summons: WakeRow) -> None:
        """The lane has written it."""
        # It may come so late that the window was extended past it; what lies behind is loaded in its turn.
        if summons.slot <= self._messages.window.taking_through:
            self._take(summons)

    def take_from(self, items: Sequence[Item]) -> None:
        """Takes the summons out of a page."""
        for item in items:
            if is_wake_row(item):
                self._take(from_item(WakeRow, item))

    def _take(self, summons: WakeRow) -> None:
        """A far record's time comes near: no checkpoint passes this place before it is in memory."""
        ref, key = keys.schedule_ref(summons.namespace, summons.name), summons.key(self._messages.shard)
        self._ask(ref, key, summons.slot)

    def _ask(self, ref: str, key: Key, slot: int) -> None:
        """Has the lane deal with a row, once; no checkpoint passes the slot before it has."""
        if key in self._waiting:
            return
        _, series, version = place_of(key.sk)
        row = QueuedMessage(slot, series, version, "", 0, Stage.WRITTEN, size=0)
        if self._messages.slots.add(row) and self._place is not None:
            self._waiting[key] = (ref, row)
            self._place(ref, key)

    # -- those that could not be dealt with ----------------------------------------------------------------------------

    def is_left(self, summons: Key) -> bool:
        """Whether no look ahead comes to the row any more: the position has passed it, or stands still although it was due. Behind an outage
        much was due that the look ahead has not come to yet.
        """
        place = place_of(summons.sk)
        passed = place <= self._messages.checkpoints.stored or place[0] < self._messages.host.now - LEFT_AFTER_MS
        return passed and place <= self._messages.window.loaded_through and summons not in self._waiting

    def again(self, ref: str, summons: Key) -> None:
        """Asks the lane anew, as of now; not of a record that is in memory, because the move that wrote its row has not been answered."""
        if self._is_near(ref):
            return
        self._ask(ref, summons, self._messages.checkpoints.slot_for(self._messages.host.now))

    def asked_anew(self, summons: Key) -> int | None:
        """Returns the slot from which what the row announces may be sent, which no checkpoint passes before the lane has dealt with it; None where
        that is the row's own.
        """
        _, row = self._waiting.get(summons, ("", None))
        return None if row is None or row.slot <= place_of(summons.sk)[0] else row.slot

    def bring_near(self) -> Operation[None]:
        """At a drain: what was summoned before places that were sent already, and the lane did not come to.

        No checkpoint passes a summons, so the successor would send again what was sent behind it.
        """
        sent = self._messages.checkpoints.sent_through
        for key, (ref, row) in list(self._waiting.items()):
            if row.place <= sent and self._place_alone is not None:
                yield from self._messages.host.safely("recurring", ref, self._place_alone(ref, key))
                if key in self._waiting:
                    self.given_up(key)  # The hand-over goes on without it: what was sent behind it would be sent again.

    def answered(self, summons: Key) -> None:
        """The lane has done what the row asked for, and removed it."""
        self._close(summons)

    def given_up(self, summons: Key) -> None:
        """The lane cannot do what the row asks for, as things are: what it announces is held up, and the shard's other messages are not. The
        stored row stays, for whoever can.
        """
        self._close(summons)

    def _close(self, summons: Key) -> None:
        _, row = self._waiting.pop(summons, ("", None))
        if row is not None:
            self._messages.close(row, Stage.GONE)


def is_wake_row(item: Item) -> bool:
    """Whether a timer row announces a far schedule, and is no message's."""
    return str(item["sk"]).endswith(f"#{SUMMONS}")
