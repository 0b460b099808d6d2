"""I1 for `at_least_every`: a job at the latest so long after the last one, and none before that without what it counts.

A reminder that finds nothing makes an empty job, or an entry that says so; either way something of the schedule is in the ledger.
It waits for what was appended before it and is not read yet, and stands behind what the shard does already: that is the slack. While faults
keep the shard's lane from the fate of what it does already, that time does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from tests.simulation.checks.evidence import NOTHING_NEW, WITHOUT_ENOUGH, is_satisfied
from tests.simulation.checks.fires import at_text
from tests.simulation.checks.request_history import NEVER, SKEW_MS, Segment
from tests.simulation.users.schedule_definitions import NAMESPACE
from tests.simulation.world.fault_schedule import HEAL_AFTER_MS
from tests.simulation.world.timeline import START
from tidegate_core.ingest.topic_follower import ASK_AGAIN_MS
from tidegate_core.ingest.topic_watch import CHECK_MS
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.language.values.durations import parse_duration
from tidegate_core.language.values.instants import parse_instant

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.users.schedule_users import Life
    from tidegate_core.rows.ledger import LedgerRow

SETTLE_MS: Final = 6_000
"""In a healed world a reminder is dealt with this long after it has come, where its shard and all that is read are served."""
SETTLE_AMID_FAULTS_MS: Final = 15_000
LOOK_AT_MOST_MS: Final = CHECK_MS + CHECK_MS // 10
NOTICED_MS: Final = ASK_AGAIN_MS + LOOK_AT_MOST_MS
"""So long after brokers tell of it a holder knows at the latest that the events topic has changed, or that of a source."""
WAITS_FOR: Final = frozenset({"fire", "at_least_every", "count", "cursor", "mixed"})
"""Transactions without which a reminder is not dealt with."""


@dataclass(frozen=True, slots=True)
class Mark:
    """An entry that a schedule made of its evidence, or of nothing, or because somebody asked for a run.

    Attributes:
        made: When, by its owner's clock.
        sealed: When what comes next belonged to another job; one that waits takes in what comes.
        by_reminder: Whether only a reminder makes such a thing: it counted too little, or nothing.
        is_job: Whether the next reminder counts from it.
    """

    row: LedgerRow
    made: int
    sealed: int
    by_reminder: bool
    is_job: bool


def check_reminders(case: Case) -> Iterator[str]:
    for life in case.lives:
        if "at_least_every" not in life.definition.trigger:
            continue
        marks = sorted(_marks(case, life), key=lambda each: (each.made, case.made_as.get(each.row.job_id, 0)))
        earlier: set[str] = set()
        for segment in case.segments(life):
            mine = [each for each in marks if _may_be_in(segment, each.made) and _is_of(segment, each.row.version)]
            # A resume right behind its suspend: what may be of the span before has been judged by that one (seed 34004086).
            yield from _check_early(case, life, segment, [each for each in mine if each.row.job_id not in earlier])
            earlier |= {each.row.job_id for each in mine}
            if case.world.at_rest:
                before = [each.sealed for each in marks if _waits_on(life, segment, each)]
                yield from _check_late(case, life, segment, mine, max(before, default=segment.begin.done))


def _may_be_in(segment: Segment, made: int) -> bool:
    """Whether a mark may be of a span, whose end is told by true time: its owner's clock may be ahead of that (seed 39007764)."""
    return made >= segment.begin.heard and segment.maybe(max(made - SKEW_MS, segment.begin.heard))


def _is_of(segment: Segment, version: int) -> bool:
    """Whether a version was in force in the span; an update ends one and begins the next at some time between its two ends."""
    if segment.end is None or segment.end.kind == "suspend":
        return segment.begin.version <= version
    return segment.begin.version <= version < segment.end.version


def _waits_on(life: Life, segment: Segment, mark: Mark) -> bool:
    """Whether what was made before the span may wait on in it, so that what comes is still that job's: a freeze keeps one, and so does an
    update with `finish_old`, which lets its version's empty job wait so that no reminder makes another one (seed 36005156). That one may
    have been made when the update was on its way (seed 40021415).
    """
    if mark.row.version < segment.begin.version:
        return bool(life.definition.trigger.get("allow_empty")) and mark.is_job and mark.row.trigger == "events"
    return mark.made < segment.begin.heard and not segment.maybe(mark.made) and _is_of(segment, mark.row.version)


def _marks(case: Case, life: Life) -> Iterator[Mark]:
    counted = case.entries_of.get(life.name, {})
    for row in case.rows_of.get(life.name, []):
        if row.trigger == "events" and row.reason not in WITHOUT_ENOUGH:
            entries = counted.get(row.job_id, [])
            by_reminder = not is_satisfied(life.definition.trigger, entries)
            is_job = (row.disposition, row.reason) != NOTHING_NEW
            sealed = row.nominal if row.admitted_at is None and not is_job else row.admitted_at or row.at
            yield Mark(row, row.nominal, sealed, by_reminder, is_job)
    answered = {str(each.receipt.body.get("id")): each.receipt for each in life.steps if each.receipt is not None}
    for row in case.rows_of.get(life.name, []):
        if row.trigger == "manual":
            # Its nominal is the broker's time; where nobody saw the answer it is not known how much later it was made.
            receipt = answered.get(row.job_id)
            made = row.nominal - SKEW_MS if receipt is None else parse_instant(str(receipt.body["at"]))
            latest = row.admitted_at or row.at if receipt is None else made
            yield Mark(row, made, latest, by_reminder=False, is_job=True)


def _check_early(case: Case, life: Life, segment: Segment, marks: list[Mark]) -> Iterator[str]:
    """A reminder comes not before its time, and takes all that was appended before that."""
    every = parse_duration(life.definition.trigger["at_least_every"])
    since, number = min(segment.begin.sent - SKEW_MS, segment.begin.heard), 0
    for mark in marks:
        number += 1
        comes = since + number * every
        if mark.by_reminder and mark.made < comes:
            early = comes - mark.made
            yield f"I1: {life.name} was reminded at {at_text(mark.made)}, {early} ms before its time: {mark.row}"
        if mark.by_reminder and mark.row.job_id not in case.entries_of.get(life.name, {}):
            yield from _check_nothing_had_come(case, life, segment, mark, comes - SKEW_MS)
        if mark.is_job:
            since, number = mark.made, 0


def _check_nothing_had_come(case: Case, life: Life, segment: Segment, mark: Mark, comes: int) -> Iterator[str]:
    """What became another job, later, or is still there, was not there when the reminder came."""
    for evidence, entries in case.entries_of.get(life.name, {}).items():
        rows = case.rows_by_id.get(evidence, [])
        gone = case.record.evidence[evidence].gone
        if any(row.nominal <= mark.made for row in rows) or (not rows and gone is not None):
            continue  # It was the job before, or a request has discarded it.
        for entry in entries:
            announced = case.world.producers.announced.get(str(entry.get("event_id")))
            if announced is None or announced.by_source or announced.untold_until > comes:
                continue  # A reminder waits for what the brokers tell of.
            if case.went_with_its_topic(announced, mark.made):
                continue
            if entry["at"] < comes and segment.surely(entry["at"]) and not case.wide.maybe(NAMESPACE, entry["at"]):
                name, came = announced.id, at_text(entry["at"])
                yield f"I3: {life.name} was reminded at {at_text(mark.made)} of nothing, and {name} had come at {came}"
                return


def _check_late(case: Case, life: Life, segment: Segment, marks: list[Mark], waited: int) -> Iterator[str]:
    """Args:
    waited: Until when what was made before the span took in what came.
    """
    every = parse_duration(life.definition.trigger["at_least_every"])
    end = min(NEVER if segment.end is None else segment.end.sent, case.world.ended_at)
    # A run that is asked for while a job waits changes nothing: what comes meanwhile is that job's.
    sealed = list(accumulate((max(segment.begin.done, waited), *(each.sealed for each in marks)), max))
    made = [*(each.made for each in marks), NEVER]
    for since, following in zip(sealed, made, strict=True):
        until = min(following, end, case.wide.next_begin(NAMESPACE, since) or NEVER)
        look = _a_calm_look(case, life, since + every + SKEW_MS, until)
        if look is not None:
            yield (
                f"I1: {life.name} was to be reminded {every} ms after {at_text(since)}; "
                f"nothing came of it from {at_text(look)} until {at_text(until)}"
            )


def _a_calm_look(case: Case, life: Life, comes: int, until: int) -> int | None:
    """Returns a moment from which on nothing was in its owner's way for as long as a reminder takes, or None."""
    healed = START + case.swarm.busy_ms + HEAL_AFTER_MS
    topics = case.swarm.topics
    grown_at = None if topics.grown is None else topics.grown[0]
    changed = [at for at in (grown_at, topics.recreated) if at is not None]
    if changed:
        # Who was there before the events topic changed leaves the new part unread until it asks again, and a reminder waits.
        comes = max(comes, healed, _noticed_by_all(case, START + max(changed) + topics.metadata_lag_ms))
    # What stands behind an open transaction may have come in time, so a reminder waits until somebody can read it.
    opened = [
        (START + begin, min(START + end, healed))
        for topic, (begin, end) in topics.open_transactions
        if topic != "requests"
    ]
    unnoticed = _source_unnoticed(case, healed)
    moments = [each.serving for each in case.record.stints.values() if each.serving is not None]
    moments += [noticed for _, noticed in unnoticed]
    moments += [end for _, end in opened]
    shard = schedule_shard(NAMESPACE, life.name, case.swarm.shards)
    # Requests of before, which a take-over in a slow world deals with for most of a minute, go first.
    looks = (case.emptied(shard, each) for each in [comes, *sorted(each for each in moments if each > comes)])
    for look in (each for each in looks if each is not None):
        is_healed = look >= healed
        settled = case.lane_had(shard, look, (SETTLE_MS if is_healed else SETTLE_AMID_FAULTS_MS) + case.queued_ms)
        if settled >= until or _waits_for_source(case, unnoticed, look, settled):
            continue
        if any(begin <= settled and look < end for begin, end in opened):
            continue
        held = all(case.is_held(number, look, settled) for number in case.topic_partitions(settled))
        if held and (is_healed or not case.is_disturbed(look, settled, WAITS_FOR)):
            return look
    return None


def _noticed_by_all(case: Case, told: int) -> int:
    """Returns when all holders knew of a change of the events topic that brokers told of from an instant on. Who was taking it over then
    may have asked them before, and asks again once it reads: faults may keep it from that for more than a minute (seed 39016627).
    """
    taking_over = [
        min(each.events_from + LOOK_AT_MOST_MS, each.ended or NEVER)
        for each in case.record.stints.values()
        if each.events_from is not None and each.begun < told < each.events_from
    ]
    return max([told + NOTICED_MS, *taking_over])


def _source_unnoticed(case: Case, healed: int) -> list[tuple[int, int]]:
    """Returns from when until when a holder may read on in the source's topic that is gone; none where it was not made anew."""
    at = case.swarm.topics.source_recreated
    if at is None or not case.world.sources:
        return []
    return [(START + at, max(healed, START + at + NOTICED_MS))]


def _waits_for_source(case: Case, unnoticed: list[tuple[int, int]], look: int, settled: int) -> bool:
    """Whether what lies in the new topic of a source that is there may be unread for so long: a reminder waits for that."""
    may_be_unread = any(begin <= settled and look < noticed for begin, noticed in unnoticed)
    return may_be_unread and any(user.may_be_there(look, settled) for user in case.world.sources)
