"""Carries out what actors ask of loads: in threads, one look at a source at a time, shared by all shards that ask at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import partial
from typing import Final

from tidegate_core.rows.effects import LoadSampled, SampleLoad
from tidegate_ports.clock import Clock
from tidegate_ports.common.daemon_threads import apart
from tidegate_ports.load_sampler import LoadSampler, LoadUnavailable, SourceSilent
from tidegate_telemetry.metrics import Metrics

SHARED_FOR_MS: Final = 1_000
"""A node has many shards, and jobs of all of them may wait for one load: a page is not asked 256 times for it."""
PROBLEM_CHARACTERS_MAX: Final = 500
LOOKING: Final = "tidegate-load"
"""A thread for each source that is looked at: not one of the loop's few, on which the store's name is looked up."""


class LoadEffects:
    """One per process.

    Args:
        samplers: By the name that schedules call them.
    """

    def __init__(self, samplers: Mapping[str, LoadSampler], clock: Clock, metrics: Metrics) -> None:
        self._samplers = samplers
        self._clock = clock
        self._turns = {name: asyncio.Lock() for name in samplers}
        self._known: dict[SampleLoad, tuple[int, LoadSampled]] = {}
        self._looks: dict[SampleLoad, asyncio.Task[LoadSampled]] = {}
        self._silences: dict[str, tuple[int, LoadSampled]] = {name: (0, LoadSampled(None)) for name in samplers}
        """How often a source was silent, and what came of the last time."""
        # It is told once, when it begins: an alert on a rise would miss the one with which a series begins.
        for name in samplers:
            metrics.count("tidegate_loads_unknown_total", 0, source=name)

    async def sample(self, effect: SampleLoad) -> LoadSampled:
        sampler = self._samplers.get(effect.source)
        if sampler is None:
            known = ", ".join(sorted(self._samplers))
            return LoadSampled(None, f"this node's settings (load.sources) name no {effect.source}; it has {known}")
        if (look := self._looks.get(effect)) is None:
            look = self._looks[effect] = asyncio.create_task(self._look(effect, sampler))
            look.add_done_callback(lambda _: self._looks.pop(effect))
        # Also for what fails: were shards to look at a page that hangs one after another, a dozen of them would wait for longer than a minute,
        # and who asks so seldom never finds that a load has been unknown for five. A shard that is lost does not end it for the others.
        return await asyncio.shield(look)

    async def _look(self, effect: SampleLoad, sampler: LoadSampler) -> LoadSampled:
        silences_before, _ = self._silences[effect.source]
        async with self._turns[effect.source]:
            at, known_answer = self._known.get(effect, (0, LoadSampled(None)))
            if known_answer.value is not None and self._clock.monotonic_ms() - at < SHARED_FOR_MS:
                return known_answer
            silences, last_silence = self._silences[effect.source]
            if silences > silences_before:
                return last_silence  # Meanwhile it told another resource's look nothing: it would keep this one waiting as well.
            try:
                answer = LoadSampled(await apart(partial(sampler.sample, effect.resource), LOOKING))
            except RuntimeError as none_left:  # No thread: the host has no more of them at the moment.
                return LoadSampled(None, f"{effect.source} cannot be looked at: {none_left}"[:PROBLEM_CHARACTERS_MAX])
            except LoadUnavailable as unavailable:
                answer = LoadSampled(None, str(unavailable)[:PROBLEM_CHARACTERS_MAX])
                if isinstance(unavailable, SourceSilent):
                    self._silences[effect.source] = (silences + 1, answer)
                return answer
            self._known[effect] = (self._clock.monotonic_ms(), answer)
            return answer
