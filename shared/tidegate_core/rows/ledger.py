"""What became of an occurrence, and where that is found."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.language.values.states import RunState
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """What became of one occurrence. Written once, in the transaction that decides it; kept 90 days.

    Attributes:
        disposition: launched, coalesced, skipped, expired or cancelled.
        reason: `<reason>` of `skipped/<reason>` and so on; empty for launched.
        at: When it was decided.
        state: Final state of the run of a launched occurrence.
        covered: Instants that this entry stands for, `nominal` the last of them: of an outage (those before it have no
            entry), or of jobs that were merged into it (each has its own, `coalesced`); None = only for its own.
        covered_from: The first of them.
        forced: As of the run.
    """

    namespace: str
    name: str
    incarnation: str
    version: int
    job_id: str
    trigger: str
    nominal: int
    disposition: str
    reason: str
    at: int
    state: str | None = None
    correlation: str | None = None
    interval_start: int | None = None
    interval_end: int | None = None
    admitted_at: int | None = None
    started_at: int | None = None
    ended_at: int | None = None
    node: str | None = None
    detail: str | None = None
    expires_at: int | None = None
    covered: int | None = None
    covered_from: int | None = None
    forced: str | None = None

    def key(self, shard: int) -> Key:
        return keys.ledger(shard, self.namespace, self.name, self.nominal, self.job_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerPlace:
    """Where the history has a job's entry and its ended run, for a reader who knows its id alone. As old as the entry, and kept as long.

    Attributes:
        entry: Sort key of the entry.
        run: Sort key of the ended run, which is kept 30 days; None = the job never became a run.
    """

    job_id: str
    entry: str
    run: str | None = None
    expires_at: int | None = None

    def key(self, shard: int) -> Key:
        return keys.ledger_place(shard, self.job_id)

    def entry_key(self, shard: int) -> Key:
        return Key(keys.shard_pk(shard), self.entry, "history")

    def run_key(self, shard: int) -> Key | None:
        """Key of the ended run, or None where there was none."""
        return None if self.run is None else Key(keys.shard_pk(shard), self.run, "history")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """That a run has ended, among those of all schedules of its shard by their ends. Written with the ended run, and kept as long.

    Attributes:
        id: Of the run.
        state: Final state of the run.
    """

    id: str
    namespace: str
    name: str
    state: str
    ended_at: int
    expires_at: int | None = None

    def key(self, shard: int) -> Key:
        return keys.run_end(shard, self.state == RunState.SUCCEEDED, self.ended_at, self.id)

    def run_key(self, shard: int) -> Key:
        """Key of the run itself."""
        return keys.ended_run(
            shard, self.namespace, self.name, self.state == RunState.SUCCEEDED, self.ended_at, self.id
        )
