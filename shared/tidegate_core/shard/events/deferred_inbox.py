"""Inbox rows of what a wide suspend covers, which a resume that nobody here has heard of may let count (SEMANTICS 10).

A resume counts from the log's ends, which its home reads before it moves the item of the wide controls, and a shard carries it later. So
what was appended shortly before the present version was read for the last time, or later, is left in its row. Once the
lease carries another version its vector sorts out what counts; what has got too old for any resume to come goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from tidegate_core.language.values.instants import Instant
from tidegate_core.rows.store_operations import Key

MOVED_WITHIN_MS: Final = 60_000
"""From the reading of the log's ends to the item that names them are two writes, and the clocks of brokers and nodes differ by half a
second. What came in a longer pause between them came before the receipt: it may count, and need not.
"""


class DeferredRows:
    """Those of one shard. They lie in the store as before; what is known of them here a successor finds out anew."""

    def __init__(self) -> None:
        self._rows: dict[Key, Instant] = {}
        self._version = 0
        self._read_at: Instant = 0

    def __len__(self) -> int:
        return len(self._rows)

    def suspensions_changed(self, version: int, read_at: Instant) -> None:
        """A read of the wide controls that began then has brought this version: what moves them on from it comes later."""
        self._version, self._read_at = version, read_at

    def may_count(self, carried: int, appended: Instant) -> bool:
        """Whether what was appended then, of a namespace that is suspended in the version that is carried, may count under a later one.

        Of what is known and not carried yet anything may: how long that takes has no bound.
        """
        return carried < self._version or appended > self._read_at - MOVED_WITHIN_MS

    def leave(self, key: Key, appended: Instant) -> None:
        """The row stays where it is: nobody looks at it before one of the two things below has come.

        Args:
            key: The row's.
            appended: When the last of what it holds was.
        """
        self._rows[key] = appended

    def forget(self, key: Key) -> None:
        self._rows.pop(key, None)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._rows)

    def take_old(self, carried: int) -> Sequence[Key]:
        """Takes those that no later version lets count."""
        return self.take([key for key, appended in self._rows.items() if not self.may_count(carried, appended)])

    def take(self, keys: Sequence[Key]) -> Sequence[Key]:
        """Takes these: they are to be dealt with."""
        for key in keys:
            del self._rows[key]
        return keys
