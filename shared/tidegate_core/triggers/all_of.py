"""Trigger on several events: fires when each of its leaves is satisfied, optionally for one data partition at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from tidegate_core.model.document import AtMost
from tidegate_core.model.durations import Duration, DurationField
from tidegate_core.model.planned import LANGUAGE, PlannedKinds, planned
from tidegate_core.model.problems import refused
from tidegate_core.triggers.base import PLANNED_FOR_EVENTS, Correlate, EventTrigger, LeafTrigger, OnTimeout
from tidegate_core.triggers.data_partitions import DataPartitionsTrigger
from tidegate_core.triggers.run_status import RunStatusTrigger

MAX_LEAVES = 50
DEFAULT_TIMEOUT_MS = 24 * 3_600_000

_OTHER_LEAVES = planned(LANGUAGE, "cron", "every", "at", hint="only data_partitions and run_status meet in all_of now")
_COMPOSITES = planned(
    LANGUAGE, "all_of", "any_of", "at_least", "then", "absent", "or", "and", hint="composites do not nest yet"
)

Leaf: TypeAlias = Annotated[
    DataPartitionsTrigger | RunStatusTrigger,
    Field(discriminator="type"),
    PlannedKinds({**_OTHER_LEAVES, **_COMPOSITES}),
]


class AllOfTrigger(EventTrigger):
    """Fires when all of `triggers` are satisfied.

    Attributes:
        triggers: 2 to 50 leaves.
        correlate: `data_partition`: one state per value, so that a day's flights meet the same day's weather.
        timeout: Counted from the first latch; what has not come by then is not waited for.
        on_timeout: `abort`: the evidence is given up, with a ledger row.
    """

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
    PLANNED_FIELDS: ClassVar = {
        **{name: entry for name, entry in PLANNED_FOR_EVENTS.items() if name not in {"timeout", "on_timeout"}},
        **planned(LANGUAGE, "pairing", "window", "driver", "prefer", "or_mode"),
    }
    PLANNED_VALUES: ClassVar = {
        "on_timeout": planned(LANGUAGE, "partial", "wait"),
        "correlate": planned(LANGUAGE, "*", hint="only data_partition works now"),
    }

    type: Literal["all_of"] = "all_of"
    triggers: Annotated[tuple[Leaf, ...], Field(min_length=2), AtMost(MAX_LEAVES)]
    correlate: Correlate | None = None
    timeout: DurationField = Field(default=DEFAULT_TIMEOUT_MS, gt=0, json_schema_extra={"default": "1d"})
    on_timeout: OnTimeout = "abort"

    @model_validator(mode="after")
    def _one_each_when_correlated(self) -> Self:
        for place, leaf in enumerate(self.triggers):
            if self.correlate is not None and leaf.needed != 1:
                # One value is one data partition: a second one of the same value can never come.
                raise refused(
                    "has to be 1 with correlate: data_partition",
                    field=f"triggers[{place}].count",
                    hint="take correlate out, or count 1 data partition per value",
                )
        return self

    @property
    def timeout_ms(self) -> Duration | None:
        return self.timeout

    def leaves(self) -> tuple[LeafTrigger, ...]:
        return self.triggers

    def missing(self, counts: Sequence[int]) -> str | None:
        shortfalls = [leaf.shortfall(count) for leaf, count in zip(self.triggers, counts, strict=True)]
        return "; ".join(text for text in shortfalls if text is not None) or None
