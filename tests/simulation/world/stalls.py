"""Stalls: one kind of call gets nowhere for a while, and all others go on."""

from __future__ import annotations

from collections.abc import Sequence

from tests.simulation.faults.random_draws import lies_in
from tests.simulation.faults.store_faults import StoreFaults
from tests.simulation.runner.trace import Trace
from tests.simulation.world.timeline import START, Timeline
from tidegate_core.rows.store_operations import Delete, Put, RangeRead

SLOW_MS = (3_000, 25_000)
"""Until a load that is slow is answered."""
TIMER_ROWS = "D#"


class Stalls:
    """Each question says, and books, whether the call gets nowhere."""

    def __init__(self, timeline: Timeline, trace: Trace, faults: StoreFaults) -> None:
        self._timeline = timeline
        self._trace = trace
        self._faults = faults
        self.healed = False

    def hit_load(self, wanted: RangeRead) -> bool:
        stalls = wanted.low.startswith(TIMER_ROWS) and self._is_on(self._faults.stalled_loads)
        if stalls:
            self._trace.bit("stalled_load", "query")
        return stalls

    def slow_ms(self) -> float | None:
        """Returns after which time a stalled load is answered, or None for never."""
        return self._timeline.between(*SLOW_MS) if self._faults.slow_loads else None

    def hit_batch(self, actions: Sequence[Put | Delete]) -> bool:
        stalls = self._is_on(self._faults.stalled_batches) and any(
            isinstance(action, Put) and action.key.sk.startswith(TIMER_ROWS) for action in actions
        )
        if stalls:
            self._trace.bit("stalled_batch", "batch")
        return stalls

    def hit_transaction(self, name: str) -> bool:
        stalls = name == "checkpoint" and self._is_on(self._faults.stalled_checkpoints)
        if stalls:
            self._trace.bit("stalled_checkpoint", name)
        return stalls

    def _is_on(self, periods: tuple[tuple[int, int], ...]) -> bool:
        return bool(periods) and not self.healed and lies_in(periods, self._timeline.now - START)
