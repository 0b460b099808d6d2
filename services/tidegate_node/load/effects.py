"""Carries out what actors ask of loads: in threads, one look at a source at a time, shared by all shards that ask at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from tidegate_core.effects import LoadSampled, SampleLoad
from tidegate_ports.clock import Clock
from tidegate_ports.load import LoadSampler, LoadUnavailable

SHARED_FOR_MS: Final = 1_000
"""A node has many shards, and jobs of all of them may wait for one load: a page is not asked 256 times for it."""
PROBLEM_CHARACTERS_MAX: Final = 500


class LoadEffects:
    """One per process.

    Args:
        samplers: By the name that schedules call them.
    """

    def __init__(self, samplers: Mapping[str, LoadSampler], clock: Clock) -> None:
        self._samplers = samplers
        self._clock = clock
        self._turns = {name: asyncio.Lock() for name in samplers}
        self._known: dict[SampleLoad, tuple[int, LoadSampled]] = {}

    async def sample(self, effect: SampleLoad) -> LoadSampled:
        sampler = self._samplers.get(effect.source)
        if sampler is None:
            known = ", ".join(sorted(self._samplers))
            return LoadSampled(None, f"this node's settings (load.sources) name no {effect.source}; it has {known}")
        async with self._turns[effect.source]:
            at, known_answer = self._known.get(effect, (0, LoadSampled(None)))
            if known_answer.value is not None and self._clock.monotonic_ms() - at < SHARED_FOR_MS:
                return known_answer
            answer = await asyncio.to_thread(_sampled, sampler, effect.resource)
            if answer.value is not None:
                self._known[effect] = (self._clock.monotonic_ms(), answer)
            return answer


def _sampled(sampler: LoadSampler, resource: str) -> LoadSampled:
    try:
        return LoadSampled(sampler.sample(resource))
    except LoadUnavailable as unavailable:
        return LoadSampled(None, str(unavailable)[:PROBLEM_CHARACTERS_MAX])
