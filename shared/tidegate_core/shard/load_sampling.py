"""Asks for samples of loads that jobs wait for: only while somebody waits for nothing else, and each load once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Operation
from tidegate_core.language.constraints.load_samples import NOTHING_SEEN, LoadKey, LoadSeen
from tidegate_core.rows.effects import LoadSampled, SampleLoad

SAMPLE_EVERY_MS: Final = 15_000
"""While somebody waits. A quarter of the age at which a sample counts for nothing."""
ASK_AGAIN_MS: Final = 5_000
"""An answer that is younger serves all who ask."""


class Loads:
    """One per shard.

    Attributes:
        seen: By source and resource.
    """

    def __init__(self) -> None:
        self.seen: dict[LoadKey, LoadSeen] = {}
        self._waiting: dict[LoadKey, set[str]] = {}
        self._under_way: set[LoadKey] = set()
        self._host: ActorContext | None = None
        self._look: Callable[[str], None] = lambda ref: None

    def connect(self, host: ActorContext, look: Callable[[str], None]) -> None:
        """Says who is asked, and who is told of an answer: by its reference, a schedule whose job waits for it."""
        self._host, self._look = host, look

    def wait_for(self, key: LoadKey, ref: str) -> None:
        """The schedule's first job waits for this load alone."""
        if self._host is None:
            return
        self._waiting.setdefault(key, set()).add(ref)
        asked_at = self.seen.get(key, NOTHING_SEEN).asked_at
        # An answer, also one that says nothing, has its schedules looked at, and each of them comes by here again.
        if key not in self._under_way and asked_at + ASK_AGAIN_MS <= self._host.now:
            self._under_way.add(key)
            self._host.start_safely("sample_load", "/".join(key), self._sample(self._host, key))

    def _sample(self, host: ActorContext, key: LoadKey) -> Operation[None]:
        asked = self.seen[key] = self.seen.get(key, NOTHING_SEEN).asked(host.now)
        sampled = yield SampleLoad(*key)
        assert isinstance(sampled, LoadSampled)
        self._under_way.discard(key)
        if sampled.value is not None:
            self.seen[key] = asked.answered(host.now, sampled.value)
        elif asked.unknown_since == asked.asked_at:
            host.note("load_unknown", source=key[0], resource=key[1], problem=sampled.problem)
        for ref in sorted(self._waiting.pop(key, ())):
            self._look(ref)
