"""What a holder has read of topics' ends, and what it found out of those that did not tell: one reading serves many requests.

An activation needs ends that were read after its request had arrived, and no later ones (DESIGN 7). So readings are numbered as
they begin, and whoever needs one remembers how many had begun by then: each with a higher number serves it. Behind an outage
thousands of requests lie in an inbox; the first one reads, and those that lay there by then take what it has read.
"""

from __future__ import annotations

from collections.abc import Mapping

SILENT, MISSING = "silent", "missing"
"""What is found out about a topic that does not answer at once."""
SILENT_FOR_MS = 60_000
"""So long that is remembered for requests that arrive later."""


class EndOffsetCache:
    """One per holder.

    Attributes:
        begun: Number of the latest reading that has begun; whoever needs one that begins from now on remembers it.
    """

    def __init__(self) -> None:
        self.begun = 0
        self._ends: dict[str, tuple[int, Mapping[str, int]]] = {}
        self._untold: dict[str, tuple[int, int, str]] = {}

    def begin(self) -> int:
        """Returns the number of a reading that is asked for now."""
        self.begun += 1
        return self.begun

    def store(self, topic: str, number: int, ends: Mapping[str, int]) -> None:
        """A reading has its answer; empty: the topic is not there."""
        if number > self._ends.get(topic, (0, {}))[0]:
            self._ends[topic] = number, dict(ends)
        since, _, what = self._untold.get(topic, (0, 0, ""))
        if number > since and (ends or what == SILENT):
            self._untold.pop(topic, None)  # It tells again.

    def ends(self, topic: str, after: int) -> dict[str, int] | None:
        """Returns a topic's ends as a reading found them that began later than that one."""
        number, ends = self._ends.get(topic, (0, {}))
        return dict(ends) if number > after else None

    def found_out(self, topic: str, number: int, now: int, what: str) -> None:
        """A topic that did not answer at once is silent, or missing: found out by a reading of that number."""
        if not (told := self.ends(topic, number)) and (what == MISSING or told is None):
            self._untold[topic] = number, now, what

    def fallback(self, topic: str, after: int, recent_at: int | None = None) -> str | None:
        """Returns what is known of a topic that does not tell, if it was found out later than by that reading.

        Args:
            topic: Its name.
            after: Number of that reading. No age alone: how long it takes until a request is decided is up to the store.
            recent_at: The present, for those whom it serves as well that it was found out within the last minute.
        """
        number, since, what = self._untold.get(topic, (0, 0, ""))
        is_recent = recent_at is not None and recent_at - since < SILENT_FOR_MS
        return what if what and (number > after or is_recent) else None
