"""Quotas of a namespace: bounds for the definitions of its schedules. They come from a setting that all nodes and the API share.

Most bounds need the definition only. Two need counts, which `tidegate_core/commands/apply_checks.py` takes when a
schedule is applied. No quota is checked when a schedule fires, an event arrives or a job is admitted. The node that owns the
schedule decides; a dry run applies the same rules.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tidegate_core.language.definitions.catch_up_policy import MAX_RUNS_MAX
from tidegate_core.language.definitions.run_policies import MAX_PENDING

EVERY_NAMESPACE: Final = "*"
"""Stands for every namespace without its own quota."""

QuotaName = Annotated[str, StringConstraints(pattern=r"^(\*|[a-z0-9][a-z0-9._-]{0,127})$")]
"""Namespace of a quota, or `*`. Without the pattern, a quota for an impossible namespace would silently have no effect."""


class Quota(BaseModel):
    """Bounds for one namespace. None means the bound that holds for every namespace."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    minimum_period_ms: int | None = Field(
        default=None,
        ge=1_000,
        description="Shortest period of a time trigger and of `at_least_every` (ms), if longer than the bound for all namespaces.",
    )
    catch_up_runs_max: int | None = Field(
        default=None,
        ge=1,
        le=MAX_RUNS_MAX,
        description="Largest `catchup.max_runs` for a schedule in which each misfire may get a separate job.",
    )
    pending_max: int | None = Field(
        default=None,
        ge=1,
        le=MAX_PENDING,
        description="Largest `max_pending` of one schedule. A schedule with constraints or a flexible window then needs an `overlap` that bounds its waiting jobs.",
    )
    schedules_max: int | None = Field(
        default=None, ge=1, description="Number of schedules, including suspended ones; deleted ones do not count."
    )
    fan_out_max: int | None = Field(
        default=None, ge=1, description="Number of schedules that subscribe to the same event."
    )


NO_QUOTA: Final = Quota()
Quotas = Mapping[str, Quota]
NO_QUOTAS: Final[Quotas] = {}


def quota_of(quotas: Quotas, namespace: str) -> Quota:
    """Returns the namespace's own quota, or the quota for every namespace if it has none. The two are never combined."""
    return quotas.get(namespace) or quotas.get(EVERY_NAMESPACE) or NO_QUOTA
