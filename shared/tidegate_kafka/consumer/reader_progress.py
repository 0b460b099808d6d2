"""How far the reading of topic partitions has come, and which of them stands although there is more. Pure; on the loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Remedy: TypeAlias = Literal["begin again", "another client"]


@dataclass(slots=True)
class _Reading:
    """Attributes:
    next: Offset of the next record to be handed on.
    out: Records that were handed on and not taken.
    behind_at: Where it stood at the last look, if there was more by then.
    """

    next: int
    out: int = 0
    behind_at: int | None = None


class Progress:
    """Of the topic partitions of one topic that are being read."""

    def __init__(self) -> None:
        self._readings: dict[int, _Reading] = {}
        self._remedied: dict[int, tuple[int, int]] = {}
        """Where readings were begun again last, and how often in a row."""

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
        """What is to be done now about one that stands there; None where it has moved on, or is not read any more.

        A client that still brings nothing when it has begun again is to be replaced: one that was told of leaders in the wrong order asks a broker
        for ever that leads the topic partition no more (`stalled_partitions.py`), wherever it begins.
        """
        reading = self._readings.get(topic_partition)
        if reading is None or reading.out or reading.next != offset:
            return None
        before, times = self._remedied.get(topic_partition, (offset, 0))
        times = times + 1 if before == offset else 1
        self._remedied[topic_partition] = (offset, times)
        # The 2nd, 4th, 8th time, and so on: a new client interrupts all other readings, and helps none where the brokers are the cause.
        return "another client" if times.bit_count() == 1 and times > 1 else "begin again"

    def standing(self, ends: Mapping[int, int]) -> list[tuple[int, int]]:
        """Returns topic partitions that did not move since the last look although there was more, each with its next offset.

        One whose records are out waits for whoever has them; that is no fault of the client's.

        Args:
            ends: The next offset to be written in each topic partition, asked now.
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
