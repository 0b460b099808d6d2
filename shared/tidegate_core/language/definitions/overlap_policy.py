"""The words of overlap: what becomes of an occurrence whose turn comes while its schedule's runs are still open (SEMANTICS 4).

What each of them does is in `tidegate_core/admission/overlap_rules.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.problems import Problem, refused

if TYPE_CHECKING:
    from tidegate_core.language.definitions.schedule_spec import ScheduleSpec

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
