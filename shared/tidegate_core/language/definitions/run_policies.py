"""Policies for the jobs and runs of a schedule: priority, overlap and retries.

Waiting lifts a job by one priority class for each 30 minutes. All jobs age at the same rate, so their order never changes and
nothing is rewritten: a class is a head start of 30 minutes over the class below. The job with the smallest `satisfied_at`
minus head start is first. `tidegate_core/admission/overlap_rules.py` applies the overlap policies.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, Self, TypeAlias, get_args

from pydantic import Field, model_validator

from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.document import PLATFORM, AtMost, Document, Whole, planned
from tidegate_core.language.values.durations import DurationField, format_duration
from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.problems import Problem, refused

if TYPE_CHECKING:
    from tidegate_core.language.definitions.schedule_spec import ScheduleSpec


Priority: TypeAlias = Literal["highest", "high", "medium", "low", "lowest"]

AGEING_MS: Final = 30 * 60_000
"""Waiting time that equals one class."""
HEAD_START_MS: Final = {"high": AGEING_MS, "medium": 0, "low": -AGEING_MS, "lowest": -2 * AGEING_MS}
HIGHEST_HEAD_START_MS: Final = 10**12
"""Head start of `highest`, 31 years, so that no job ages into it. The order keeps 13 digits, the width in keys of rows."""
CATCH_UP_CLASS: Final = "low"
_RANKS: Final[dict[Priority, int]] = {priority: rank for rank, priority in enumerate(get_args(Priority))}


def order_of(priority: Priority, satisfied_at: Instant) -> int:
    """Returns the number that orders waiting jobs; the smallest is first. It never changes and is never negative.

    Args:
        priority: Priority class of the job.
        satisfied_at: Instant since which the job waits.
    """
    head_start = HIGHEST_HEAD_START_MS if priority == "highest" else HEAD_START_MS[priority]
    return max(satisfied_at - head_start, 0)


def class_of(priority: Priority, *, catch_up: bool) -> Priority:
    """Returns the priority class of a job. Catch-up jobs come after jobs that are due now."""
    return CATCH_UP_CLASS if catch_up and priority in {"highest", "high", "medium"} else priority


def rank_of(priority: Priority) -> int:
    """Returns a priority class as a number: 0 for `highest`, and one more for each lower class."""
    return _RANKS[priority]


Overlap: TypeAlias = Literal["queue", "allow", "skip", "keep_latest", "coalesce", "cancel_running"]
OnOverflow: TypeAlias = Literal["coalesce", "reject"]

MAX_PENDING_DEFAULT: Final = 100
MAX_PENDING: Final = 10_000
"""Largest `max_pending`. Waiting jobs are in memory, about 1 KB each."""


def queue_fields_of(overlap: Overlap, max_pending: int, on_overflow: OnOverflow) -> None:
    """Refuses fields of `overlap: queue` in schedules with another policy, where they would have no effect.

    Raises:
        PydanticCustomError: A field has no effect.
    """
    given = {"max_pending": max_pending != MAX_PENDING_DEFAULT, "on_overflow": on_overflow != "coalesce"}
    for field, is_given in given.items():
        if is_given and overlap != "queue":
            raise refused(
                f"has no effect with overlap: {overlap}", field=field, hint="leave it out, or use overlap: queue"
            )


def overlap_problems(spec: ScheduleSpec) -> list[Problem]:
    """Returns a problem if a schedule's overlap policy does not fit its trigger."""
    if spec.overlap != "coalesce" or not isinstance(spec.trigger, EventTrigger):
        return []
    hint = "use queue: a job gathers events until it is admitted; or keep_latest"
    return [Problem("overlap", "coalesce merges instants of a time trigger, and this trigger counts events", hint)]


ErrorKind: TypeAlias = Literal[
    "config", "auth", "user_code", "oom", "preempted", "quota", "transient", "lost", "unknown"
]
"""Kind of a failure, from the program's report or the launcher; `unknown` if neither reports one."""

TRIES_MAX: Final = 100
LONGEST_BACKOFF_MS: Final = 24 * 3_600_000
"""Longest pause. No attempt starts later than a day after the first one, so no longer pause can end."""
DEFAULT_BACKOFF_MS: Final = 30_000
DEFAULT_MAX_BACKOFF_MS: Final = 30 * 60_000
TRIED_AGAIN: Final[tuple[ErrorKind, ...]] = ("oom", "preempted", "quota", "transient", "lost", "unknown")
"""Errors that are retried by default. The other errors would occur again at each attempt."""
COSTS_NO_TRY: Final = frozenset({"preempted", "quota"})
"""Errors that the platform causes, not the program."""


class Retry(Document):
    """Further attempts of a failed run, with the same data and the same permits.

    Attributes:
        tries: Number of further attempts, 0 to 100. Attempts after `preempted` and `quota` do not count.
        backoff: Pause before the first further attempt, 1 ms to 24 h; each later pause is twice as long.
        max_backoff: Longest pause; by default 30 minutes, or `backoff` if that is longer.
        errors: Errors after which the run is retried; by default all but `config`, `auth` and `user_code`. An exception or an
            exit code without a report is `unknown`.
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
        """Whether another attempt follows an attempt that ended with `error`."""
        return self.tries > 0 and error in (TRIED_AGAIN if self.errors is None else self.errors)

    def pause_ms(self, retries: int) -> int:
        """Returns the pause before the next attempt, after `retries` counted ones."""
        most = max(DEFAULT_MAX_BACKOFF_MS, self.backoff) if self.max_backoff is None else self.max_backoff
        return min(self.backoff << min(retries, TRIES_MAX), most)
