"""Finds offsets without records: transaction markers and aborted records (KIP-98).

Used by the watchdog, by `stalled_reader_watch.py` and by the effect `FindGaps`. A position stays before such offsets
until a record follows. So the end of the log alone would make records seem unread.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from typing import Final, NamedTuple

from tidegate_core.rows.effects import Unavailable
from tidegate_ports.bus import RecordFinder
from tidegate_ports.clock import Clock

LOOK_AGAIN_MS: Final = 5_000
"""Pause before offsets that may hold a record are checked again: many callers may wait for one log with a real backlog.
"""


class _Seen(NamedTuple):
    """No record lies at `begin` <= offset < `next`, and none ever will."""

    begin: int
    next: int
    at_ms: int

    def holds(self, span: tuple[int, int]) -> bool:
        return self.begin <= span[0] and span[1] <= self.next


class LogGaps:
    """One per process: a result stays true, and many shards need it.

    Args:
        finder: Queries the brokers.
        clock: Clock of this process.
    """

    def __init__(self, finder: RecordFinder, clock: Clock) -> None:
        self._finder = finder
        self._clock = clock
        self._seen: dict[tuple[str, int], _Seen] = {}
        self._one_at_a_time: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def among(
        self, topic: str, topic_id: str, spans: Mapping[int, tuple[int, int]]
    ) -> frozenset[int] | Unavailable:
        """Returns the topic partitions whose span (first offset, end offset) will never hold a record."""
        async with self._one_at_a_time[topic_id]:
            unknown = {number: span[0] for number, span in spans.items() if self._is_unknown((topic_id, number), span)}
            if unknown:
                found = await self._finder.next_records(topic, topic_id, unknown)
                if isinstance(found, Unavailable):
                    return found
                now = self._clock.monotonic_ms()
                for number, begin in unknown.items():
                    self._seen[topic_id, number] = _Seen(begin, found.get(number, begin), now)
        return frozenset(number for number, span in spans.items() if self._seen[topic_id, number].holds(span))

    def _is_unknown(self, place: tuple[str, int], span: tuple[int, int]) -> bool:
        seen = self._seen.get(place)
        if seen is None or not seen.begin <= span[0] <= seen.next:
            return True
        return not seen.holds(span) and self._clock.monotonic_ms() - seen.at_ms >= LOOK_AGAIN_MS
