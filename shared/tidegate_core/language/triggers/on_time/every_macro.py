"""`{type: cron, expression: "@every 90m"}` taken as what it is: elapsed time, which no zone or dialect concerns."""

from __future__ import annotations

from typing import TypeVar

from pydantic import ValidationError

from tidegate_core.language.triggers.on_time.cron import EVERY_MACRO, CronTrigger
from tidegate_core.language.triggers.on_time.every import EveryTrigger
from tidegate_core.language.values.problems import refused
from tidegate_core.language.values.validation_errors import problems_of

_Trigger = TypeVar("_Trigger")

_KEPT = {"start", "end", "max_fires", "flexible"}


def every_macro_as_every(trigger: _Trigger) -> _Trigger | EveryTrigger:
    """Returns the trigger, or what the macro stands for.

    Only once it has been read as a cron trigger, so that a faulty zone beside it is told all the same.
    """
    if not isinstance(trigger, CronTrigger) or not trigger.is_every_macro:
        return trigger
    if trigger.exclude is not None:
        # Its dates would be the cron trigger's zone's, and elapsed time has none.
        raise refused("has no place beside @every", field="exclude", hint="write a trigger of type every")
    kept = trigger.model_dump(mode="json", include=_KEPT, exclude_none=True)
    try:
        return EveryTrigger.model_validate({**kept, "period": trigger.expression.removeprefix(EVERY_MACRO).strip()})
    except ValidationError as error:
        first = problems_of(error, EveryTrigger)[0]
        raise refused(first.problem, field="expression", hint=first.hint) from error
