"""Evidence of a composite trigger whose ticks each open an instance (`driver: time`).

An instance is evidence whose group is its tick. An event counts for the oldest open instance that lacks it. If none
lacks it, it waits in the group "" up to its `ttl`, and the next tick takes everything that waits there.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate_core.evidence.accumulator import EvidenceAccumulator, Groups, OpenEvidence
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.triggers.composite.composite import CompositeTrigger
from tidegate_core.language.triggers.composite.ticks import Tick
from tidegate_core.language.triggers.latches import Counted, Latches
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.shard.events.evidence_log import (
    Entry,
    before,
    counted_of,
    is_of_a_tick,
    moment_of,
    on_the_clock,
    replayed,
    tick_entry,
)
from tidegate_core.shard.jobs import waiting_job, write_ledger
from tidegate_core.shard.schedule_state import is_of_ended_generation, present_evidence, stopped_by
from tidegate_core.writes.read_cache import RANGES_MAX
from tidegate_core.writes.unit_of_work import UnitOfWork

OPEN_MAX = 32
"""Open instances of one schedule; a tick beyond that opens none.

An event is searched for in all of them and the next one. Each is a range of the read cache, so this is well below
`RANGES_MAX`.
"""
RANGES_BESIDE = 3
"""Ranges that a decision reads in addition to instances: their list, the waiting events, and one more."""
EARLY = ""
"""Group of events that wait for the next tick."""


class Instances(EvidenceAccumulator):
    """One pass over the instances of a schedule. It keeps changed instances in memory and writes them at its end."""

    def __init__(
        self, unit: UnitOfWork, state: ScheduleState, spec: ScheduleSpec, now: int, unread: tuple[str, ...] = ()
    ) -> None:
        super().__init__(unit, state, spec, now, unread)
        assert isinstance(spec.trigger, CompositeTrigger)
        self._composite: CompositeTrigger = spec.trigger
        self._hands: dict[str, OpenEvidence | None] = {}
        self._listed: list[Evidence] | None = None

    def fold_all(self, groups: Groups, through: int) -> int | None:
        groups, ticks, cut = self._with_ticks(groups, through)
        entries = [tick_entry(tick.leaf, tick.at) for tick in ticks]
        entries += [entry for _, found in groups.values() for entry in found]
        self._have_at_hand(self._trigger.group_of_tick(tick.at) for tick in ticks)
        self._hands = {}
        for entry in sorted(map(self._with_clock, entries), key=moment_of):
            if is_of_a_tick(entry):
                self._open(entry)
            else:
                self._count(entry)
        for held in self._hands.values():
            if held is not None and (held.unwritten or held.stored is None):
                self._keep(held)
        return cut

    def _with_ticks(self, groups: Groups, through: int) -> tuple[Groups, list[Tick], int | None]:
        """Takes as many ticks and reads as fit into one decision."""
        cut = self._beyond_the_view(groups)
        if cut is not None:
            groups = {group: (paired, before(entries, cut)) for group, (paired, entries) in groups.items()}
            through = min(through, cut - 1)
        groups, ticks, next_tick = super()._with_ticks(groups, through)
        return groups, ticks, cut if next_tick is None else next_tick

    def _beyond_the_view(self, groups: Groups) -> int | None:
        """Returns the append time of the first entry whose reads exceed the read cache.

        After an outage, evidence of hundreds of ticks may exist, all of it open when the late entry was appended.
        """
        entries = sorted((entry for _, found in groups.values() for entry in found), key=lambda entry: int(entry["at"]))
        read: set[str] = set()
        for entry in entries:
            more = set(self._open_to(counted_of(self._with_clock(entry))))
            if entry["at"] > entries[0]["at"] and len(read | more) > RANGES_MAX - RANGES_BESIDE:
                return int(entry["at"])
            read |= more
        return None

    def _open_in(self, groups: Groups) -> list[Evidence]:
        return self._stored()

    def _lines_of(self, evidence: Evidence) -> list[Entry]:
        """Evidence that a tick opened has one deadline: no part of it gets another."""
        return super()._lines_of(evidence) if evidence.correlation == EARLY else []

    # -- what comes ---------------------------------------------------------------------------------------------------

    def _open(self, tick: Entry) -> None:
        """Opens an instance for a tick, with all events that wait."""
        if len(self._open_at(on_the_clock(tick))) >= OPEN_MAX:
            self._skip(tick)
            return
        group = self._trigger.group_of_tick(tick["at"])
        held = self._taken_over(group, tick) or self._opened(group, "", tick, apart=False)
        held.write_down(tick)
        held.latches.add(counted_of(tick))
        self._hands[group] = self._judged(held)

    def _skip(self, tick: Entry) -> None:
        """Records that a tick opened no instance because the limit of open instances is reached."""
        job = waiting_job(self._state, self._spec, self.next_id(EARLY), "events", tick["at"], self._now)
        detail = f"{OPEN_MAX} instances of the schedule wait already"
        write_ledger(self._unit, job, "skipped", "open_instances", self._now, detail)

    def _taken_over(self, group: str, tick: Entry) -> OpenEvidence | None:
        """Returns the waiting evidence as evidence of the tick, with its entries."""
        early = self._until(self._hand(EARLY), on_the_clock(tick))
        self._hands[EARLY] = None
        if early is None:
            return None
        if early.stored is not None:
            self._drop_row(early.stored)
        evidence = replace(early.evidence, correlation=group, paired_by="", first_at=tick["at"], deadline=None)
        latches = replayed(self._latches(tick), early.log)
        return OpenEvidence(evidence, latches, log=early.log, unwritten=early.unwritten)

    def _count(self, entry: Entry) -> None:
        group = self._place_of(entry)
        held = self._until(self._hand(group), on_the_clock(entry))
        if held is not None and held.latches.is_stale(counted_of(entry)):
            self._expire_alone(group, entry)
        else:
            held = self._added(held, group, "", [entry])
        if held is not None and group != EARLY:
            # A late entry may precede the tick; the ledger states the tick.
            held.evidence = replace(held.evidence, first_at=_tick_of(held)["at"])
        self._hands[group] = held

    def _expire_alone(self, group: str, entry: Entry) -> None:
        """Expires an entry that was read so late that it lapsed before the last present entry came."""
        alone = self._opened(group, "", entry, apart=True)
        alone.write_down(entry)
        alone.latches.add(counted_of(entry))
        self._give_up(alone, "evidence_expired")

    def _place_of(self, entry: Entry) -> str:
        """Returns the group of an entry."""
        counted = counted_of(entry)
        found = [(group, self._hand(group)) for group in (*self._open_to(counted), EARLY)]
        for group, held in found:
            # A repeat, replacement or withdrawal goes to the evidence with the original entry.
            if held is not None and held.latches.has(counted):
                return group
        leaf = self._trigger.leaves()[counted.leaf]
        for group, held in found:
            if group == EARLY or held is None or counted.gone:
                continue
            if leaf.shortfall(held.latches.counts[counted.leaf]) is not None:
                return group
        return EARLY

    def _open_to(self, counted: Counted) -> list[str]:
        """Returns the instances that an entry may belong to, oldest first: at most `OPEN_MAX` and the next one.

        A late entry may find more, opened by much later ticks. It would have waited only for the next tick, within
        its `ttl`. The list includes that instance regardless of how many were open before it; otherwise the late
        entry would belong to none.
        """
        ttl = self._composite.terms_before_tick().ttls[counted.leaf]
        found = self._open_at(counted.at)
        if ttl is not None:
            found = [group for group in found if counted.at + ttl > self._ticked(group)]
        return found[: OPEN_MAX + 1]

    def _ticked(self, group: str) -> int:
        """Returns the tick of a group, on the schedule's clock."""
        at = parse_instant(group)
        return at - stopped_by(self._state, at)

    # -- what is open -------------------------------------------------------------------------------------------------

    def _hand(self, group: str) -> OpenEvidence | None:
        if group not in self._hands:
            self._hands[group] = self.stored(group)
        return self._hands[group]

    def _open_at(self, at: int) -> list[str]:
        """Returns the instances that are open at an instant of the schedule's clock, oldest first."""
        stored = {each.correlation: each for each in self._stored()}
        groups = {group for group, each in stored.items() if each.deadline is None or each.deadline - each.stopped > at}
        for group, held in self._hands.items():
            due = None if held is None else held.latches.due()
            groups.discard(group)
            if held is not None and (due is None or due.at > at):
                groups.add(group)
        return sorted(groups - {EARLY}, key=parse_instant)

    def _stored(self) -> list[Evidence]:
        """Returns the stored evidence at the begin of the pass, read once; later changes are in memory."""
        if self._listed is None:
            self._listed = self._list()
        return self._listed

    def _list(self) -> list[Evidence]:
        ref = keys.schedule_ref(self._state.namespace, self._state.name)
        items = self._unit.range(f"{keys.EVIDENCE_PREFIX}{ref}#", f"{keys.EVIDENCE_PREFIX}{ref}#{keys.LAST}")
        found = [present_evidence(self._state, from_item(Evidence, item), self._now) for item in items]
        there = [each for each in found if not is_of_ended_generation(self._state, each)]
        return [each for each in there if not self._unit.drops(each.namespace, each.first_at)]

    def _opener(self, log: list[Entry]) -> Entry:
        return next(filter(is_of_a_tick, log), log[0])

    def _latches(self, first: Entry) -> Latches:
        if not is_of_a_tick(first):
            return Latches(self._trigger.is_satisfied_by, self._composite.terms_before_tick())
        terms = self._composite.terms_of_instance(first["at"])
        if terms.ends_at is not None:
            terms = replace(terms, ends_at=on_the_clock(first) + terms.ends_at - first["at"])
        return Latches(self._trigger.is_satisfied_by, terms)


def _tick_of(held: OpenEvidence) -> Entry:
    return next(filter(is_of_a_tick, held.log))


def gathering_of(
    unit: UnitOfWork, state: ScheduleState, spec: ScheduleSpec, now: int, unread: tuple[str, ...] = ()
) -> EvidenceAccumulator:
    """Returns a pass over a schedule's evidence, by the kind of its trigger."""
    opens = isinstance(spec.trigger, EventTrigger) and spec.trigger.opens_by_tick
    return (Instances if opens else EvidenceAccumulator)(unit, state, spec, now, unread)
