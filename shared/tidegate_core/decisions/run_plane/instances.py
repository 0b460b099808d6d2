"""Evidence of a schedule whose ticks each open an instance of their own (`driver: time`, SEMANTICS 6.5 and 6.6).

An instance is evidence whose group is its tick. An event counts for one of them: the oldest open one that lacks it. What none
lacks waits, as long as its `ttl`, and all that waits is the next tick's: it is the evidence of the group "" till then.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate_core.decisions.run_plane.entries import (
    Entry,
    counted_of,
    is_of_a_tick,
    on_the_clock,
    replayed,
    tick_entry,
)
from tidegate_core.decisions.run_plane.gathering import Gathering, Groups, Held
from tidegate_core.decisions.run_plane.jobs import skip_tick
from tidegate_core.decisions.run_plane.standing import present_evidence
from tidegate_core.decisions.run_plane.ticking import take_ticks
from tidegate_core.decisions.run_plane.timers import tick_row
from tidegate_core.model.instants import parse_instant
from tidegate_core.model.schedule import ScheduleSpec
from tidegate_core.records.codec import from_item
from tidegate_core.records.run_plane import Evidence, ScheduleState, TimerRow
from tidegate_core.store import keys
from tidegate_core.transactions.unit_of_work import UnitOfWork
from tidegate_core.triggers.base import EventTrigger
from tidegate_core.triggers.latches import Latches

OPEN_MAX = 32
"""Instances of one schedule: a tick that finds so many open ones opens none. What is counted reads all of them."""
EARLY = ""
"""Group of what waits for the next tick."""


class TicksFirst(Exception):
    """More ticks lie before what is to be counted than one decision takes.

    Attributes:
        row: Of the first of them.
        through: The last instant that matters.
    """

    def __init__(self, row: TimerRow, through: int) -> None:
        super().__init__(f"ticks of {row.ref} have to be taken first")
        self.row = row
        self.through = through


class Instances(Gathering):
    """One pass over the instances of a schedule. In hand is what the pass has touched; it is written at its end."""

    def __init__(
        self, unit: UnitOfWork, state: ScheduleState, spec: ScheduleSpec, now: int, unread: tuple[str, ...] = ()
    ) -> None:
        super().__init__(unit, state, spec, now, unread)
        self._hands: dict[str, Held | None] = {}

    def fold_all(self, groups: Groups, through: int) -> int | None:
        """Counts entries, and the ticks up to `through` between them. Returns None: nothing is left out here.

        Raises:
            TicksFirst: An entry would be counted before ticks that come before it.
        """
        row, through = tick_row(self._state), min(through, self._now)
        self._state, ticks = take_ticks(self._unit, self._state, self._trigger, through)
        following = self._state.next_tick
        if groups and row is not None and following is not None and following <= through:
            raise TicksFirst(row, through)
        entries = [tick_entry(tick.leaf, tick.at) for tick in ticks]
        entries += [entry for _, found in groups.values() for entry in found]
        self._hands = {}
        for entry in sorted(map(self._with_clock, entries), key=on_the_clock):
            if is_of_a_tick(entry):
                self._open(entry)
            else:
                self._count(entry)
        for held in self._hands.values():
            if held is not None and (held.unwritten or held.stored is None):
                self._keep(held)
        return None

    # -- what comes ---------------------------------------------------------------------------------------------------

    def _open(self, tick: Entry) -> None:
        """A tick takes all that waits for it."""
        if len(self._open_at(on_the_clock(tick))) >= OPEN_MAX:
            skip_tick(self._unit, self._state, self.next_id(EARLY), tick["at"], self._now, OPEN_MAX)
            return
        group = self._trigger.group_of_tick(tick["at"])
        held = self._taken_over(group, tick) or self._opened(group, "", tick, apart=False)
        held.write_down(tick)
        held.latches.add(counted_of(tick))
        self._hands[group] = self._judged(held)

    def _taken_over(self, group: str, tick: Entry) -> Held | None:
        """Returns what has waited, as evidence of the tick's: it moves as it is, with its entries."""
        early = self._until(self._hand(EARLY), on_the_clock(tick))
        self._hands[EARLY] = None
        if early is None:
            return None
        if early.stored is not None:
            self._drop_row(early.stored)
        evidence = replace(early.evidence, correlation=group, paired_by="", first_at=tick["at"], deadline=None)
        latches = replayed(self._latches(tick), early.log)
        return Held(evidence, latches, log=early.log, unwritten=early.unwritten)

    def _count(self, entry: Entry) -> None:
        group = self._place_of(entry)
        held = self._added(self._hand(group), group, "", [entry])
        if held is not None and group != EARLY:
            # What was read late may have come before the tick; what is told of it is the tick.
            held.evidence = replace(held.evidence, first_at=_tick_of(held)["at"])
        self._hands[group] = held

    def _place_of(self, entry: Entry) -> str:
        """Returns the group that an entry belongs to."""
        counted = counted_of(entry)
        found = [(group, self._hand(group)) for group in (*self._open_at(counted.at), EARLY)]
        for group, held in found:
            # What repeats, replaces or takes back an entry goes to where that is.
            if held is not None and held.latches.has(counted):
                return group
        leaf = self._trigger.leaves()[counted.leaf]
        ttl = self._trigger.terms_before_tick().ttls[counted.leaf]
        for group, held in found:
            if group == EARLY or held is None or counted.gone:
                continue
            held_on = ttl is None or counted.at + ttl > on_the_clock(_tick_of(held))
            if held_on and leaf.shortfall(held.latches.counts[counted.leaf]) is not None:
                return group
        return EARLY

    # -- what is open -------------------------------------------------------------------------------------------------

    def _hand(self, group: str) -> Held | None:
        if group not in self._hands:
            self._hands[group] = self.stored(group)
        return self._hands[group]

    def _open_at(self, at: int) -> list[str]:
        """Returns the instances whose time is not over at an instant of the schedule's clock, the oldest first."""
        stored = {each.correlation: each for each in self._stored()}
        groups = {group for group, each in stored.items() if each.deadline is None or each.deadline - each.stopped > at}
        for group, held in self._hands.items():
            due = None if held is None else held.latches.due()
            groups.discard(group)
            if held is not None and (due is None or due.at > at):
                groups.add(group)
        return sorted(groups - {EARLY}, key=parse_instant)

    def _stored(self) -> list[Evidence]:
        ref = keys.schedule_ref(self._state.namespace, self._state.name)
        items = self._unit.range(f"E#{ref}#", f"E#{ref}#{keys.LAST}")
        found = [present_evidence(self._state, from_item(Evidence, item), self._now) for item in items]
        return [each for each in found if each.version == self._state.version]

    def _latches_of(self, log: list[Entry]) -> Latches:
        return self._latches(next(filter(is_of_a_tick, log), log[0]))

    def _latches(self, first: Entry) -> Latches:
        if not is_of_a_tick(first):
            return Latches(self._trigger.is_satisfied_by, self._trigger.terms_before_tick())
        terms = self._trigger.terms_of_instance(first["at"])
        if terms.ends_at is not None:
            terms = replace(terms, ends_at=on_the_clock(first) + terms.ends_at - first["at"])
        return Latches(self._trigger.is_satisfied_by, terms)


def _tick_of(held: Held) -> Entry:
    return next(filter(is_of_a_tick, held.log))


def gathering_of(
    unit: UnitOfWork, state: ScheduleState, spec: ScheduleSpec, now: int, unread: tuple[str, ...] = ()
) -> Gathering:
    """Returns a pass over a schedule's evidence, as its trigger keeps it."""
    opens = isinstance(spec.trigger, EventTrigger) and spec.trigger.opens_by_tick
    return (Instances if opens else Gathering)(unit, state, spec, now, unread)
