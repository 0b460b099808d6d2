"""The union of all triggers. A new kind is a new file, its name here, and its tests."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field, ValidationError

from tidegate_core.model.explain import problems_of
from tidegate_core.model.planned import LANGUAGE, PlannedKinds, planned
from tidegate_core.model.problems import refused
from tidegate_core.triggers.all_of import AllOfTrigger
from tidegate_core.triggers.at import AtTrigger
from tidegate_core.triggers.base import EventTrigger, LeafTrigger, TimeTrigger
from tidegate_core.triggers.cron import EVERY_MACRO, CronTrigger
from tidegate_core.triggers.data_partitions import DataPartitionsTrigger
from tidegate_core.triggers.every import EveryTrigger
from tidegate_core.triggers.run_status import RunStatusTrigger

__all__ = [
    "AllOfTrigger",
    "AtTrigger",
    "CronTrigger",
    "DataPartitionsTrigger",
    "EventTrigger",
    "EveryTrigger",
    "LeafTrigger",
    "RunStatusTrigger",
    "TimeTrigger",
    "Trigger",
]


def _every_macro_as_every(trigger: TimeTrigger | EventTrigger) -> TimeTrigger | EventTrigger:
    """Takes `{type: cron, expression: "@every 90m"}` as what it is: elapsed time, which no zone or dialect concerns.

    Only once it has been read as a cron trigger, so that a faulty zone beside it is told all the same.
    """
    if not isinstance(trigger, CronTrigger) or not trigger.is_every_macro:
        return trigger
    bounds = trigger.model_dump(mode="json", include={"start", "end"}, exclude_none=True)
    try:
        return EveryTrigger.model_validate({**bounds, "period": trigger.expression.removeprefix(EVERY_MACRO).strip()})
    except ValidationError as error:
        first = problems_of(error, EveryTrigger)[0]
        raise refused(first.problem, field="expression", hint=first.hint) from error


Trigger: TypeAlias = Annotated[
    CronTrigger | EveryTrigger | AtTrigger | DataPartitionsTrigger | RunStatusTrigger | AllOfTrigger,
    Field(discriminator="type"),
    AfterValidator(_every_macro_as_every),
    PlannedKinds(planned(LANGUAGE, "any_of", "at_least", "then", "absent", "data_size", "event", "manual", "dataset")),
]
