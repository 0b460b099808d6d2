"""Payloads of messages that are held back: they have no end, so that a wide suspend may last for as long as it likes.

Any other payload expires (`rows.row_expiry`), and the store drops it.
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

LOOKED_AT_TOGETHER = 30
"""8 MB at most while they are in memory."""
FIRST_CHECK_MS = 10 * 60_000
"""After a take-over: what a former owner had sent has come by then, however late."""
CHECK_AGAIN_MS = 7 * 86_400_000
"""Far below the 30 days after which a payload with an end is gone."""
GROUPS_APART_MS = 1_000
"""A million messages held back in a shard are gone through in nine hours."""


class HeldPayloads:
    """One per delivery messages."""

    def __init__(self, messages: ShardMessages) -> None:
        self._messages = messages

    def give_an_end(self, held: Sequence[HeldMessage]) -> Operation[None]:
        """Payloads of what was let go expire again; a crash before this leaves one behind, which nobody reads once it is sent."""
        yield from self.keep((yield from self._of(held)), for_ever=False)

    def keep(self, payloads: Sequence[Message], *, for_ever: bool) -> Operation[None]:
        """Writes them with or without an end."""
        messages = self._messages
        end = None if for_ever else row_expiry(messages.host.now)
        kept = [replace(message, expires_at=end) for message in payloads]
        puts = [Put(each.key(messages.shard), to_item(each, each.key(messages.shard))) for each in kept]
        if puts:
            yield from write(messages.host, "kept", puts)

    def keep_endless(self, turn: Mutex, may_hold: Callable[[], bool]) -> Operation[None]:
        """Looks, for good, whether the payloads of what is held back have no end: a row of a former owner's that comes late has one, and lies
        over that without.

        Args:
            turn: Of the moves: amid none of them, what is held back as it is read is so when its payload is written.
            may_hold: Whether anything may be held back.
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
        """Goes through the next group; returns behind which row the one after it begins, None: there is none."""
        messages = self._messages
        wanted = RangeRead(
            keys.shard_pk(messages.shard),
            *keys.prefix_range(keys.HELD_MESSAGE_PREFIX),
            LOOKED_AT_TOGETHER,
            after or None,
        )
        page = yield from messages.host.read_for_good(ReadRange(wanted))
        assert isinstance(page, Page)
        payloads = yield from self._of([from_item(HeldMessage, item) for item in page.items])
        # What a guard covers is discarded by the request that raised it, and gets its end there.
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
