"""The union of all constraints. A new kind needs a new file, its name here, and its tests."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from tidegate_core.language.constraints.concurrency import ConcurrencyConstraint
from tidegate_core.language.constraints.constraint import Allow, Claim, Hold, LimitRef, Verdict
from tidegate_core.language.constraints.delay import DelayConstraint
from tidegate_core.language.constraints.facts import Facts
from tidegate_core.language.constraints.load import LoadConstraint
from tidegate_core.language.constraints.rate import RateConstraint
from tidegate_core.language.constraints.since_last_run import SinceLastRunConstraint
from tidegate_core.language.constraints.time_window import TimeWindowConstraint
from tidegate_core.language.values.document import PLATFORM, PlannedKinds, planned

__all__ = [
    "Allow",
    "Claim",
    "ConcurrencyConstraint",
    "Constraint",
    "DelayConstraint",
    "Facts",
    "Hold",
    "LimitRef",
    "LoadConstraint",
    "RateConstraint",
    "SinceLastRunConstraint",
    "TimeWindowConstraint",
    "Verdict",
]

Constraint: TypeAlias = Annotated[
    ConcurrencyConstraint
    | TimeWindowConstraint
    | DelayConstraint
    | SinceLastRunConstraint
    | RateConstraint
    | LoadConstraint,
    Field(discriminator="type"),
    PlannedKinds(
        {
            **planned(PLATFORM, "calendar", hint="named calendars come later; a time_window has days and times"),
            **planned(PLATFORM, "limit", "pool", "quota"),
        }
    ),
]
