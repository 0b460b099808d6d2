"""Flow control of one topic partition: whether records may flow, from which offset, and how many are in flight. Pure.

Used on the consumer's thread; `PartitionFlows` acts on `should_flow`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

IN_FLIGHT_BYTES_MAX = 16 * 1024 * 1024
"""Second bound on the records in flight of one topic partition: records have up to 4 MiB, and thousands of them would
exhaust the memory. A node with 8 + 8 topic partitions keeps about 256 MiB during a store outage. Small records never
reach this bound."""


@dataclass(slots=True)
class Flow:
    """State of one topic partition's flow.

    Attributes:
        in_flight_max: Records handed over and not finished. At this number reading pauses, at half it resumes. The
            gap exists because a pause discards the client's prefetched records.
        era: Number of the seek that the records belong to; 0 = no position yet. Records and credits of an older era
            are dropped, so that nothing read before a seek is delivered after it.
        next: Offset of the next record to hand over.
        sizes: Bytes of each record in flight, oldest first: receivers finish records in the order of the hand-over.
        gone: Whether the log no longer holds the position.
        flowing: Whether the topic partition is assigned at the client.
    """

    in_flight_max: int
    era: int = 0
    next: int = 0
    sizes: deque[int] = field(default_factory=deque)
    in_flight_bytes: int = 0
    full: bool = False
    gone: bool = False
    flowing: bool = False

    @property
    def should_flow(self) -> bool:
        return self.era > 0 and not (self.full or self.gone)

    def start(self, era: int, offset: int) -> None:
        """Starts at a new position. Records in flight belong to the former one."""
        self.era, self.next = era, offset
        self.sizes.clear()
        self.in_flight_bytes = 0
        self.full = self.gone = False

    def stop(self) -> None:
        """Drops the position: no record flows until the next one."""
        self.era = 0

    def handed_over(self, sizes: Sequence[int], next_offset: int) -> None:
        self.next = next_offset
        self.sizes.extend(sizes)
        self.in_flight_bytes += sum(sizes)
        self.full = self.full or len(self.sizes) >= self.in_flight_max or self.in_flight_bytes >= IN_FLIGHT_BYTES_MAX

    def taken(self, era: int, count: int) -> None:
        if era != self.era:
            return
        for _ in range(min(count, len(self.sizes))):
            self.in_flight_bytes -= self.sizes.popleft()
        half_empty = len(self.sizes) <= self.in_flight_max // 2 and self.in_flight_bytes <= IN_FLIGHT_BYTES_MAX // 2
        self.full = self.full and not half_empty
