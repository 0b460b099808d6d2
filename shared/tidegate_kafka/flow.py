"""The flow of one topic partition's records: may they come, from which offset, how many are out. Pure.

Lives on the consumer's thread; `Lanes` carries out what `should_flow` says.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Flow:
    """Where one topic partition stands.

    Attributes:
        in_flight_max: Records handed over and not yet taken; reached = pause, half of it = go on. The gap is there because
            a stop throws the client's prefetched records away.
        era: Number of the position order that the records belong to; 0 = no position yet. Records and credits of an older
            era are dropped, so that nothing read before a seek is delivered after it.
        next: Offset of the next record to hand over.
        flowing: Assigned at the client.
    """

    in_flight_max: int
    era: int = 0
    next: int = 0
    in_flight: int = 0
    held: bool = False
    full: bool = False
    gone: bool = False
    flowing: bool = False

    @property
    def should_flow(self) -> bool:
        return self.era > 0 and not (self.held or self.full or self.gone)

    def start(self, era: int, offset: int) -> None:
        """A new position: whatever is out belongs to the past."""
        self.era, self.next, self.in_flight = era, offset, 0
        self.full = self.gone = False

    def stop(self) -> None:
        """No position any more: nothing flows until the next one."""
        self.era = 0

    def handed_over(self, count: int, next_offset: int) -> None:
        self.next = next_offset
        self.in_flight += count
        self.full = self.full or self.in_flight >= self.in_flight_max

    def taken(self, era: int, count: int) -> None:
        if era != self.era:
            return
        self.in_flight = max(0, self.in_flight - count)
        self.full = self.full and self.in_flight > self.in_flight_max // 2
