"""When an update may keep what is pending (SEMANTICS 12)."""

from __future__ import annotations

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.values.pending_modes import OnUpdate
from tidegate_core.language.values.problems import Problem

ALREADY_ACTIVE = Problem(
    "suspended",
    "only says how a schedule begins, and this one is active",
    "leave it out, and suspend the schedule",
)
"""Unless the version before said so already: whoever resumed the schedule since need not change its document."""
OTHER_TRIGGER = Problem(
    "on_update",
    "is carry, and the trigger differs: what it has counted is no evidence for the new one",
    "use finish_old to let waiting jobs complete, or restart",
)


def update_problems(how: OnUpdate, spec: ScheduleSpec, former: ScheduleSpec | None, status: str) -> tuple[Problem, ...]:
    """Returns why an update cannot be done in this way.

    Args:
        how: Asked for by the request, or by the new definition.
        spec: The new definition.
        former: The present one; None when there is none, and nothing could be kept.
        status: Of the schedule after it.
    """
    began_so = former is not None and former.suspended
    already = (ALREADY_ACTIVE,) if status == "active" and spec.suspended and not began_so else ()
    return (*_kept_problems(how, spec, former), *already)


def trigger_stays(how: OnUpdate, *, exists: bool) -> bool:
    """Whether an update leaves the trigger as it was taken: it may have run its course since, and is not looked at anew."""
    return exists and how == "carry"


def _kept_problems(how: OnUpdate, spec: ScheduleSpec, former: ScheduleSpec | None) -> tuple[Problem, ...]:
    if former is None:
        return ()
    of_target = spec.target_rules.update_problem(how) or former.target_rules.update_problem(how)
    if of_target is not None:
        return (of_target,)
    if how == "carry" and former.trigger != spec.trigger:
        return (OTHER_TRIGGER,)
    return ()
