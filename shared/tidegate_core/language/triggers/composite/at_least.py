"""The trigger `at_least`: fires when `k` of its triggers are satisfied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from tidegate_core.language.triggers.composite.all_of import DEFAULT_TIMEOUT_MS
from tidegate_core.language.triggers.composite.composite import MAX_LEAVES, CompositeTrigger
from tidegate_core.language.values.document import Whole
from tidegate_core.language.values.durations import DurationField
from tidegate_core.language.values.problems import refused


class AtLeastTrigger(CompositeTrigger):
    """Fires when any `k` of `triggers` are satisfied. The default time-out is 24 h.

    Attributes:
        k: Number of triggers that are needed, from 1 to their number.
    """

    EXAMPLE: ClassVar = {
        "type": "at_least",
        "k": 2,
        "triggers": [
            {"type": "data_partitions", "dataset": "sensors.north"},
            {"type": "data_partitions", "dataset": "sensors.south"},
            {"type": "data_partitions", "dataset": "sensors.west"},
        ],
    }

    type: Literal["at_least"] = "at_least"
    k: Whole = Field(ge=1, le=MAX_LEAVES)
    timeout: DurationField = Field(default=DEFAULT_TIMEOUT_MS, gt=0, json_schema_extra={"default": "1d"})

    @model_validator(mode="after")
    def _k_of_them(self) -> Self:
        if self.k > len(self.triggers):
            raise refused(
                f"is {self.k}, and there are only {len(self.triggers)} triggers",
                field="k",
                hint="lower it, or add triggers",
            )
        return self

    @property
    def children_needed(self) -> int:
        return self.k

    def _combined(self, shortfalls: Sequence[str | None]) -> str | None:
        missing = [text for text in shortfalls if text is not None]
        more = self.k - (len(shortfalls) - len(missing))
        return f"{more} of: {' | '.join(missing)}" if more > 0 else None
