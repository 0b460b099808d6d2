"""Priorities, and the one number by which waiting jobs are put in order (SEMANTICS 7.3).

Ageing lifts a job by one class for each 30 minutes that it waits. All jobs age alike, so nothing has to be rewritten as time
goes by: a class is a head start of 30 minutes over the one below it, and who has the smaller `satisfied_at` less its head
start goes first, whenever that is asked.


The words of overlap: what becomes of an occurrence whose turn comes while its schedule's runs are still open (SEMANTICS 4).

What each of them does is in `tidegate_core/admission/overlap_rules.py`.


What follows a program that failed: how often, how soon, and after which errors it is tried again (SEMANTICS 8).
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
"""Waiting that is worth one class."""
HEAD_START_MS: Final = {"high": AGEING_MS, "medium": 0, "low": -AGEING_MS, "lowest": -2 * AGEING_MS}
HIGHEST_HEAD_START_MS: Final = 10**12
"""31 years: nobody ages into the highest class. The order stays a number of 13 digits, as keys of rows want it."""
CATCH_UP_CLASS: Final = "low"
_RANKS: Final[dict[Priority, int]] = {priority: rank for rank, priority in enumerate(get_args(Priority))}


def order_of(priority: Priority, satisfied_at: Instant) -> int:
    """Returns a job's place: the smaller one goes first. It is fixed for the life of the job, and never negative.

    Args:
        priority: Its class.
        satisfied_at: Since when it waits.
    """
    head_start = HIGHEST_HEAD_START_MS if priority == "highest" else HEAD_START_MS[priority]
    return max(satisfied_at - head_start, 0)


def class_of(priority: Priority, *, catch_up: bool) -> Priority:
    """Returns the class of one job of a schedule: what makes up for the past goes behind what is due now."""
    return CATCH_UP_CLASS if catch_up and priority in {"highest", "high", "medium"} else priority


def rank_of(priority: Priority) -> int:
    """Returns a class as a number: 0 for `highest`, and one more for each class below."""
    return _RANKS[priority]


Overlap: TypeAlias = Literal["queue", "allow", "skip", "keep_latest", "coalesce", "cancel_running"]
OnOverflow: TypeAlias = Literal["coalesce", "reject"]

MAX_PENDING_DEFAULT: Final = 100
MAX_PENDING: Final = 10_000
"""Waiting jobs are held in memory whole, about 1 KB each."""


def queue_fields_of(overlap: Overlap, max_pending: int, on_overflow: OnOverflow) -> None:
    """Refuses what only `queue` reads where it would have no effect: its writer expects one.

    Raises:
        PydanticCustomError: As validators do.
    """
    given = {"max_pending": max_pending != MAX_PENDING_DEFAULT, "on_overflow": on_overflow != "coalesce"}
    for field, is_given in given.items():
        if is_given and overlap != "queue":
            raise refused(
                f"has no effect with overlap: {overlap}", field=field, hint="leave it out, or use overlap: queue"
            )


def overlap_problems(spec: ScheduleSpec) -> list[Problem]:
    """Returns why a schedule's overlap does not fit to its trigger."""
    if spec.overlap != "coalesce" or not isinstance(spec.trigger, EventTrigger):
        return []
    hint = "use queue: a job gathers events until it is admitted; or keep_latest"
    return [Problem("overlap", "coalesce merges instants of a time trigger, and this trigger counts events", hint)]


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
