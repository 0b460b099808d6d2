"""What an audit looks at: the rows of one shard, as far as they are about its window."""

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
    """Rows of the run plane, read in the order in which things move: what is open first, what has ended last.

    Attributes:
        namespace: The only one that is looked at; None is all.
        specs: Canonical JSON of the versions that are there, by `<ns>/<name>` and version.
        ledger: Entries from the window's begin on; later ones may stand for instants within.
        ended: Runs of the history.
        ends: The same runs as the list of the shard has them.
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
