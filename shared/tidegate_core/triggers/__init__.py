"""The union of all triggers. A new kind is a new file, its name here, and its tests."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, Field

from tidegate_core.model.planned import LANGUAGE, PlannedKinds, planned
from tidegate_core.triggers.all_of import AllOfTrigger
from tidegate_core.triggers.at import AtTrigger
from tidegate_core.triggers.base import EventTrigger, LeafTrigger, TimeTrigger
from tidegate_core.triggers.cron import CronTrigger
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

_EVERY_MACRO = "@every "


def _every_macro_as_every(document: Any) -> Any:
    """Reads `{type: cron, expression: "@every 90m"}` as what it is: elapsed time, which no zone concerns."""
    if not isinstance(document, dict) or document.get("type") != "cron":
        return document
    expression = document.get("expression")
    if not isinstance(expression, str) or not expression.startswith(_EVERY_MACRO):
        return document
    kept = {name: value for name, value in document.items() if name not in {"expression", "zone", "dialect"}}
    return {**kept, "type": "every", "period": expression.removeprefix(_EVERY_MACRO).strip()}


Trigger: TypeAlias = Annotated[
    CronTrigger | EveryTrigger | AtTrigger | DataPartitionsTrigger | RunStatusTrigger | AllOfTrigger,
    Field(discriminator="type"),
    BeforeValidator(_every_macro_as_every),
    PlannedKinds(planned(LANGUAGE, "any_of", "at_least", "then", "absent", "data_size", "event", "manual", "dataset")),
]
