"""What leaves share that count events: what only a trigger by itself may say of the jobs that it makes."""

from __future__ import annotations

from abc import ABC
from typing import ClassVar, Self

from pydantic import Field, model_validator

from tidegate_core.language.triggers.latches import Terms
from tidegate_core.language.triggers.trigger import PLANNED_FOR_EVENTS, AtLeastEveryField, LeafTrigger, Take
from tidegate_core.language.values.document import Flag
from tidegate_core.language.values.durations import DurationField, format_duration
from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.problems import refused

DEFAULT_MAX_SETTLE_MS = 24 * 3_600_000


class CountingLeaf(LeafTrigger, ABC):
    """A leaf that counts events of one kind about one thing. Alone it has no time-out: rare feeds add up.

    Attributes:
        take: `all`: the job takes what comes until it starts; `exactly_n`: the first that were needed, the rest is the next
            job's.
        max_wait: Fires this long after the first with what is there.
        settle: Once satisfied it fires when nothing has come for so long.
        max_settle: And at the latest this long after it was satisfied; 24 h.
    """

    PLANNED_FIELDS: ClassVar = PLANNED_FOR_EVENTS
    LATER_FIELDS: ClassVar = frozenset({"take", "allow_empty"})
    ALONE: ClassVar = ("take", "max_wait", "settle", "max_settle", "at_least_every", "allow_empty")
    """Fields of a leaf that is the whole trigger: among others it would not be clear whose job they make."""

    take: Take = "all"
    max_wait: DurationField | None = Field(default=None, gt=0)
    settle: DurationField | None = Field(default=None, gt=0)
    max_settle: DurationField | None = Field(default=None, gt=0)
    at_least_every: AtLeastEveryField | None = None
    allow_empty: Flag = False

    @model_validator(mode="after")
    def _deadlines_fit(self) -> Self:
        if self.max_settle is not None and self.settle is None:
            raise refused("needs settle", field="max_settle", hint="it bounds how long settle may wait")
        if self.max_settle is not None and self.settle is not None and self.max_settle < self.settle:
            raise refused(
                "is shorter than settle", field="max_settle", hint=f"give it at least {format_duration(self.settle)}"
            )
        if self.take == "exactly_n" and self.settle is not None:
            raise refused("has nothing to settle with take: exactly_n", field="settle", hint="leave one of them out")
        if self.allow_empty and self.at_least_every is None:
            raise refused("needs at_least_every", field="allow_empty", hint="nothing else fires without events")
        return self

    def outermost_fields(self) -> tuple[str, ...]:
        """Returns the fields that only a trigger by itself may have and that say something here."""
        known = type(self).model_fields
        return tuple(name for name in self.ALONE if getattr(self, name) != known[name].get_default())

    def terms(self, first_at: Instant) -> Terms:
        settles = self.settle is not None
        return Terms(
            ttls=self.ttls(None),
            max_wait=self.max_wait,
            settle=self.settle,
            max_settle=(self.max_settle or DEFAULT_MAX_SETTLE_MS) if settles else None,
        )
