"""The evidence of one schedule within one decision: evidence grows, waits, becomes a job or expires (I3).

`language/triggers/latches.py` has the rules as an automaton; this module turns its results into rows. Append times
decide: each entry first passes all deadlines before it, regardless of when and with which others it is counted. The
automaton uses the schedule's clock, which stops in `hold` and `freeze` (`schedule_state.py`). Rows hold real time.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tidegate_core.engine.membership_lease import CLOCK_OFF_MS_MAX
from tidegate_core.evidence.late_events import place_late_entries
from tidegate_core.evidence.tick_cursor import UnusedTicks, take_ticks
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.triggers.composite.ticks import Tick
from tidegate_core.language.triggers.latches import Due, Latches
from tidegate_core.language.triggers.trigger import UNPAIRED, EventTrigger
from tidegate_core.language.values.derived_ids import run_id, seal_mark
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence, EvidenceChunk
from tidegate_core.rows.job import Job
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.rows.trigger_rows import TimerRow
from tidegate_core.shard.events.evidence_log import (
    STILL,
    Entry,
    as_json,
    before,
    chunks_of,
    counted_of,
    forgetting,
    in_chunks,
    is_of_a_tick,
    merged,
    moment_of,
    on_the_clock,
    replayed,
    tick_entry,
    upstream_of,
    with_former_versions,
)
from tidegate_core.shard.jobs import (
    clean_up_later,
    end_evidence,
    evidence_ref,
    expire_evidence,
    note_evidence,
    seal,
    waiting_job,
)
from tidegate_core.shard.schedule_state import (
    fires,
    is_cut,
    is_of_ended_generation,
    oldest_kept_generation,
    present_evidence,
    stopped,
    stopped_by,
    version_of,
)
from tidegate_core.shard.timer_rows import job_made, move_rows, pending_reminder
from tidegate_core.writes.unit_of_work import UnitOfWork

Groups: TypeAlias = dict[str, tuple[str | None, list[Entry]]]
"""Entries by the group of their evidence, with the pairing value."""


@dataclass(slots=True)
class OpenEvidence:
    """Evidence in memory.

    Attributes:
        stored: Stored evidence; None for new evidence. `evidence` is its form after state and decision.
        log: All counted entries in order, `unwritten` at the end.
        apart: True for evidence that lies before the stored one in time. It becomes a job at once or expires; its row
            is never written.
    """

    evidence: Evidence
    latches: Latches
    stored: Evidence | None = None
    log: list[Entry] = field(default_factory=list)
    unwritten: list[Entry] = field(default_factory=list)
    apart: bool = False

    def write_down(self, line: Entry) -> None:
        self.log.append(line)
        self.unwritten.append(line)


@dataclass(slots=True)
class _Past:
    """Counted entries and the automaton after them; its deadlines depend on `opener`."""

    log: list[Entry] = field(default_factory=list)
    opener: Entry | None = None
    latches: Latches | None = None


class EvidenceAccumulator:
    """One pass over the evidence of one schedule.

    Args:
        unit: Unit of work that takes the writes.
        state: State of the schedule as read.
        spec: Definition of the version in `state`.
        now: Clock of the owner.
        unread: Topics that a time-out did not wait for, for the ledger.
    """

    def __init__(
        self, unit: UnitOfWork, state: ScheduleState, spec: ScheduleSpec, now: int, unread: tuple[str, ...] = ()
    ) -> None:
        assert isinstance(spec.trigger, EventTrigger)
        self._unit = unit
        self._before = state
        self._state = state
        self._spec = spec
        self._trigger: EventTrigger = spec.trigger
        self._now = now
        self._unread = unread
        self._stopped = stopped(state, now)
        self._unused_ticks = UnusedTicks()

    # -- what callers do ----------------------------------------------------------------------------------------------

    def fold_all(self, groups: Groups, through: int) -> int | None:
        """Adds entries of several groups, and the ticks up to `through` between them.

        Returns the first tick that did not fit into this decision, or None. No entry from that instant on is added:
        the decision leaves it in place and runs again (`UnitOfWork.go_on`).
        """
        groups, ticks, cut = self._with_ticks(groups, through)
        for tick in ticks:
            group = self._trigger.group_of_tick(tick.at)
            groups.setdefault(group, (UNPAIRED, []))[1].append(tick_entry(tick.leaf, tick.at))
        self._have_at_hand(groups)
        for group, (paired_by, entries) in groups.items():
            if entries:
                self.fold(group, paired_by, entries)
        return cut

    def passes_uncounted_deadline(self, groups: Groups, last_at: int, through: int) -> bool:
        """Returns whether counting these entries would pass a deadline, reminder or tick after the low watermark.

        Args:
            groups: Entries to count.
            last_at: Append time of the last entry.
            through: Low watermark: every earlier event is counted or among these.
        """
        tick = self._state.next_tick
        reminder = self._reminder(through + 1)
        if tick is not None and tick <= last_at:
            return True
        if reminder is not None and reminder <= last_at:
            return True
        known, clock = self._clock(through), self._clock(last_at)
        times = {entry["at"] for _, entries in groups.values() for entry in entries}
        begins = [(at, self._clock(at)) for at in sorted(times)]
        found = self._open_in(groups)
        due = {each.id: each.deadline - each.stopped for each in found if each.deadline is not None}
        # Overdue evidence is decided after these entries. The rest of it, or what the entries postpone, then has
        # another deadline.
        overdue = [each for each in found if each.id in due and due[each.id] <= known]
        begins += [(entry["at"], on_the_clock(entry)) for each in overdue for entry in self._lines_of(each)]
        deadlines = [*due.values(), *(begin + wait for at, begin in begins for wait in self._waits(at))]
        return any(known < deadline <= clock for deadline in deadlines)

    def _waits(self, at: int) -> list[int]:
        """Returns the waiting times that can count from an entry at `at`; empty = forever."""
        terms = self._trigger.terms(at)
        ends = None if terms.ends_at is None else terms.ends_at - at
        waits = (*terms.ttls, terms.timeout, terms.max_wait, terms.settle, terms.max_settle, ends)
        return [each for each in dict.fromkeys(waits) if each is not None]

    def _lines_of(self, evidence: Evidence) -> list[Entry]:
        """Returns all stored entries of evidence."""
        return [line for chunk in chunks_of(self._unit, evidence.id, evidence.chunks) for line in json.loads(chunk)]

    def _clock(self, at: int) -> int:
        return at - stopped_by(self._state, at)

    def _open_in(self, groups: Groups) -> list[Evidence]:
        """Returns the evidence that these entries may join."""
        self._have_at_hand(groups)
        held = (self._unit.record(Evidence, self._key(group)) for group in groups)
        return [each for each in held if each is not None and not each.job]

    def fold(self, group: str, paired_by: str | None, entries: list[Entry]) -> None:
        """Adds entries of one group in the order of their append times."""
        entries = sorted(map(self._with_clock, entries), key=moment_of)
        held = self.stored(group)
        if held is not None and not held.evidence.job:
            held, entries = self._with_late_entries(held, paired_by, entries)
        held = self._added(held, group, paired_by, entries)
        if held is not None:
            self._keep(held)

    def stored(self, group: str) -> OpenEvidence | None:
        """Returns the group's open evidence.

        It seals evidence whose job takes no more events, and ends evidence that a request ends.
        """
        stored = self._unit.record(Evidence, self._key(group))
        if stored is None:
            return None
        evidence = present_evidence(self._state, stored, self._now)
        if evidence.job and self._sealed(evidence):
            return None
        if not evidence.job and self._is_to_end(evidence):
            self._end_former(stored)
            return None
        if evidence.version != self._state.version:
            return None
        log, latches = self._counted(evidence)
        return OpenEvidence(evidence, latches, stored, log)

    def _sealed(self, evidence: Evidence) -> bool:
        """Seals the evidence of a job that a page of a request will end: an update, a suspend that drops it, or a resume
        that cut it.

        New events belong to the next job, as if all pages were complete; its evidence takes this one's place.
        """
        state = self._state
        is_former = evidence.version != state.version
        of_late = state.shedding is None and evidence.first_at > state.activated_at + CLOCK_OFF_MS_MAX
        if of_late and not is_former and not self._unit.drops(evidence.namespace, evidence.first_at):
            # No page concerns evidence that is younger than the last of these requests, so no read is needed.
            return False
        job = self._unit.record(Job, keys.job(self._unit.shard, evidence.id))
        if job is None or not (is_former or self._ends(job)):
            return False
        seal(self._unit, evidence)
        return True

    def _ends(self, job: Job) -> bool:
        """Returns whether an outstanding page may concern the job."""
        is_of_a_request = job.generation < oldest_kept_generation(self._state) or is_cut(self._state, job)
        return is_of_a_request or self._unit.drops(job.namespace, job.satisfied_at)

    def _is_to_end(self, evidence: Evidence) -> bool:
        return is_of_ended_generation(self._state, evidence) or self._unit.drops(evidence.namespace, evidence.first_at)

    def _end_former(self, stored: Evidence) -> None:
        """Ends evidence that a page of a request would end, as if all pages were complete: new events belong to the next
        evidence.

        The receipt of the request does not name this evidence, so a ledger row states its end.
        """
        state = self._state
        reason = "suspended"
        if stored.incarnation != state.incarnation:
            reason = "schedule_deleted"
        elif version_of(state, stored.version) != state.version:
            reason = "superseded"
        note_evidence(self._unit, stored, "cancelled", reason, self._now)
        end_evidence(self._unit, stored, self._now)

    def _counted(self, evidence: Evidence) -> tuple[list[Entry], Latches]:
        """Returns all stored entries of evidence and the automaton after them."""
        chunks = chunks_of(self._unit, evidence.id, evidence.chunks)
        name = (evidence.id, evidence.version)
        past = self._unit.derived.of(name, chunks, _Past, self._go_through)
        assert past.latches is not None, "evidence of nothing"
        return list(past.log), past.latches.copy()

    def _go_through(self, past: _Past, chunk: str) -> None:
        entries = json.loads(chunk)
        past.log += entries
        opener = self._opener(past.log)
        if past.latches is None or opener is not past.opener:
            past.opener, past.latches, entries = opener, self._latches(opener), past.log
        replayed(past.latches, entries)

    def pass_time(self, held: OpenEvidence) -> None:
        """Passes the deadline of the evidence's timer row."""
        assert held.evidence.deadline is not None
        kept = self._until(held, held.evidence.deadline - held.evidence.stopped)
        if kept is not None:
            self._keep(kept)

    def pass_time_through(self, group: str, at: int) -> None:
        """Passes all deadlines of the group's evidence up to an instant, inclusive: no other event came by then."""
        kept = self._until(self.stored(group), self._clock(at))
        if kept is not None:
            self._keep(kept)

    def fire_incomplete(self, held: OpenEvidence) -> None:
        kept = self._fire(held)
        if kept is not None:
            self._keep(kept)

    def next_id(self, group: str) -> str:
        """Returns the id of the next evidence and of its job."""
        self._state = replace(self._state, seals=self._state.seals + 1)
        mark = seal_mark(self._state.seals, group or None)
        return run_id(self._unit.shard, self._state.incarnation, self._trigger.type, mark)

    def add_job(self, job: Job) -> None:
        """Creates a job; the next reminder counts from it."""
        self._unit.put_new(job, job.key(self._unit.shard))
        every = self._trigger.at_least_every
        if every is not None:
            self._state = job_made(self._state, every, self._now)

    @property
    def made_at(self) -> int:
        """Creation time of the last job, decisions of this pass included."""
        return self._state.made_at

    def reminded(self, at: int) -> None:
        """Settles a reminder that created no job, as if a job had been created then.

        If topics were unread for long, the next reminder may be due as well and waits.
        """
        every, following = self._trigger.at_least_every, self._state.next_nominal
        assert every is not None
        has_come = at + every <= self._now and (following is None or at + every < following)
        self._state = replace(self._state, made_at=at, reminder=at + every if has_come else None)

    def close(self) -> None:
        """Writes the schedule's state once, with all changes."""
        before, state = self._before, self._state
        self._unused_ticks.tell(self._unit, self._now, self._unread)
        if state == before:
            return
        self._unit.put(state, state.key(self._unit.shard))
        move_rows(self._unit, before, state)

    def _have_at_hand(self, groups: Iterable[str]) -> None:
        """Reads the evidence of several groups at once: one by one, each would cost a round trip."""
        self._unit.items([self._key(group) for group in groups])

    def _key(self, group: str) -> Key:
        return keys.evidence(self._unit.shard, self._state.namespace, self._state.name, group)

    # -- entries ------------------------------------------------------------------------------------------------------

    def _with_ticks(self, groups: Groups, through: int) -> tuple[Groups, list[Tick], int | None]:
        """Takes the ticks up to `through`.

        Returns the entries to count with them, the ticks, and the result of `fold_all`.
        """
        through = min(through, self._now)
        self._state, ticks = take_ticks(self._unit, self._state, self._trigger, through)
        cut = self._state.next_tick
        if cut is None or cut > through:
            return groups, ticks, None
        return {group: (paired, before(entries, cut)) for group, (paired, entries) in groups.items()}, ticks, cut

    def _with_clock(self, entry: Entry) -> Entry:
        still = stopped_by(self._state, entry["at"])
        return {**entry, STILL: still} if still else entry

    def _opener(self, log: list[Entry]) -> Entry:
        """Returns the entry that opened the evidence with this log."""
        return log[0]

    def _latches(self, first: Entry) -> Latches:
        """Returns the automaton of evidence that an entry opens."""
        terms = self._trigger.terms(first["at"])
        if terms.ends_at is not None:
            terms = replace(terms, ends_at=terms.ends_at - first.get(STILL, 0))
        return Latches(self._trigger.is_satisfied_by, terms)

    def _with_late_entries(
        self, held: OpenEvidence, paired_by: str | None, entries: list[Entry]
    ) -> tuple[OpenEvidence | None, list[Entry]]:
        """Counts late entries that were over before the last stored entry.

        Returns the evidence and the remaining entries.

        They came from another topic partition that was read later. If they counted like others, evidence would fire
        together with much later entries, or stored entries would expire with them.
        """
        last_at = held.latches.last_at
        late = [entry for entry in entries if on_the_clock(entry) < last_at]
        if not any(held.latches.ends_amid(counted_of(entry)) for entry in late):
            return held, entries
        group = held.evidence.correlation
        found = place_late_entries(self._latches, with_former_versions(held.log), late, last_at)
        for piece in found.apart:
            apart = self._until(self._added(None, group, paired_by, piece, apart=True), last_at)
            if apart is not None:
                self._give_up(apart, "evidence_expired")
        met = self._until(self._added(held, group, paired_by, found.joining), last_at)
        return met, entries[len(late) :]

    def _added(
        self, held: OpenEvidence | None, group: str, paired_by: str | None, entries: list[Entry], *, apart: bool = False
    ) -> OpenEvidence | None:
        for entry in entries:
            counted = counted_of(entry)
            held = self._until(held, counted.at, counted.appended)
            if is_of_a_tick(entry) and held is not None and held.latches.is_latched(counted.leaf):
                continue  # It is latched; another tick adds nothing.
            if counted.gone and (held is None or not held.latches.holds(counted)):
                continue  # There is nothing to withdraw: the entry never came, or a job has it.
            if held is None:
                held = self._opened(group, paired_by, entry, apart=apart)
            held.write_down(entry)
            held.latches.add(counted)
            # A late entry may be the first: time-outs count from it, and the ledger states it.
            held.evidence = replace(held.evidence, first_at=min(held.evidence.first_at, entry["at"]))
            held = self._judged(held)
        return held

    def _judged(self, held: OpenEvidence) -> OpenEvidence | None:
        """Returns the evidence after an entry; None when it fired and closed, or lost its last entry."""
        if held.evidence.job:
            return held
        if held.latches.fires:
            return self._fire(held)
        if held.latches.first_at is None and not held.latches.is_satisfied:
            self._end(held)
            return None
        return held

    def _until(self, held: OpenEvidence | None, at: int, appended: int = 0) -> OpenEvidence | None:
        """Passes the deadlines up to `at` on the schedule's clock, inclusive.

        A reminder is an instant in real time. During a suspension the schedule's clock stops, so `appended` tells
        which events precede the reminder.
        """
        while held is not None and not held.evidence.job:
            if held.latches.fires:
                # An older release counted its log by another rule: no deadline is left to wait for.
                return self._passed(held, Due(at, "fire"))
            due = held.latches.due()
            reminder = self._reminder(held.evidence.first_at)
            if reminder is not None and not held.apart:
                reminds_at = self._clock(reminder)
                has_come = reminds_at < at or (reminds_at == at and reminder <= appended)
                if has_come and (due is None or reminds_at < due.at):
                    return self._fire(held)
            if due is None or due.at > at:
                break
            held = self._passed(held, due)
        return held

    def _reminder(self, since: int) -> int | None:
        """Returns the first undecided reminder that is due at or after an instant.

        Evidence at that time becomes a job before later events count. The state names the earliest reminder; further
        waiting ones follow at their pace.
        """
        every = self._trigger.at_least_every
        if every is None or not fires(self._state):
            return None
        found = pending_reminder(self._state, every, self._unit.controls.resumed_at(self._state.namespace))
        if found is not None and found == self._state.reminder and found < since:
            found += -(-(since - found) // every) * every
            found = min(found, max(since, self._state.next_nominal or found))
        return found if found is not None and since <= found <= self._now else None

    def _passed(self, held: OpenEvidence, due: Due) -> OpenEvidence | None:
        if due.outcome in {"fire", "partial"} and fires(self._state):
            return self._fire(held)
        if due.outcome != "forget":  # Also when it would fire while the schedule is drained, which creates no jobs.
            self._give_up(held, "trigger_timeout")
            return None
        counts = held.latches.counts
        for leaf in due.leaves:
            held.write_down(forgetting(leaf, due.at + self._stopped))
            held.latches.forget(leaf)
        if held.latches.first_at is not None:
            return held
        self._give_up(held, "evidence_expired", counts)
        return None

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _opened(self, group: str, paired_by: str | None, first: Entry, *, apart: bool) -> OpenEvidence:
        latches = self._latches(first)
        evidence = Evidence(
            id=self.next_id(group),
            namespace=self._state.namespace,
            name=self._state.name,
            incarnation=self._state.incarnation,
            version=self._state.version,
            correlation=group,
            paired_by=paired_by if paired_by != group else None,
            counts=latches.counts,
            chunks=0,
            first_at=first["at"],
            generation=self._state.generation,
        )
        return OpenEvidence(evidence, latches, apart=apart)

    def _fire(self, held: OpenEvidence) -> OpenEvidence | None:
        """Creates the job.

        With `take: all` it absorbs events until its admission; otherwise later events belong to the next job.
        """
        sealed = held.apart or self._trigger.take == "exactly_n" or self._trigger.opens_by_tick
        self._write_log(held)
        job = self._job(held)
        self.add_job(replace(job, chunks=held.evidence.chunks) if sealed else job)
        if not sealed:
            held.evidence = replace(held.evidence, job=True)
            return held
        if held.stored is not None:
            self._drop_row(held.stored)
        return None

    def _job(self, held: OpenEvidence) -> Job:
        evidence = held.evidence
        holding = merged(held.log)
        upstream = upstream_of(holding)
        ticked = [entry["at"] for entry in holding if is_of_a_tick(entry)]
        paired = evidence.value if self._trigger.correlate else (upstream or {}).get("correlation")
        # If a tick helped to create the job, the tick is its nominal time.
        nominal = max(ticked, default=self._now)
        return replace(
            waiting_job(self._state, self._spec, evidence.id, "events", nominal, self._now),
            correlation=paired or None,
            evidence_id=evidence.id,
            evidence_correlation=evidence.correlation,
            upstream=None if upstream is None else as_json(upstream),
            missing=() if held.latches.is_satisfied else self._trigger.shortfalls(evidence.counts),
        )

    def _give_up(self, held: OpenEvidence, reason: str, counts: tuple[int, ...] | None = None) -> None:
        """Records that the evidence did not become a job in time."""
        detail = self._trigger.missing(counts or held.latches.counts) or ""
        if held.stored is None and UnusedTicks.concerns(held.evidence, held.log):
            self._unused_ticks.add(held.evidence, reason, detail)
            return
        self._write_log(held)
        expire_evidence(self._unit, held.evidence, detail, reason, self._now, self._unread)
        self._end(held)

    def _end(self, held: OpenEvidence) -> None:
        self._write_log(held)
        if held.stored is None:
            clean_up_later(self._unit, held.evidence.id, held.evidence.chunks, self._now)
        else:
            end_evidence(self._unit, replace(held.stored, chunks=held.evidence.chunks), self._now)

    def _drop_row(self, stored: Evidence) -> None:
        self._unit.delete(stored.key(self._unit.shard))
        if stored.deadline is not None:
            ref = evidence_ref(stored.namespace, stored.name, stored.correlation)
            self._unit.forget_row(keys.timer(self._unit.shard, stored.deadline, keys.EVIDENCE_TIMER, ref))

    def _write_log(self, held: OpenEvidence) -> None:
        chunks = held.evidence.chunks
        for group in in_chunks(held.unwritten) if held.unwritten else ():
            chunk = EvidenceChunk(evidence_id=held.evidence.id, chunk=chunks, entries=group)
            self._unit.put_new(chunk, chunk.key(self._unit.shard))
            chunks += 1
        held.unwritten = []
        held.evidence = replace(held.evidence, chunks=chunks, counts=held.latches.counts)

    def _keep(self, held: OpenEvidence) -> None:
        assert not held.apart
        self._write_log(held)
        due = None if held.evidence.job else held.latches.due()
        generation = self._state.generation if held.evidence.generation is None else held.evidence.generation
        evidence = replace(held.evidence, deadline=None, generation=generation)
        if due is not None:
            evidence = replace(evidence, deadline=due.at + self._stopped, stopped=self._stopped)
        if evidence == held.stored:
            return
        self._unit.put(evidence, evidence.key(self._unit.shard))
        before = None if held.stored is None else held.stored.deadline
        if evidence.deadline == before:
            return
        ref = evidence_ref(evidence.namespace, evidence.name, evidence.correlation)
        if before is not None:
            self._unit.forget_row(keys.timer(self._unit.shard, before, keys.EVIDENCE_TIMER, ref))
        if evidence.deadline is not None:
            row = TimerRow(at=evidence.deadline, kind=keys.EVIDENCE_TIMER, ref=ref, detail=evidence.correlation)
            self._unit.set_row(row, row.key(self._unit.shard))
