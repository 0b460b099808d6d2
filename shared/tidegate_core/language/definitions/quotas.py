"""What a namespace's schedules may ask for. Most bounds are told by the definition alone; two are counted when one is applied
(`tidegate_core/commands/apply_checks.py`), and none when a schedule fires, an event comes or a job is admitted.

Settings of nodes and API, the same for all of them: the node that owns the schedule decides, and a dry run judges likewise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tidegate_core.language.definitions.catch_up_policy import MAX_RUNS_MAX
from tidegate_core.language.definitions.run_policies import MAX_PENDING

EVERY_NAMESPACE: Final = "*"
"""In the place of a name: holds for each namespace that has no quota of its own."""

QuotaName = Annotated[str, StringConstraints(pattern=r"^(\*|[a-z0-9][a-z0-9._-]{0,127})$")]
"""What a quota may be set for: one that no namespace can have would hold for nobody, and nobody would notice."""


class Quota(BaseModel):
    """Bounds for one namespace; None: as for everybody."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    minimum_period_ms: int | None = Field(
        default=None,
        ge=1_000,
        description="Shortest period of a time trigger, and of `at_least_every` (ms), where it is longer than everybody's.",
    )
    catch_up_runs_max: int | None = Field(
        default=None,
        ge=1,
        le=MAX_RUNS_MAX,
        description="Most `catchup.max_runs` where each missed occurrence may have a job of its own.",
    )
    pending_max: int | None = Field(
        default=None,
        ge=1,
        le=MAX_PENDING,
        description="Most `max_pending` of one schedule; one with constraints or a flexible window then needs an `overlap` that bounds what waits.",
    )
    schedules_max: int | None = Field(
        default=None, ge=1, description="Schedules that are there, suspended ones included; deleted ones do not count."
    )
    fan_out_max: int | None = Field(default=None, ge=1, description="Schedules that hear the same event.")


NO_QUOTA: Final = Quota()
Quotas = Mapping[str, Quota]
NO_QUOTAS: Final[Quotas] = {}


def quota_of(quotas: Quotas, namespace: str) -> Quota:
    """Returns a namespace's own quota, else that of every namespace; the two are not mixed."""
    return quotas.get(namespace) or quotas.get(EVERY_NAMESPACE) or NO_QUOTA
