"""Far records of recurring messages: where a record belongs, and the wake row that brings a far record near.

A recovery reads near records only. A record whose next fire is far gets a wake row, a timer row shortly before that fire. The
recurring queue asks for the placement; the shard writer moves records and writes the rows (`recurring_change`).
"""

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
        spans: Intervals that are still needed.
        first: Next fire of the open interval.
        is_near: A recovery needs the record.
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

    An ended interval is kept until the stored position has passed all its fires. So a successor counts fires whose outcome no
    checkpoint has stored.

    Args:
        spans: The intervals, each with its fires.
        record: The present record; the span before its wake row is not searched again.
        position: The stored delivery position.
        searched: By generation, the slot before which memory knows that no fire is left.
        far_from: Instant after which a fire is far.
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
"""Time after its slot by which a loaded wake row has reached the shard writer or is complete."""


class WakeRows:
    """Wake rows that wait for the shard writer; no checkpoint passes their places before it has handled them. One per shard."""

    def __init__(self, messages: ShardMessages, is_near: Callable[[str], bool]) -> None:
        self._messages = messages
        self._is_near = is_near
        self._waiting: dict[Key, tuple[str, QueuedMessage]] = {}
        self._place: Callable[[str, Key | None], None] | None = None
        self._place_alone: Callable[[str, Key], Operation[None]] | None = None

    def begin(
        self, place: Callable[[str, Key | None], None], place_alone: Callable[[str, Key], Operation[None]]
    ) -> None:
        """Sets the calls into the shard writer; see `RecurringQueue.begin`."""
        self._place, self._place_alone = place, place_alone

    def learn(self, summons: WakeRow) -> None:
        """Notes a wake row that the shard writer has written."""
        # The window may already be past the new row; the window loads a row after it later.
        if summons.slot <= self._messages.window.taking_through:
            self._take(summons)

    def take_from(self, items: Sequence[Item]) -> None:
        """Takes the wake rows of a page."""
        for item in items:
            if is_wake_row(item):
                self._take(from_item(WakeRow, item))

    def _take(self, summons: WakeRow) -> None:
        """Has a far record brought near; no checkpoint passes the row's place before that."""
        ref, key = keys.schedule_ref(summons.namespace, summons.name), summons.key(self._messages.shard)
        self._ask(ref, key, summons.slot)

    def _ask(self, ref: str, key: Key, slot: int) -> None:
        """Has the shard writer handle a row, once; no checkpoint passes the slot before that."""
        if key in self._waiting:
            return
        _, series, version = place_of(key.sk)
        row = QueuedMessage(slot, series, version, "", 0, Stage.WRITTEN, size=0)
        if self._messages.queue.add(row) and self._place is not None:
            self._waiting[key] = (ref, row)
            self._place(ref, key)

    # -- rows that could not be handled --------------------------------------------------------------------------------

    def is_left(self, summons: Key) -> bool:
        """Returns whether the window never reaches the row again: the position has passed it, or is stuck although the row was due.

        After an outage, many due rows are still to be loaded; these are not left.
        """
        place = place_of(summons.sk)
        passed = place <= self._messages.checkpoints.stored or place[0] < self._messages.host.now - LEFT_AFTER_MS
        return passed and place <= self._messages.window.loaded_through and summons not in self._waiting

    def again(self, ref: str, summons: Key) -> None:
        """Has the shard writer handle a row again, at a present slot.

        A record in memory is left alone: the move that wrote its wake row has no answer.
        """
        if self._is_near(ref):
            return
        self._ask(ref, summons, self._messages.checkpoints.slot_for(self._messages.host.now))

    def asked_anew(self, summons: Key) -> int | None:
        """Returns the slot of a row that is being handled again, or None if it has its own slot.

        The row's fires may be sent from that slot on. No checkpoint passes it before the shard writer has handled the row.
        """
        _, row = self._waiting.get(summons, ("", None))
        return None if row is None or row.slot <= place_of(summons.sk)[0] else row.slot

    def bring_near(self) -> Operation[None]:
        """During a drain, handles the wake rows before sent places that the shard writer has not reached.

        No checkpoint passes a wake row, so a successor would repeat the deliveries after it.
        """
        sent = self._messages.checkpoints.sent_through
        for key, (ref, row) in list(self._waiting.items()):
            if row.place <= sent and self._place_alone is not None:
                yield from self._messages.host.safely("recurring", ref, self._place_alone(ref, key))
                if key in self._waiting:
                    self.given_up(key)  # The hand-over goes on: deliveries after a waiting row would repeat.

    def answered(self, summons: Key) -> None:
        """Notes that the shard writer has handled and removed the row."""
        self._close(summons)

    def given_up(self, summons: Key) -> None:
        """Closes a row that the shard writer cannot handle now: only its own fires wait, and not the shard's other messages.

        The stored row stays for a later try.
        """
        self._close(summons)

    def _close(self, summons: Key) -> None:
        _, row = self._waiting.pop(summons, ("", None))
        if row is not None:
            self._messages.close(row, Stage.GONE)


def is_wake_row(item: Item) -> bool:
    """Returns whether a timer row is a wake row and belongs to no message."""
    return str(item["sk"]).endswith(f"#{SUMMONS}")
