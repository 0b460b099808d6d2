"""Carries out load samples in threads: one query per source at a time, shared by all shards that ask together.

Called by `effect_router.py`.
"""

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
"""Age up to which a sample is shared. A node has many shards, and jobs of all may wait for one load: the page must not
get 256 requests."""
PROBLEM_CHARACTERS_MAX: Final = 500
LOOKING: Final = "tidegate-load"
"""Name of the sampling threads, one for each source. The loop's few threads stay free, because they resolve the store's
host name."""


class LoadEffects:
    """One per process.

    Args:
        samplers: Samplers by the source name that schedules use.
    """

    def __init__(self, samplers: Mapping[str, LoadSampler], clock: Clock, metrics: Metrics) -> None:
        self._samplers = samplers
        self._clock = clock
        self._turns = {name: asyncio.Lock() for name in samplers}
        self._known: dict[SampleLoad, tuple[int, LoadSampled]] = {}
        self._looks: dict[SampleLoad, asyncio.Task[LoadSampled]] = {}
        self._silences: dict[str, tuple[int, LoadSampled]] = {name: (0, LoadSampled(None)) for name in samplers}
        """Number of failures of a source, with the result of the last one."""
        # Start each series at 0: an alert on an increase would miss the failure that creates the series.
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
        # A failure is shared too. If a dozen shards queried a hanging page one after another, they would wait for more
        # than a minute. Then none would notice within five minutes that the load is unknown. A lost shard does not
        # cancel the query for the others.
        return await asyncio.shield(look)

    async def _look(self, effect: SampleLoad, sampler: LoadSampler) -> LoadSampled:
        silences_before, _ = self._silences[effect.source]
        async with self._turns[effect.source]:
            at, known_answer = self._known.get(effect, (0, LoadSampled(None)))
            if known_answer.value is not None and self._clock.monotonic_ms() - at < SHARED_FOR_MS:
                return known_answer
            silences, last_silence = self._silences[effect.source]
            if silences > silences_before:
                # Another query of this source failed during the wait, so this one would wait in vain.
                return last_silence
            try:
                answer = LoadSampled(await apart(partial(sampler.sample, effect.resource), LOOKING))
            except RuntimeError as none_left:  # The host has no free thread at the moment.
                return LoadSampled(None, f"{effect.source} cannot be looked at: {none_left}"[:PROBLEM_CHARACTERS_MAX])
            except LoadUnavailable as unavailable:
                answer = LoadSampled(None, str(unavailable)[:PROBLEM_CHARACTERS_MAX])
                if isinstance(unavailable, SourceSilent):
                    self._silences[effect.source] = (silences + 1, answer)
                return answer
            self._known[effect] = (self._clock.monotonic_ms(), answer)
            return answer
