"""Input of an audit: the window, and the rows of one shard that concern it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerPlace, LedgerRow, RunEnd
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import PastGeneration, ScheduleState
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS, ScopeSuspensions


class Window(NamedTuple):
    """Nominal instants `begin <= instant <= end`, milliseconds since the epoch."""

    begin: int
    end: int

    def has(self, instant: int) -> bool:
        return self.begin <= instant <= self.end


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardFacts:
    """Rows of a shard's schedules, jobs and runs.

    Open rows are read first and ended ones last, in the order in which occurrences move. So none is missed on its way.

    Attributes:
        namespace: Namespace that is audited; None: all.
        specs: Canonical JSON of the stored versions, by `<ns>/<name>` and version.
        ledger: Entries from the begin of the window on; later entries may cover instants in it.
        ended: Ended runs of the history.
        ends: Rows `RunEnd`: the ends of the shard's runs, in their order.
    """

    shard: int
    namespace: str | None = None
    controls: ScopeSuspensions = NO_SUSPENSIONS
    states: Sequence[ScheduleState] = ()
    specs: Mapping[tuple[str, int], str] = field(default_factory=dict)
    past: Sequence[PastGeneration] = ()
    jobs: Sequence[Job] = ()
    runs: Sequence[Run] = ()
    ledger: Sequence[LedgerRow] = ()
    places: Sequence[LedgerPlace] = ()
    ended: Sequence[Run] = ()
    ends: Sequence[RunEnd] = ()
