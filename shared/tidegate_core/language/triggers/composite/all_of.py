"""The trigger `all_of`: fires when all of its triggers are satisfied, optionally per data partition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from tidegate_core.language.triggers.composite.composite import CompositeTrigger
from tidegate_core.language.values.durations import DurationField

DEFAULT_TIMEOUT_MS = 24 * 3_600_000


class AllOfTrigger(CompositeTrigger):
    """Fires when all of `triggers` are satisfied. The default time-out is 24 h."""

    EXAMPLE: ClassVar = {
        "type": "all_of",
        "correlate": "data_partition",
        "triggers": [
            {"type": "data_partitions", "dataset": "flights.raw", "count": 1},
            {"type": "run_status", "schedule": "land-weather", "states": ["succeeded"]},
        ],
        "timeout": "6h",
        "on_timeout": "abort",
    }

    MAY_OPEN_BY_TICK: ClassVar[bool] = True

    type: Literal["all_of"] = "all_of"
    timeout: DurationField = Field(default=DEFAULT_TIMEOUT_MS, gt=0, json_schema_extra={"default": "1d"})

    @property
    def children_needed(self) -> int:
        return len(self.triggers)

    def _combined(self, shortfalls: Sequence[str | None]) -> str | None:
        return "; ".join(text for text in shortfalls if text is not None) or None
