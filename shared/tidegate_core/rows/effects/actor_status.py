"""An actor's own life: what it tells, and whether it still holds what it serves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidegate_core.rows.store_operations import Value


@dataclass(frozen=True, slots=True)
class Notice:
    """A named event with fields for logs and metrics (names in `tidegate_telemetry`); no answer, no influence."""

    event: str
    fields: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProveMembership:
    """Proof that the ownership topic partition is ours, by the guard or by a commit probe (DESIGN 3). Answer: `Membership`."""

    topic_partition: int


@dataclass(frozen=True, slots=True)
class Membership:
    """`holds` is False when the group coordinator refused the member for good, None when it could not be known yet."""

    holds: bool | None
