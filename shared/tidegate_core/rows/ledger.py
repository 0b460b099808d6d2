"""Ledger: the outcome of each occurrence, and the rows that find it by job id or by end."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.language.values.states import RunState
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerRow:
    """The outcome of one occurrence, written once in the transaction that decides it and kept for 90 days.

    Attributes:
        disposition: launched, coalesced, skipped, expired or cancelled.
        reason: The `<reason>` in `skipped/<reason>` and so on; empty for launched.
        at: Time of the decision.
        state: Final state of a launched occurrence's run.
        covered: Number of instants that the entry stands for, `nominal` the last; None = only its own. Instants of an
            outage have no other entry; those of merged jobs have one each (`coalesced`).
        covered_from: First of those instants.
        forced: As in the run.
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
    """Keys of a job's ledger entry and ended run, for a reader that knows only the job id. Kept as long as the entry.

    Attributes:
        entry: Sort key of the entry.
        run: Sort key of the ended run, which is kept for 30 days; None = the job never became a run.
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
        """Returns the key of the ended run; None when there was none."""
        return None if self.run is None else Key(keys.shard_pk(shard), self.run, "history")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """The end of a run in the order of all ends of its shard. Written with the ended run and kept as long.

    Attributes:
        id: Run id.
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
        """Returns the key of the ended run."""
        return keys.ended_run(
            shard, self.namespace, self.name, self.state == RunState.SUCCEEDED, self.ended_at, self.id
        )
