"""Cache of topics' end offsets, and of topics that gave none: one reading serves many requests.

An activation needs end offsets that were read after its request had arrived, and no later ones. So readings have
numbers in the order of their starts. A request remembers the latest number at its arrival, and any reading with a
higher number serves it. After an outage thousands of requests lie in an inbox: the first one reads, and all that were
there by then use its result.
"""

from __future__ import annotations

from collections.abc import Mapping

SILENT, MISSING = "silent", "missing"
"""Findings about a topic that does not answer at once."""
SILENT_FOR_MS = 60_000
"""Time for which a finding also serves requests that arrive later."""


class EndOffsetCache:
    """The cache of one partition actor.

    Attributes:
        begun: Number of the latest started reading; a request that needs a later one remembers it.
    """

    def __init__(self) -> None:
        self.begun = 0
        self._ends: dict[str, tuple[int, Mapping[str, int]]] = {}
        self._untold: dict[str, tuple[int, int, str]] = {}

    def begin(self) -> int:
        """Returns the number of a reading that starts now."""
        self.begun += 1
        return self.begun

    def store(self, topic: str, number: int, ends: Mapping[str, int]) -> None:
        """Stores the result of a reading; an empty one means that the topic does not exist."""
        if number > self._ends.get(topic, (0, {}))[0]:
            self._ends[topic] = number, dict(ends)
        since, _, what = self._untold.get(topic, (0, 0, ""))
        if number > since and (ends or what == SILENT):
            self._untold.pop(topic, None)  # It answers again.

    def ends(self, topic: str, after: int) -> dict[str, int] | None:
        """Returns a topic's end offsets from a reading with a higher number than `after`."""
        number, ends = self._ends.get(topic, (0, {}))
        return dict(ends) if number > after else None

    def found_out(self, topic: str, number: int, now: int, what: str) -> None:
        """Stores the finding of a reading that a topic is silent or missing."""
        if not (told := self.ends(topic, number)) and (what == MISSING or told is None):
            self._untold[topic] = number, now, what

    def fallback(self, topic: str, after: int, recent_at: int | None = None) -> str | None:
        """Returns the finding about a topic without end offsets, if a later reading than `after` made it.

        Args:
            topic: Name of the topic.
            after: Number of the latest reading when the request arrived; only a later reading counts. Its age does not show this, because a request may wait long for the store.
            recent_at: Present time, for requests that a finding of the last minute also serves.
        """
        number, since, what = self._untold.get(topic, (0, 0, ""))
        is_recent = recent_at is not None and recent_at - since < SILENT_FOR_MS
        return what if what and (number > after or is_recent) else None
