"""Samples loads for waiting jobs: only while a job waits for nothing but a load, and once for all jobs
that wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.operations import Operation
from tidegate_core.language.constraints.facts import NOTHING_SEEN, LoadKey, LoadSeen
from tidegate_core.rows.effects import LoadSampled, SampleLoad

SAMPLE_EVERY_MS: Final = 15_000
"""Interval while a job waits: a quarter of the age at which a sample expires."""
ASK_AGAIN_MS: Final = 5_000
"""Age up to which a sample serves all callers."""


class Loads:
    """Load samples of one shard.

    Attributes:
        seen: Samples by source and resource.
    """

    def __init__(self) -> None:
        self.seen: dict[LoadKey, LoadSeen] = {}
        self._waiting: dict[LoadKey, set[str]] = {}
        self._under_way: set[LoadKey] = set()
        self._host: ActorContext | None = None
        self._look: Callable[[str], None] = lambda ref: None

    def connect(self, host: ActorContext, look: Callable[[str], None]) -> None:
        """Registers the context for effects, and a function that is called with each schedule that
        waits for a sample.
        """
        self._host, self._look = host, look

    def wait_for(self, key: LoadKey, ref: str) -> None:
        """Notes that the schedule's first job waits for this load alone."""
        if self._host is None:
            return
        self._waiting.setdefault(key, set()).add(ref)
        asked_at = self.seen.get(key, NOTHING_SEEN).asked_at
        # Any answer, also an unknown load, triggers a check of the waiting schedules, and each of them calls this
        # again.
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
