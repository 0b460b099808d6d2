"""Next attempts of refused messages that lie beyond what is in memory: a cancel has to know that nobody has sent them.

A message's own row says where its first timer row lies, and not where the broker's refusals have moved it since. Whose time is over, and
what is not in memory, would pass for sent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from tidegate_core.engine.operations import Operation
from tidegate_core.messages.wire.delivery_retries import RETRY_LAST_MS
from tidegate_core.messages.wire.due_queue import Place
from tidegate_core.rows import keys
from tidegate_core.rows.effects import ReadRange
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import Message, MessageTimer
from tidegate_core.rows.store_operations import Item, Page, RangeRead

if TYPE_CHECKING:
    from tidegate_core.messages.message_scheduler import MessageScheduler


class NextAttempts:
    """One per delivery plane. Those of predecessors are read when they are first asked for: none of them comes after the fence."""

    def __init__(self, plane: MessageScheduler) -> None:
        self._plane = plane
        self._known: dict[tuple[str, str], MessageTimer] = {}
        self._are_read = False

    def of(self, message: Message) -> MessageTimer | None:
        return self._known.get((message.id, message.version))

    def leave(self, timer: MessageTimer) -> None:
        """It is in the store, and memory has no room for it. Of an occurrence its schedule's requests have to know, and no cancel."""
        if timer.ref is None:
            self._known[(timer.id, timer.version)] = timer
        else:
            self._plane.recurring.refused.note(timer)

    def have_come(self, timers: Iterable[MessageTimer]) -> None:
        """Their page is loaded: whatever became of them, memory says it from now on."""
        for timer in timers if self._known else ():
            self._known.pop((timer.id, timer.version), None)

    def learn(self, messages: Iterable[Message]) -> Operation[None]:
        """Reads those of predecessors, where one of the messages may be among them."""
        if any(map(self._may_wait, messages)):
            yield from self.learn_all()

    def learn_all(self, between_pages: Callable[[], Operation[None]] | None = None) -> Operation[None]:
        """Reads those of predecessors, once, as long as some may lie beyond what is in memory.

        Args:
            between_pages: Runs after each page. There may be hundreds, and a caller that holds the shard's lane lets others have it.
        """
        plane = self._plane
        last = plane.maybe_sent_through + RETRY_LAST_MS
        if self._are_read or plane.window.loaded_through[0] > last:
            return
        after, high = (
            _key(plane.window.loaded_through),
            f"{keys.MESSAGE_TIMER_PREFIX}{keys.instant_text(last)}#{keys.LAST}",
        )
        while after < high:
            page = yield from plane.host.read_for_good(
                ReadRange(RangeRead(keys.shard_pk(plane.shard), keys.MESSAGE_TIMER_PREFIX, high, after=after))
            )
            assert isinstance(page, Page)
            self._take(page.items)
            after = page.next_after or high
            if between_pages is not None:
                yield from between_pages()
        self._are_read = True

    def _may_wait(self, message: Message) -> bool:
        rows = self._plane.slots.of(message.id)
        is_in_memory = any(row.version == message.version and not row.double for row in rows)
        return message.nominal <= self._plane.maybe_sent_through and not is_in_memory

    def _take(self, items: Sequence[Item]) -> None:
        loaded = self._plane.window.loaded_through
        for item in items:
            if int(str(item.get("attempt", 1))) > 1:
                timer = from_item(MessageTimer, item)
                if (timer.slot, timer.id, timer.version) > loaded:
                    self.leave(timer)


def _key(place: Place) -> str:
    slot, message_id, version = place
    return f"{keys.MESSAGE_TIMER_PREFIX}{keys.instant_text(slot)}#{message_id}#{version}"
