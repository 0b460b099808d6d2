"""Which ticks of a composite's time leaves are taken, and what is told of those that came to nothing (SEMANTICS 6.5)."""

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
"""Pieces of evidence that the ticks of one decision belong to: each has rows of its own, and an outage has days of them."""


def take_ticks(
    unit: UnitOfWork, state: ScheduleState, trigger: EventTrigger, through: int
) -> tuple[ScheduleState, list[Tick]]:
    """Takes the ticks up to an instant that has come; returns the state behind them, and those that count.

    What was due before a wide resume was ended with all that was pending then, as events are: those ticks are passed by at one step.
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
    """Returns the first instant that belongs to more evidence than one decision touches."""
    groups: set[str] = set()
    for tick in ticks:
        groups.add(trigger.group_of_tick(tick.at))
        if len(groups) > GROUPS_OF_TICKS_MAX:
            return tick.at
    return None


def first_tick(spec: ScheduleSpec, state: ScheduleState, now: int) -> Next:
    """Returns the first tick that counts from now on, or how far one decision has searched for it.

    It is never where no leaf is of time, or all have run their course.
    """
    if not isinstance(spec.trigger, EventTrigger):
        return NEVER
    ref = keys.schedule_ref(state.namespace, state.name)
    return ticks_of(spec.trigger, ref, state.ticked).first_from(now)


@dataclass(slots=True)
class UnusedTicks:
    """Evidence of nothing but ticks that was opened and given up within one decision: after an outage there may be hundreds.

    One entry of the ledger stands for all of it; it leaves no other row.
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
