"""Loads timer rows into memory a minute ahead, renews late rows, and knows the next attempts after the window.

The scheduler extends the window and takes the pages; cancels ask for next attempts. Only `renew` writes: it gives late rows a new
expiry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tidegate_core.engine.actor_context import ActorContext, InvalidWrite
from tidegate_core.engine.operations import Operation
from tidegate_core.messages.wire.due_queue import DueQueue, Place
from tidegate_core.messages.wire.row_expiry import row_expiry, write
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read, ReadRange
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.message import Message, MessageTimer
from tidegate_core.rows.store_operations import Delete, Item, Page, Put, RangeRead
from tidegate_core.writes.message_delivery import Progress

RETRY_LAST_MS = 300_000
"""Longest pause before the next attempt of a refused message."""
WINDOW_MS = 60_000
"""How far ahead timer rows are loaded; the window is extended at half of this."""
ROWS_MAX = 100_000
"""Rows in memory that came from the store (50 MB): a backlog is loaded as it is delivered. New rows of this owner come on top,
as many as senders create for the next minute."""
ROOM_CHECK_MS = 200
"""Pause between two checks of full memory."""
LAG_MS = 7 * 86_400_000
"""A quarter of the life of a row: a later row is written again before its delivery, so it cannot expire first."""
RENEWED_TOGETHER = 40
"""Message rows that are renewed together: 10 MB of the largest payloads."""


class Window:
    """The timer rows in memory.

    Fires of recurring messages have no timer row. They must be in `queue` up to the same place before `loaded_through` rises,
    because the checkpoint relies on that place alone.

    Args:
        host: Shared parts of the partition actor.
        shard: 0 to S-1.
        queue: The rows in memory.
        progress: The delivery position at the fence; rows that it covers are not read.
        take: Adds the rows of one page.

    Attributes:
        loaded_through: Place up to which every stored row is in memory. No checkpoint passes it.
        taking_through: Slot up to which this owner adds its new rows to memory directly: the load in progress may have read
            their place before they were written.
    """

    def __init__(
        self,
        host: ActorContext,
        shard: int,
        queue: DueQueue,
        progress: Progress,
        take: Callable[[Sequence[Item]], Operation[None]],
    ) -> None:
        self._host = host
        self._pk = keys.shard_pk(shard)
        self._queue = queue
        self._take = take
        self._after = f"{keys.MESSAGE_TIMER_PREFIX}{keys.instant_text(progress.slot)}#{progress.id}"
        self.loaded_through: Place = place_of(self._after)
        self.taking_through = progress.slot
        self.closed = False

    def extend(self) -> Operation[None]:
        """Loads rows up to the end of the window, or until memory is full. Each page counts at once, so a slow store delays only the rest."""
        horizon = self._host.now + WINDOW_MS
        high = f"{keys.MESSAGE_TIMER_PREFIX}{keys.instant_text(horizon)}#{keys.LAST}"
        self.taking_through = max(self.taking_through, horizon)
        while self._after < high and self._queue.loaded < ROWS_MAX:
            page = yield from self._host.read_for_good(
                ReadRange(RangeRead(self._pk, keys.MESSAGE_TIMER_PREFIX, high, after=self._after))
            )
            assert isinstance(page, Page)
            yield from self._take(page.items)
            self._after = page.next_after or high
            self.loaded_through = place_of(self._after)
        # A later load reads rows that are created after this place from now on.
        self.taking_through = self.loaded_through[0]

    def keep_extended(self) -> Operation[None]:
        """Extends the window at half of its length, until `closed`."""
        while not self.closed:
            ahead = self.loaded_through[0] - self._host.now
            if ahead > WINDOW_MS // 2:
                yield from self._host.sleep(ahead - WINDOW_MS // 2, routine=True)
            elif self._queue.loaded > ROWS_MAX // 2:
                yield from self._host.sleep(ROOM_CHECK_MS)
            else:
                yield from self.extend()


def place_of(sort_key: str) -> Place:
    """Returns the place of a timer row's sort key, or of a key that ends a range."""
    _, slot, name = sort_key.split("#", 2)
    message_id, _, version = name.partition("#")
    return (int(slot), message_id, version)


def renew(host: ActorContext, shard: int, timers: Sequence[MessageTimer]) -> Operation[None]:
    """Writes very late rows again, with a new expiry, before their delivery."""
    late = [timer for timer in timers if timer.slot + LAG_MS < host.now]
    if not late:
        return
    host.note("shard_lags", shard=shard, rows=len(late), since=late[0].slot)
    expires_at = row_expiry(host.now)
    for first in range(0, len(late), RENEWED_TOGETHER):
        group = late[first : first + RENEWED_TOGETHER]
        wanted = dict.fromkeys(keys.message(shard, timer.id, timer.version) for timer in group)
        answer = yield from host.read_for_good(Read(tuple(wanted)))
        assert isinstance(answer, Items)
        renewed = [replace(timer, expires_at=expires_at) for timer in group]
        actions: list[Put | Delete] = [Put(each.key(shard), to_item(each, each.key(shard))) for each in renewed]
        actions += [Put(key, {**item, "expires_at": expires_at}) for key, item in answer.found.items()]
        try:
            yield from write(host, "renewed", actions)
        except InvalidWrite as error:
            host.failed(
                "renew", f"shard {shard}", error
            )  # The rows keep their expiry, and may expire before delivery: the event reports it.


class NextAttempts:
    """Next attempts of refused messages after the window, which a cancel must not take for sent. One per shard.

    A message row names the first slot of its message, and not the slot of a later attempt. A message that is due and not in
    memory would look as if it had been sent. Attempts of predecessors are read on first demand: none of them is written
    after the fence.

    Args:
        host: Shared parts of the partition actor.
        shard: 0 to S-1.
        queue: The rows in memory.
        window: Rows that it has loaded are not kept here.
        maybe_sent_through: Instant up to which a predecessor may have sent messages.
        note_fire: Takes the next attempts of recurring messages: requests for their schedule ask for these, and no cancel does.
    """

    def __init__(
        self,
        host: ActorContext,
        shard: int,
        queue: DueQueue,
        window: Window,
        maybe_sent_through: int,
        note_fire: Callable[[MessageTimer], None],
    ) -> None:
        self._host = host
        self._pk = keys.shard_pk(shard)
        self._queue = queue
        self._window = window
        self._maybe_sent_through = maybe_sent_through
        self._note_fire = note_fire
        self._known: dict[tuple[str, str], MessageTimer] = {}
        self._are_read = False

    def of(self, message: Message) -> MessageTimer | None:
        return self._known.get((message.id, message.version))

    def leave(self, timer: MessageTimer) -> None:
        """Notes a stored attempt for which memory has no room."""
        if timer.ref is None:
            self._known[(timer.id, timer.version)] = timer
        else:
            self._note_fire(timer)

    def have_come(self, timers: Iterable[MessageTimer]) -> None:
        """Forgets the attempts of a page that was loaded: the rows in memory now tell their outcome."""
        for timer in timers if self._known else ():
            self._known.pop((timer.id, timer.version), None)

    def learn(self, messages: Iterable[Message]) -> Operation[None]:
        """Reads the attempts of predecessors if one of the messages may be among them."""
        if any(map(self._may_wait, messages)):
            yield from self.learn_all()

    def learn_all(self, between_pages: Callable[[], Operation[None]] | None = None) -> Operation[None]:
        """Reads the attempts of predecessors, once, while some may lie after the window.

        Args:
            between_pages: Runs after each page. There may be hundreds, and a caller in the shard writer then yields its turn.
        """
        loaded = self._window.loaded_through
        last = self._maybe_sent_through + RETRY_LAST_MS
        if self._are_read or loaded[0] > last:
            return
        after, high = _key(loaded), f"{keys.MESSAGE_TIMER_PREFIX}{keys.instant_text(last)}#{keys.LAST}"
        while after < high:
            page = yield from self._host.read_for_good(
                ReadRange(RangeRead(self._pk, keys.MESSAGE_TIMER_PREFIX, high, after=after))
            )
            assert isinstance(page, Page)
            self._take(page.items)
            after = page.next_after or high
            if between_pages is not None:
                yield from between_pages()
        self._are_read = True

    def _may_wait(self, message: Message) -> bool:
        rows = self._queue.of(message.id)
        is_in_memory = any(row.version == message.version and not row.double for row in rows)
        return message.nominal <= self._maybe_sent_through and not is_in_memory

    def _take(self, items: Sequence[Item]) -> None:
        loaded = self._window.loaded_through
        for item in items:
            if int(str(item.get("attempt", 1))) > 1:
                timer = from_item(MessageTimer, item)
                if (timer.slot, timer.id, timer.version) > loaded:
                    self.leave(timer)


def _key(place: Place) -> str:
    slot, message_id, version = place
    return f"{keys.MESSAGE_TIMER_PREFIX}{keys.instant_text(slot)}#{message_id}#{version}"
