"""Inbox rows that wait: for the low watermark of their schedule, or for the end of a scope suspension.

After an outage one topic partition is read before another. If its late events counted at once, a deadline could pass
for which an event of the other one was in time. So events wait until everything appended before them was read.

A resume counts from end offsets that are read before its version is written; each shard adopts that version later. So
events of a suspended scope stay in their rows when they were appended shortly before the present version was last
read, or later. A new version in the lease brings the vector that decides which of them count. Rows that are too old
for any later resume are removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from tidegate_core.language.values.instants import Instant
from tidegate_core.rows.store_operations import Key

MOVED_WITHIN_MS: Final = 60_000
"""Maximum time between the reading of end offsets and the write of a resume: two writes, with clocks half a second
apart.

Events from a longer pause between them precede the receipt: they may count, and need not.
"""


class DeferredRows:
    """Deferred rows of one shard. The rows are in the store; a successor builds this list again."""

    def __init__(self) -> None:
        self._rows: dict[Key, Instant] = {}
        self._version = 0
        self._read_at: Instant = 0

    def __len__(self) -> int:
        return len(self._rows)

    def suspensions_changed(self, version: int, read_at: Instant) -> None:
        """Notes that a read of the scope suspensions that began at `read_at` returned this version; any later change
        follows that time.
        """
        self._version, self._read_at = version, read_at

    def may_count(self, carried: int, appended: Instant) -> bool:
        """Returns whether an event of a suspended scope may count under a version later than the one in the lease.

        If a newer version is known, any event may: its adoption can take arbitrarily long.
        """
        return carried < self._version or appended > self._read_at - MOVED_WITHIN_MS

    def leave(self, key: Key, appended: Instant) -> None:
        """Defers a row until `take_old` or `take` returns it.

        Args:
            key: Key of the row.
            appended: Append time of its last event.
        """
        self._rows[key] = appended

    def forget(self, key: Key) -> None:
        self._rows.pop(key, None)

    def __iter__(self) -> Iterator[Key]:
        return iter(self._rows)

    def take_old(self, carried: int) -> Sequence[Key]:
        """Takes the rows that count under no later version."""
        return self.take([key for key, appended in self._rows.items() if not self.may_count(carried, appended)])

    def take(self, keys: Sequence[Key]) -> Sequence[Key]:
        """Takes these rows for processing."""
        for key in keys:
            del self._rows[key]
        return keys


KEPT_MS = 10 * 60_000
"""Time for which watermarks are kept; an event that needs an older one waits again."""


class CountedThrough(NamedTuple):
    """The low watermark of a schedule.

    Attributes:
        instant: Append time up to which every event is counted or lies in the inbox; 0: unknown.
        unread: Topics that were waited for long enough and are not included.
    """

    instant: Instant = 0
    unread: tuple[str, ...] = ()


NOTHING = CountedThrough()


class LowWatermarks:
    """Low watermarks of one shard; a successor determines them again."""

    def __init__(self) -> None:
        self._through: dict[str, CountedThrough] = {}
        self._waiting: dict[str, Instant] = {}
        self._asked: dict[str, Instant] = {}
        self._beginning: set[str] = set()
        self._begin: Callable[[str], None] | None = None

    def connect(self, begin: Callable[[str], None]) -> None:
        """Registers `begin`, called for a namespace with waiting events when no search covers them."""
        self._begin = begin

    def through(self, ref: str) -> CountedThrough:
        """Returns the watermark of a schedule, `<ns>/<name>`."""
        return self._through.get(ref, NOTHING)

    def remember(self, refs: Iterable[str], instant: Instant, unread: Sequence[str]) -> None:
        """Stores a watermark, which excludes the topics in `unread`.

        Of two concurrent searches, the one that began first may end last; a later watermark stays.
        """
        for ref in refs:
            if instant >= self.through(ref).instant:
                self._through.pop(ref, None)
                self._through[ref] = CountedThrough(instant, tuple(unread))  # Latest last.
        while self._through and next(iter(self._through.values())).instant <= instant - KEPT_MS:
            del self._through[next(iter(self._through))]

    def waits(self, ref: str) -> bool:
        return ref in self._waiting

    def wait(self, ref: str, last_at: Instant) -> None:
        """Notes that events of the schedule stay in the inbox, the last of which was appended at `last_at`."""
        if self._begin is None:
            return
        self._waiting[ref] = max(last_at, self._waiting.get(ref, last_at))
        namespace = _namespace_of(ref)
        if self._is_unasked(ref) and namespace not in self._beginning:
            self._beginning.add(namespace)
            self._begin(namespace)

    def is_to_begin(self, namespace: str) -> bool:
        """Returns whether a namespace has waiting events that no search covers."""
        return namespace in self._beginning

    def take_unasked(self, namespace: str, through: Instant) -> list[str]:
        """Returns the schedules with such events; the caller searches up to `through`."""
        unasked = [ref for ref in self._waiting if _namespace_of(ref) == namespace and self._is_unasked(ref)]
        self._asked.update(dict.fromkeys(unasked, through))
        if not any(map(self._is_unasked, unasked)):
            self._beginning.discard(namespace)
        return unasked

    def take_waiting(self, refs: Iterable[str], through: Instant) -> frozenset[str]:
        """Returns those of the schedules that wait, and ends their wait. A search up to `through` is complete."""
        found_out = frozenset(refs)
        self._asked = {ref: asked for ref, asked in self._asked.items() if ref not in found_out or asked > through}
        taken = found_out & self._waiting.keys()
        for ref in taken:  # order-free: each leaves, whichever comes first
            del self._waiting[ref]
        return taken

    def _is_unasked(self, ref: str) -> bool:
        return self._waiting[ref] > self._asked.get(ref, 0)


def _namespace_of(ref: str) -> str:
    return ref.split("/", 1)[0]
