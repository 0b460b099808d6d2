"""What becomes of instants of a time trigger that were missed (SEMANTICS 3). Late is not missed: only a cause makes it so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import Field, field_validator

from tidegate_core.language.triggers.trigger import EventTrigger, TimeTrigger
from tidegate_core.language.values.document import PLATFORM, Document, Whole, planned
from tidegate_core.language.values.durations import DurationField
from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.problems import Problem

if TYPE_CHECKING:
    from tidegate_core.language.definitions.schedule_spec import ScheduleSpec

CatchUp: TypeAlias = Literal["all", "last", "coalesce", "none"]
"""A job for each instant; a job for the last one; one job for the data of all; no job. Each is accounted for in any case."""

DEFAULT_WINDOW_MS: Final = 7 * 24 * 3_600_000
DEFAULT_MAX_RUNS: Final = 24
MAX_RUNS_MAX: Final = 10_000
"""Of one cause: each is a job that is held in memory while it waits."""


class CatchUpPolicy(Document):
    """What is made up for, by the cause for which it was missed.

    Attributes:
        mode: After an outage: nobody served the schedule's shard.
        after_pause: After the schedule was suspended, from its suspend to its resume; at most `window` back.
        on_create: When it is created with a `start` in the past, from there on; at most `window` back.
        after_update: When an update brings another trigger, what that one names since the last occurrence.
        window: What lies further back is not made up for; it ends as `expired/catchup_window`.
        max_runs: Jobs of their own for one cause under `all`; one job stands for all beyond them.
        overflow: That one stands for the data of all of them.
        order: The oldest ones have jobs of their own, and run first.
    """

    EXAMPLE: ClassVar = {"mode": "all", "window": "7d", "max_runs": 24, "after_pause": "last"}
    PLANNED_VALUES: ClassVar = {
        "overflow": planned(PLATFORM, "reject", "expire"),
        "order": planned(PLATFORM, "newest"),
    }
    FIELD_HINTS: ClassVar = {"after_outage": "it is called mode", "backlog": "a resume has it; it is called mode here"}

    mode: CatchUp = "all"
    after_pause: CatchUp = "none"
    on_create: CatchUp = "none"
    after_update: CatchUp = "none"
    window: DurationField = Field(default=DEFAULT_WINDOW_MS, gt=0, json_schema_extra={"default": "7d"})
    max_runs: Whole = Field(default=DEFAULT_MAX_RUNS, ge=1, le=MAX_RUNS_MAX)
    overflow: Literal["coalesce"] = "coalesce"
    order: Literal["oldest"] = "oldest"

    @field_validator("mode", "after_pause", "on_create", "after_update", "overflow", "order", mode="before")
    @classmethod
    def _any_case(cls, word: Any) -> Any:
        return word.lower() if isinstance(word, str) else word


def catch_up_problems(spec: ScheduleSpec) -> list[Problem]:
    """Returns why what a schedule wants to be made up for does not fit to its trigger or its target."""
    wanted, rules = spec.catchup, spec.target_rules
    if isinstance(spec.trigger, EventTrigger):
        if not rules.takes_event_triggers or wanted == CatchUpPolicy():
            return []  # The rules of the target report the trigger itself.
        hint = "leave it out: events that came in an outage are counted after it"
        return [Problem("catchup", "is about instants of a time trigger, and this trigger counts events", hint)]
    usual = CatchUpPolicy(mode=wanted.mode)
    fields = ("after_pause", "on_create", "after_update", "window", "max_runs")
    given = [field for field in fields if getattr(wanted, field) != getattr(usual, field)]
    found = rules.catch_up_problems(wanted.mode, given)
    if found or wanted.on_create == "none" or spec.trigger.start is not None:
        return found
    problem = f'is "{wanted.on_create}", and the trigger does not say from when on'
    return [Problem("catchup.on_create", problem, "give the trigger a start")]


def is_too_old(spec: ScheduleSpec, instant: Instant, now: Instant) -> bool:
    """Whether an instant that had passed when its schedule was applied at `now` is not made any more (`expired/catchup_window`)."""
    return spec.target_rules.makes_jobs and instant + spec.catchup.window < now


def catch_up_warning(spec: ScheduleSpec) -> Problem | None:
    """Returns what is allowed and hardly ever meant: of instants that are made up for one runs, the others are skipped."""
    if spec.overlap != "skip" or spec.catchup.mode != "all" or not isinstance(spec.trigger, TimeTrigger):
        return None
    hint = "use overlap: queue, or catchup.mode: last"
    return Problem("catchup.mode", '"all" with overlap: skip runs the first of several missed occurrences only', hint)
