"""Evidence of a schedule whose ticks each open an instance of their own (`driver: time`, SEMANTICS 6.5 and 6.6).

An instance is evidence whose group is its tick. An event counts for one of them: the oldest open one that lacks it. What none
lacks waits, as long as its `ttl`, and all that waits is the next tick's: it is the evidence of the group "" till then.
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
"""Instances of one schedule: a tick that finds so many open ones opens none. An event is looked for in all of them and in the next one,
and each is a range of the lane's view: well below `RANGES_MAX`.
"""
RANGES_BESIDE = 3
"""What a decision reads beside instances: their list, what waits for a tick, and one more."""
EARLY = ""
"""Group of what waits for the next tick."""


class Instances(EvidenceAccumulator):
    """One pass over the instances of a schedule. In hand is what the pass has touched; it is written at its end."""

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
        """Takes as much as one decision has room for: of ticks, and of what it reads."""
        cut = self._beyond_the_view(groups)
        if cut is not None:
            groups = {group: (paired, before(entries, cut)) for group, (paired, entries) in groups.items()}
            through = min(through, cut - 1)
        groups, ticks, next_tick = super()._with_ticks(groups, through)
        return groups, ticks, cut if next_tick is None else next_tick

    def _beyond_the_view(self, groups: Groups) -> int | None:
        """Returns when the first entry came for which more would have to be read than the view holds.

        After an outage evidence of hundreds of ticks may be there, all of it open when what is read late was appended.
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
        """What a tick has opened has one deadline: nothing of it is due once more."""
        return super()._lines_of(evidence) if evidence.correlation == EARLY else []

    # -- what comes ---------------------------------------------------------------------------------------------------

    def _open(self, tick: Entry) -> None:
        """A tick takes all that waits for it."""
        if len(self._open_at(on_the_clock(tick))) >= OPEN_MAX:
            self._skip(tick)
            return
        group = self._trigger.group_of_tick(tick["at"])
        held = self._taken_over(group, tick) or self._opened(group, "", tick, apart=False)
        held.write_down(tick)
        held.latches.add(counted_of(tick))
        self._hands[group] = self._judged(held)

    def _skip(self, tick: Entry) -> None:
        """Writes down that a tick has opened no instance, because as many are open as may be."""
        job = waiting_job(self._state, self._spec, self.next_id(EARLY), "events", tick["at"], self._now)
        detail = f"{OPEN_MAX} instances of the schedule wait already"
        write_ledger(self._unit, job, "skipped", "open_instances", self._now, detail)

    def _taken_over(self, group: str, tick: Entry) -> OpenEvidence | None:
        """Returns what has waited, as evidence of the tick's: it moves as it is, with its entries."""
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
            # What was read late may have come before the tick; what is told of it is the tick.
            held.evidence = replace(held.evidence, first_at=_tick_of(held)["at"])
        self._hands[group] = held

    def _expire_alone(self, group: str, entry: Entry) -> None:
        """It was read so late that it had ceased to hold before the last of what is here came."""
        alone = self._opened(group, "", entry, apart=True)
        alone.write_down(entry)
        alone.latches.add(counted_of(entry))
        self._give_up(alone, "evidence_expired")

    def _place_of(self, entry: Entry) -> str:
        """Returns the group that an entry belongs to."""
        counted = counted_of(entry)
        found = [(group, self._hand(group)) for group in (*self._open_to(counted), EARLY)]
        for group, held in found:
            # What repeats, replaces or takes back an entry goes to where that is.
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
        """Returns the instances that an entry may belong to, the oldest first: no more than may be open, and the next one.

        More are there where it was read late, behind ticks of much later; it would have waited for the next one only, for its `ttl`.
        That one is among them however many were open before it: else what is read late would be nobody's.
        """
        ttl = self._composite.terms_before_tick().ttls[counted.leaf]
        found = self._open_at(counted.at)
        if ttl is not None:
            found = [group for group in found if counted.at + ttl > self._ticked(group)]
        return found[: OPEN_MAX + 1]

    def _ticked(self, group: str) -> int:
        """Returns the instant of a group's tick, by the schedule's clock."""
        at = parse_instant(group)
        return at - stopped_by(self._state, at)

    # -- what is open -------------------------------------------------------------------------------------------------

    def _hand(self, group: str) -> OpenEvidence | None:
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
        """Returns what was there when the pass began, read once: what has changed since is in hand."""
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
    """Returns a pass over a schedule's evidence, as its trigger keeps it."""
    opens = isinstance(spec.trigger, EventTrigger) and spec.trigger.opens_by_tick
    return (Instances if opens else EvidenceAccumulator)(unit, state, spec, now, unread)
