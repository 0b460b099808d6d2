"""The cursor over the ticks of a composite trigger, and the ledger entry for ticks without effect."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.triggers.composite.ticks import Tick, ticks_of
from tidegate_core.language.triggers.search import NEVER, Next
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.shard.events.evidence_log import FORGET, TICK, Entry
from tidegate_core.shard.jobs import expire_evidence
from tidegate_core.writes.unit_of_work import UnitOfWork

GROUPS_OF_TICKS_MAX = 8
"""Pieces of evidence that the ticks of one decision may touch: each has its own rows, and an outage
has days of ticks.
"""


def take_ticks(
    unit: UnitOfWork, state: ScheduleState, trigger: EventTrigger, through: int
) -> tuple[ScheduleState, list[Tick]]:
    """Takes the ticks up to a past instant. Returns the state after them, and the ticks that count.

    A scope suspension ended all work that was pending before its resume, so ticks before that are skipped in one step.
    """
    if state.next_tick is None or state.next_tick > through:
        return state, []
    ticks = ticks_of(trigger, keys.schedule_ref(state.namespace, state.name), state.ticked)
    first = max(state.next_tick, unit.controls.resumed_at(state.namespace))
    walk = ticks.walk(first, through)
    beyond = _beyond(trigger, walk.ticks)
    if beyond is not None:
        walk = ticks.walk(first, beyond - 1)
    return replace(state.at_tick(walk.following), ticked=walk.counted), walk.ticks


def _beyond(trigger: EventTrigger, ticks: list[Tick]) -> int | None:
    """Returns the first tick that exceeds the evidence of one decision."""
    groups: set[str] = set()
    for tick in ticks:
        groups.add(trigger.group_of_tick(tick.at))
        if len(groups) > GROUPS_OF_TICKS_MAX:
            return tick.at
    return None


def first_tick(spec: ScheduleSpec, state: ScheduleState, now: int) -> Next:
    """Returns the first tick from now on, or the bound of one decision's search.

    It is `NEVER` without time leaves, or when all of them have ended.
    """
    if not isinstance(spec.trigger, EventTrigger):
        return NEVER
    ref = keys.schedule_ref(state.namespace, state.name)
    return ticks_of(spec.trigger, ref, state.ticked).first_from(now)


@dataclass(slots=True)
class UnusedTicks:
    """Evidence of ticks alone that was opened and expired within one decision: after an outage there may be hundreds.

    One ledger entry stands for all of it; it leaves no other row.
    """

    last: Evidence | None = None
    reason: str = ""
    detail: str = ""
    count: int = 0
    since: int = 0

    @staticmethod
    def concerns(evidence: Evidence, log: Iterable[Entry]) -> bool:
        return not evidence.chunks and all(entry.get("kind") in {TICK, FORGET} for entry in log)

    def add(self, evidence: Evidence, reason: str, detail: str) -> None:
        self.since = self.since or evidence.first_at
        self.last, self.reason, self.detail = evidence, reason, detail
        self.count += 1

    def tell(self, unit: UnitOfWork, now: int, unread: tuple[str, ...]) -> None:
        if self.last is None:
            return
        covered = (self.count, self.since) if self.count > 1 else (None, None)
        expire_evidence(unit, self.last, self.detail, self.reason, now, unread, covered)
        self.last = None
