"""The union of all constraints. A new kind is a new file, its name here, and its tests."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import Field

from tidegate_core.constraints.base import Allow, Hold, LimitRef, Verdict
from tidegate_core.constraints.concurrency import ConcurrencyConstraint
from tidegate_core.constraints.time_window import TimeWindowConstraint
from tidegate_core.model.planned import LANGUAGE, PLATFORM, PlannedKinds, planned

__all__ = ["Allow", "ConcurrencyConstraint", "Constraint", "Hold", "LimitRef", "TimeWindowConstraint", "Verdict"]

Constraint: TypeAlias = Annotated[
    ConcurrencyConstraint | TimeWindowConstraint,
    Field(discriminator="type"),
    PlannedKinds(
        {
            **planned(LANGUAGE, "delay", "since_last_run", "duration_since_last_run", "rate", "last_run", "calendar"),
            **planned(PLATFORM, "load", "limit", "pool", "quota"),
        }
    ),
]
