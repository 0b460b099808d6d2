"""What follows a program that failed: how often, how soon, and after which errors it is tried again (SEMANTICS 8)."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from tidegate_core.language.values.document import AtMost, Document, Whole
from tidegate_core.language.values.durations import DurationField, format_duration
from tidegate_core.language.values.planned_features import PLATFORM, planned
from tidegate_core.language.values.problems import refused

ErrorKind: TypeAlias = Literal[
    "config", "auth", "user_code", "oom", "preempted", "quota", "transient", "lost", "unknown"
]
"""What a program's end was: by its own report, by the launcher, or `unknown` where neither says."""

TRIES_MAX: Final = 100
LONGEST_BACKOFF_MS: Final = 24 * 3_600_000
"""No attempt begins later than a day after the first one: a pause longer than that would be the last."""
DEFAULT_BACKOFF_MS: Final = 30_000
DEFAULT_MAX_BACKOFF_MS: Final = 30 * 60_000
TRIED_AGAIN: Final[tuple[ErrorKind, ...]] = ("oom", "preempted", "quota", "transient", "lost", "unknown")
"""By default: the others come again however often they are tried."""
COSTS_NO_TRY: Final = frozenset({"preempted", "quota"})
"""The platform's doing, not the program's."""


class Retry(Document):
    """What follows a failed run: further attempts of it, with the same data and the same permits.

    Attributes:
        tries: Further attempts, 0 to 100; those after `preempted` and `quota` cost none.
        backoff: Pause before the first of them, 1 ms to 24 h; doubled each time.
        max_backoff: The longest pause; 30 minutes, or `backoff` if that is longer.
        errors: After which ones; all but `config`, `auth` and `user_code`. A program that only ends with an exception or an exit code is
            `unknown`.
    """

    EXAMPLE: ClassVar = {"tries": 2, "backoff": "30s", "max_backoff": "10m", "errors": ["transient", "unknown"]}
    PLANNED_FIELDS: ClassVar = planned(PLATFORM, "multiplier", "workflow", "submit")
    FIELD_HINTS: ClassVar = {
        "max": "the field is called tries",
        "on": "the field is called errors",
        "attempts": "the field is called tries: attempts after the first",
        "delay": "the field is called backoff",
    }

    tries: Whole = Field(default=0, ge=0, le=TRIES_MAX)
    backoff: DurationField = Field(
        default=DEFAULT_BACKOFF_MS, gt=0, le=LONGEST_BACKOFF_MS, json_schema_extra={"default": "30s"}
    )
    max_backoff: DurationField | None = Field(default=None, gt=0, le=LONGEST_BACKOFF_MS)
    errors: Annotated[tuple[ErrorKind, ...], AtMost(len(TRIED_AGAIN) + 3)] | None = None

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.max_backoff is not None and self.max_backoff < self.backoff:
            least = format_duration(self.backoff)
            raise refused("is shorter than backoff", field="max_backoff", hint=f"give it at least {least}")
        if self.errors is not None and not self.errors:
            raise refused("names no error", field="errors", hint="leave it out, or write tries: 0")
        return self

    def follows(self, error: ErrorKind) -> bool:
        """Whether an attempt that ended so is worth another one."""
        return self.tries > 0 and error in (TRIED_AGAIN if self.errors is None else self.errors)

    def pause_ms(self, retries: int) -> int:
        """Returns the pause before the next attempt, after so many that cost a try."""
        most = max(DEFAULT_MAX_BACKOFF_MS, self.backoff) if self.max_backoff is None else self.max_backoff
        return min(self.backoff << min(retries, TRIES_MAX), most)
