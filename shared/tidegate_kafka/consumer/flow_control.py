"""The flow of one topic partition's records: may they come, from which offset, how many are out. Pure.

Lives on the consumer's thread; `PartitionFlows` carries out what `should_flow` says.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

IN_FLIGHT_BYTES_MAX = 16 * 1024 * 1024
"""The second bound on what is out of one topic partition: records are up to 4 MiB, and thousands of those are no memory's.
A node of 8 + 8 topic partitions keeps about 256 MiB however long its store is away; small records never reach it."""


@dataclass(slots=True)
class Flow:
    """Where one topic partition stands.

    Attributes:
        in_flight_max: Records handed over and not yet taken; reached = pause, half of it = go on. The gap is there because
            a stop throws the client's prefetched records away.
        sizes: Bytes of each record that is out, oldest first: they are taken in the order in which they were handed over.
        era: Number of the position order that the records belong to; 0 = no position yet. Records and credits of an older
            era are dropped, so that nothing read before a seek is delivered after it.
        next: Offset of the next record to hand over.
        flowing: Assigned at the client.
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
        """A new position: whatever is out belongs to the past."""
        self.era, self.next = era, offset
        self.sizes.clear()
        self.in_flight_bytes = 0
        self.full = self.gone = False

    def stop(self) -> None:
        """No position any more: nothing flows until the next one."""
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
