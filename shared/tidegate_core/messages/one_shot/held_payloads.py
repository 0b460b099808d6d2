"""Keeps the payloads of held messages from expiring: a scope suspension may last for any time.

`HeldMessages` calls it. It rewrites message rows with or without an expiry (`wire.row_expiry` sets the usual one).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tidegate_core.engine.operations import Mutex, Operation
from tidegate_core.messages.wire.row_expiry import row_expiry, write
from tidegate_core.messages.wire.shard_messages import ShardMessages
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read, ReadRange
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.message import HeldMessage, Message
from tidegate_core.rows.store_operations import Page, Put, RangeRead

CHECKED_TOGETHER = 30
"""Held messages that are checked together: at most 8 MB in memory."""
FIRST_CHECK_MS = 10 * 60_000
"""Pause after a take-over: late writes of a former owner have arrived by then."""
CHECK_AGAIN_MS = 7 * 86_400_000
"""Pause between two checks: far below the 30 days after which a payload with an expiry is gone."""
GROUPS_APART_MS = 1_000
"""Pause between two groups: a check of a million held messages in a shard takes nine hours."""


class HeldPayloads:
    """The payloads of a shard's held messages."""

    def __init__(self, messages: ShardMessages) -> None:
        self._messages = messages

    def give_an_end(self, held: Sequence[HeldMessage]) -> Operation[None]:
        """Gives the payloads of released messages an expiry again. A crash before this leaves a payload that nothing reads after delivery."""
        yield from self.keep((yield from self._of(held)), for_ever=False)

    def keep(self, payloads: Sequence[Message], *, for_ever: bool) -> Operation[None]:
        """Writes payloads with or without an expiry."""
        messages = self._messages
        end = None if for_ever else row_expiry(messages.host.now)
        kept = [replace(message, expires_at=end) for message in payloads]
        puts = [Put(each.key(messages.shard), to_item(each, each.key(messages.shard))) for each in kept]
        if puts:
            yield from write(messages.host, "kept", puts)

    def keep_endless(self, turn: Mutex, may_hold: Callable[[], bool]) -> Operation[None]:
        """Checks repeatedly that the payloads of held messages have no expiry: a late write of a former owner may bring one back.

        Args:
            turn: Mutex of the moves. Under it, a message that is read as held is still held when its payload is written.
            may_hold: Returns whether messages may be held.
        """
        host, name = self._messages.host, f"shard {self._messages.shard}"
        pause = FIRST_CHECK_MS + host.jitter(f"held {self._messages.shard}", FIRST_CHECK_MS)
        while True:
            yield from host.sleep(pause, routine=True)
            if may_hold():
                yield from host.safely("keep_endless", name, self._look_for_ends(turn))
            pause = CHECK_AGAIN_MS

    def _look_for_ends(self, turn: Mutex) -> Operation[None]:
        after: str | None = ""
        while after is not None:
            after = yield from turn.of(self._take_ends_away(after))
            yield from self._messages.host.sleep(GROUPS_APART_MS, routine=True)

    def _take_ends_away(self, after: str) -> Operation[str | None]:
        """Checks the next group; returns the row after which the following group begins, or None at the end."""
        messages = self._messages
        wanted = RangeRead(
            keys.shard_pk(messages.shard), *keys.prefix_range(keys.HELD_MESSAGE_PREFIX), CHECKED_TOGETHER, after or None
        )
        page = yield from messages.host.read_for_good(ReadRange(wanted))
        assert isinstance(page, Page)
        payloads = yield from self._of([from_item(HeldMessage, item) for item in page.items])
        # The request that raised a fence discards the messages below it, and sets their expiry.
        ended = [
            each
            for each in payloads
            if each.expires_at is not None and not messages.fences.cover(each.id, each.version)
        ]
        yield from self.keep(ended, for_ever=True)
        return page.next_after

    def _of(self, held: Sequence[HeldMessage]) -> Operation[list[Message]]:
        wanted = tuple(keys.message(self._messages.shard, row.id, row.version) for row in held)
        if not wanted:
            return []
        found = yield from self._messages.host.read_for_good(Read(wanted))
        assert isinstance(found, Items)
        return [from_item(Message, item) for item in found.found.values()]
