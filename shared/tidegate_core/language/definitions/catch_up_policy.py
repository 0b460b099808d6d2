"""Catch-up policy of a schedule: which misfires get an occurrence.

A misfire has a cause, such as an outage or a suspension. An occurrence that is only late is no misfire.
"""

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
"""Catch-up of several misfires: a job for each (`all`), for the last one (`last`), one job for the data of all (`coalesce`), or no
job (`none`). The ledger accounts for every misfire in each mode."""

DEFAULT_WINDOW_MS: Final = 7 * 24 * 3_600_000
DEFAULT_MAX_RUNS: Final = 24
MAX_RUNS_MAX: Final = 10_000
"""Catch-up jobs of one cause. Each job is in memory while it waits."""


class CatchUpPolicy(Document):
    """Catch-up of misfires, by cause.

    Attributes:
        mode: Catch-up after an outage, in which no node served the schedule's shard.
        after_pause: Catch-up after a suspension, for its span, at most `window` back.
        on_create: Catch-up for a new schedule with a `start` in the past, from `start` on, at most `window` back.
        after_update: Catch-up after an update of the trigger, for instants of the new trigger since the last occurrence.
        window: Longest time back. An older misfire gets no job and ends as `expired/catchup_window`.
        max_runs: Most separate jobs for one cause under `all`; one more job covers all further misfires.
        overflow: Rule for further misfires. `coalesce`: one job covers the data of all of them.
        order: Order of the jobs. `oldest`: the oldest misfires get the separate jobs and run first.
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
    """Returns the problems of a schedule's catch-up policy with its trigger or target."""
    wanted, rules = spec.catchup, spec.target_rules
    if isinstance(spec.trigger, EventTrigger):
        if not rules.takes_event_triggers or wanted == CatchUpPolicy():
            return []  # The rules of the target report the trigger itself.
        hint = "leave it out: events of an outage are counted after it"
        return [Problem("catchup", "is about instants of a time trigger, and this trigger counts events", hint)]
    usual = CatchUpPolicy(mode=wanted.mode)
    fields = ("after_pause", "on_create", "after_update", "window", "max_runs")
    given = [field for field in fields if getattr(wanted, field) != getattr(usual, field)]
    found = rules.catch_up_problems(wanted.mode, given)
    if found or wanted.on_create == "none" or spec.trigger.start is not None:
        return found
    problem = f'is "{wanted.on_create}", and the trigger has no start'
    return [Problem("catchup.on_create", problem, "give the trigger a start")]


def is_too_old(spec: ScheduleSpec, instant: Instant, now: Instant) -> bool:
    """Whether an instant before the apply at `now` is too old for a job (`expired/catchup_window`)."""
    return spec.target_rules.makes_jobs and instant + spec.catchup.window < now


def catch_up_warning(spec: ScheduleSpec) -> Problem | None:
    """Returns a warning for a policy that users rarely intend: one misfire runs and the others are skipped."""
    if spec.overlap != "skip" or spec.catchup.mode != "all" or not isinstance(spec.trigger, TimeTrigger):
        return None
    hint = "use overlap: queue, or catchup.mode: last"
    return Problem("catchup.mode", '"all" with overlap: skip runs only the first of several missed occurrences', hint)
