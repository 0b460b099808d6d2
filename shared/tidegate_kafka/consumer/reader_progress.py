"""Progress of readings, and detection of readings that are stuck although the log has more. Pure; used on the loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Remedy: TypeAlias = Literal["begin again", "another client"]


@dataclass(slots=True)
class _Reading:
    """Progress of one topic partition.

    Attributes:
        next: Offset of the next record to be handed on.
        out: Records that were handed on and not finished.
        behind_at: Position at the last check if the log had more by then, else None.
    """

    next: int
    out: int = 0
    behind_at: int | None = None


class Progress:
    """Progress of all topic partitions of one topic that are being read."""

    def __init__(self) -> None:
        self._readings: dict[int, _Reading] = {}
        self._remedied: dict[int, tuple[int, int]] = {}
        """By topic partition: the offset at which a stuck reading was last restarted, and how often it was restarted there."""

    def begun(self, topic_partition: int, offset: int) -> None:
        self._readings[topic_partition] = _Reading(offset)

    def ended(self, topic_partition: int) -> None:
        self._readings.pop(topic_partition, None)

    def handed(self, topic_partition: int, next_offset: int, count: int) -> None:
        if (reading := self._readings.get(topic_partition)) is not None:
            reading.next = next_offset
            reading.out += count

    def taken(self, topic_partition: int, count: int) -> None:
        if (reading := self._readings.get(topic_partition)) is not None:
            reading.out = max(0, reading.out - count)

    def remedy(self, topic_partition: int, offset: int) -> Remedy | None:
        """Returns the remedy for a reading that is stuck at `offset`; None if it has moved on or ended.

        A client that still reads nothing after a restart must be replaced. If it received leader changes in the wrong
        order, it asks the former leader for ever (`stalled_partitions.py`), wherever it starts.
        """
        reading = self._readings.get(topic_partition)
        if reading is None or reading.out or reading.next != offset:
            return None
        before, times = self._remedied.get(topic_partition, (offset, 0))
        times = times + 1 if before == offset else 1
        self._remedied[topic_partition] = (offset, times)
        # Replace the client at the 2nd, 4th, 8th time and so on: a new client interrupts all other readings, and does
        # not help if the brokers are the cause.
        return "another client" if times.bit_count() == 1 and times > 1 else "begin again"

    def standing(self, ends: Mapping[int, int]) -> list[tuple[int, int]]:
        """Returns topic partitions that did not move since the last check although the log had more, with their next
        offset.

        A topic partition with records in flight is not stuck: its reader waits for the receiver.

        Args:
            ends: End offset of each topic partition, queried now.
        """
        found: list[tuple[int, int]] = []
        for number, reading in sorted(self._readings.items()):
            is_behind = reading.out == 0 and ends.get(number, 0) > reading.next
            if is_behind and reading.behind_at == reading.next:
                found.append((number, reading.next))
                reading.behind_at = None
            else:
                reading.behind_at = reading.next if is_behind else None
        return found
