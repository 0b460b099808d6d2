"""Inbox rows of what a wide suspend covers, which a resume that nobody here has heard of may let count (SEMANTICS 10).

A resume counts from the log's ends, which its home reads before it moves the item of the wide controls, and a shard carries it later. So
what was appended shortly before the present version was read for the last time, or later, is left in its row. Once the
lease carries another version its vector sorts out what counts; what has got too old for any resume to come goes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

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


KEPT_MS = 10 * 60_000
"""What waits for more than is known here waits once more."""


class CountedThrough(NamedTuple):
    """What is settled of a schedule.

    Attributes:
        instant: All that was appended by then is counted, or lies in the inbox; 0: nothing is known.
        unread: But for this, which was waited for long enough.
    """

    instant: Instant = 0
    unread: tuple[str, ...] = ()


NOTHING = CountedThrough()


class LowWatermarks:
    """Of one shard; a successor finds out anew."""

    def __init__(self) -> None:
        self._through: dict[str, CountedThrough] = {}
        self._waiting: dict[str, Instant] = {}
        self._asked: dict[str, Instant] = {}
        self._beginning: set[str] = set()
        self._begin: Callable[[str], None] | None = None

    def connect(self, begin: Callable[[str], None]) -> None:
        """Says who finds out for those of a namespace that wait; called where nobody does yet, or up to an earlier instant only."""
        self._begin = begin

    def through(self, ref: str) -> CountedThrough:
        """Returns what is known of a schedule, `<ns>/<name>`."""
        return self._through.get(ref, NOTHING)

    def remember(self, refs: Iterable[str], instant: Instant, unread: Sequence[str]) -> None:
        """All is settled that was appended by then, but for what is `unread`.

        Of two that find out at once, who began first may come last; what is known by then stays.
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
        """Some of the schedule's events stay in the inbox, the last of which was appended then."""
        if self._begin is None:
            return
        self._waiting[ref] = max(last_at, self._waiting.get(ref, last_at))
        namespace = _namespace_of(ref)
        if self._is_unasked(ref) and namespace not in self._beginning:
            self._beginning.add(namespace)
            self._begin(namespace)

    def is_to_begin(self, namespace: str) -> bool:
        """Whether some of a namespace wait for whom nobody finds out yet, or not through all that waits."""
        return namespace in self._beginning

    def take_unasked(self, namespace: str, through: Instant) -> list[str]:
        """Returns those of them; the caller finds out what was appended by then."""
        unasked = [ref for ref in self._waiting if _namespace_of(ref) == namespace and self._is_unasked(ref)]
        self._asked.update(dict.fromkeys(unasked, through))
        if not any(map(self._is_unasked, unasked)):
            self._beginning.discard(namespace)
        return unasked

    def take_waiting(self, refs: Iterable[str], through: Instant) -> frozenset[str]:
        """Returns those of the schedules whose events wait; they wait no longer. What was asked through then is found out."""
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
