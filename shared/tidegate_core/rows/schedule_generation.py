"""A generation of a schedule that has ended: what the audit recomputes expectations from, once the state says something else."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.rows import keys
from tidegate_core.rows.receipt import expiry
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Key

GENERATION_DAYS = 90
"""After its end: as long as the ledger has the entries of what it made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PastGeneration:
    """One generation, written by the request that ends it, in its transaction: nothing is written per fire.

    Attributes:
        fired: Whether its trigger went on: no request within a generation changes that.
        asked_at: Append time of the request that ended it; what was due before is there, one way or another.
        ended_at: When that was applied; what came due between the two may have been made, and need not.
        suspended_since: Of a wide suspend that went on then, as its shard knew: of what was due since nothing was made.
        interval: Text of its interval as it was closed, of a schedule that sends messages.
        activated_at, fired_through, fires, missed_from, missed_until, missed_by_update: As the state had them at its end.
    """

    namespace: str
    name: str
    incarnation: str
    version: int
    generation: int
    status: str
    fired: bool
    activated_at: int
    asked_at: int
    ended_at: int
    expires_at: int
    fired_through: int = 0
    fires: int = 0
    missed_from: int | None = None
    missed_until: int | None = None
    missed_by_update: bool | None = None
    interval: str | None = None
    suspended_since: int | None = None

    @classmethod
    def of(
        cls,
        before: ScheduleState,
        asked_at: int,
        ended_at: int,
        *,
        fired: bool,
        interval: str | None,
        suspended_since: int | None = None,
    ) -> PastGeneration:
        """Returns what is kept of the generation in which a state was until now."""
        return cls(
            namespace=before.namespace,
            name=before.name,
            incarnation=before.incarnation,
            version=before.version,
            generation=before.generation,
            status=before.status,
            fired=fired,
            activated_at=before.activated_at,
            asked_at=asked_at,
            ended_at=ended_at,
            expires_at=expiry(ended_at, GENERATION_DAYS),
            fired_through=before.fired_through,
            fires=before.fires,
            missed_from=before.missed_from,
            missed_until=before.missed_until,
            missed_by_update=before.missed_by_update,
            interval=interval,
            suspended_since=suspended_since,
        )

    def key(self, shard: int) -> Key:
        return keys.past_generation(shard, self.namespace, self.name, self.generation)
