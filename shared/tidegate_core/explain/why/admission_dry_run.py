"""The look at a schedule's waiting jobs, taken once more by the very decision that takes it, and written nowhere.

So an explanation cannot say anything else than what decides. What loads are is known to the node that samples them alone: of
these the verdict of its own last look counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tidegate_core.admission.admit import AdmitNext
from tidegate_core.explain.why.reason import Reason
from tidegate_core.explain.why.schedule_snapshot import Facts
from tidegate_core.language.definitions.priority import Priority
from tidegate_core.language.values.instants import format_instant
from tidegate_core.language.values.states import Disposition, disposition_text
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.scope_suspension import NO_SUSPENSIONS
from tidegate_core.rows.store_operations import Item, Key
from tidegate_core.shard.job_order import by_class, queue_position
from tidegate_core.shard.schedule_state import parsed, stopped, version_of
from tidegate_core.shard.shard_cache import PENDING_CONSTRAINT, ShardCache
from tidegate_core.writes.read_cache import View
from tidegate_core.writes.unit_of_work import NotAtHand, UnitOfWork

Views: TypeAlias = Callable[[], View]
"""Returns a new view of all that was read: a look leaves marks in its own, of what it would have written."""
LOAD_CODES = frozenset({"load_high", "load_unknown"})
LOOKED_AT_MAX = 1_000
"""A look comes to a few jobs, and passes over those that make up for the past; nobody waits behind a thousand of these for long."""
DECIDED_AGAIN_MAX = 100
"""A look asks once for each limit that it comes upon: far more than the jobs of one look have."""
ANY_NUMBER = 1 << 30
"""Of actions: what the owner tells of in several looks is told at once."""
_NO_EPOCH = 0
"""Nothing of what is decided here is ever sent."""


@dataclass(frozen=True, slots=True)
class Look:
    """What a look makes of one job.

    Attributes:
        holds: What holds it back; empty when nothing does.
        ends_as: `<disposition>/<reason>`, when it would end.
        was_reached: False: jobs before it are all that was looked at, or one of them would go first, and what holds this one back then
            is not so yet.
        goes: The look would admit it.
    """

    holds: tuple[Reason, ...] = ()
    ends_as: str | None = None
    was_reached: bool = True
    goes: bool = False


NOT_REACHED = Look(was_reached=False)


@dataclass(frozen=True, slots=True)
class Line:
    """The schedule's waiting jobs.

    Attributes:
        jobs: In the order in which they are looked at.
        looks: By job, what a look at all of them makes of those that it comes to.
    """

    jobs: Sequence[Job]
    looks: Mapping[str, Look]

    def look_of(self, job: Job) -> Look:
        return self.looks.get(job.id, NOT_REACHED)


def line_of(views: Views, facts: Facts) -> Line:
    """Looks at the jobs as the shard's owner would, in their order.

    Raises:
        NotAtHand: Something was not read yet: read it, and look again.
    """
    waiting = in_line(facts)
    return Line(waiting, _look(views, facts, waiting[:LOOKED_AT_MAX]))


def in_line(facts: Facts) -> list[Job]:
    """Returns the schedule's jobs that wait for their constraints, in the order in which they are decided on.

    Args:
        facts: Of the schedule. A definition has to be among them where jobs of several versions are.
    """
    definitions = {each.version: each for each in facts.definitions}

    def priority_of(version: int) -> Priority:
        definition = definitions.get(version_of(facts.state, version))
        return "medium" if definition is None else parsed(definition.spec).priority

    placed = sorted((job for job in facts.jobs if job.state == PENDING_CONSTRAINT), key=queue_position)
    return by_class(placed, priority_of)


def dry_run(views: Views, facts: Facts, job: Job) -> Look:
    """Looks at one job as if it were alone, as if nothing of the schedule as a whole stood still. Raises NotAtHand."""
    return _look(views, facts, [job])[job.id]


def _look(views: Views, facts: Facts, jobs: Sequence[Job]) -> dict[str, Look]:
    # Without what was told before: a verdict that is told already is not told again, and its values may be old.
    fresh = [replace(job, unmet=None) for job in jobs]
    memory = _memory(facts, fresh)
    unit = _decided(views, facts, fresh, memory)
    unit.keep()
    ended = _ended(unit)
    before = {job.id: job for job in jobs}
    looks: dict[str, Look] = {}
    one_goes = False
    for job in fresh:
        now = unit.record(Job, job.key(facts.shard))
        if now is None:
            looks[job.id] = Look(ends_as=ended.get(job.id))
        elif now.state != PENDING_CONSTRAINT:
            looks[job.id] = Look(goes=True)
            one_goes = True
        elif now.unmet is None or one_goes:
            # A run that the look would make is none: a verdict that counts it says what is not.
            looks[job.id] = NOT_REACHED
        else:
            looks[job.id] = Look(tuple(_with_loads(holds_of(now.unmet), before[job.id])))
    return looks


def _decided(views: Views, facts: Facts, jobs: Sequence[Job], memory: ShardCache) -> UnitOfWork:
    """Returns what the decision would write."""
    for _ in range(DECIDED_AGAIN_MAX):
        view = views()
        view.learn(*_rows(facts, jobs))
        unit = UnitOfWork(view, facts.shard, _NO_EPOCH, NO_SUSPENSIONS)
        try:
            AdmitNext(facts.ref, memory, _nobody, waiting_actions=ANY_NUMBER).decide(unit, facts.now)
        except NotAtHand as need:
            known = views()
            if need.ranges or need.elsewhere or not all(known.knows(key) for key in need.keys):
                raise
            # It wants to be sure that a limit was read for this very look, as all here was; by now the memory knows.
            continue
        return unit
    raise AssertionError("a look asks for what it has")


def _nobody(goes_on: bool) -> None:
    """Nobody waits for what is never written."""


def _memory(facts: Facts, jobs: Iterable[Job]) -> ShardCache:
    memory = ShardCache(facts.shard, facts.shards)
    memory.outages_are(facts.outages)
    records: list[Job | Run] = [*jobs, *facts.runs]
    for record in records:
        key = record.key(facts.shard)
        memory.apply_row(key, to_item(record, key))
    return memory


def _rows(facts: Facts, jobs: Iterable[Job]) -> tuple[list[Key], dict[Key, Item]]:
    """Returns what the view is to know beside what it reads: the jobs, the runs, and a schedule that stands still for nobody."""
    state = facts.state
    moving = replace(
        state,
        status="active",
        shedding=None,
        # Its clocks stand still while it is suspended: no time-out passes meanwhile.
        stopped_ms=stopped(state, facts.now),
    )
    records: list[Job | Run | ScheduleState] = [*jobs, *facts.runs, moving]
    found = {each.key(facts.shard): {**to_item(each, each.key(facts.shard)), "rev": 1} for each in records}
    return list(found), found


def _ended(unit: UnitOfWork) -> dict[str, str]:
    rows = [
        from_item(LedgerRow, item)
        for key, item in unit.writes.items()
        if item and key.sk.startswith(keys.LEDGER_PREFIX)
    ]
    return {row.job_id: disposition_text(Disposition(row.disposition), row.reason) for row in rows}


def holds_of(unmet: str) -> list[Reason]:
    """Returns the verdicts of a job's last look, as they are stored with it."""
    told = json.loads(unmet)
    return [
        # An older version wrote down one text for all of them.
        Reason(each["code"], each.get("reason", told["reason"]), each["until"], each["values"])
        for each in told.get("verdicts", ())
    ]


def _with_loads(holds: list[Reason], job: Job) -> list[Reason]:
    """Returns the same with what the node said of loads when it looked."""
    if job.unmet is None or not any(each.code in LOAD_CODES for each in holds):
        return holds
    seen = [each for each in holds_of(job.unmet) if each.code in LOAD_CODES]
    at = json.loads(job.unmet).get("at")
    if at is not None:
        decided = f"as its node decided at {format_instant(at)}"
        seen = [
            replace(each, text=f"{each.text} ({decided})", values={**each.values, "decided_at": format_instant(at)})
            for each in seen
        ]
    return [*(each for each in holds if each.code not in LOAD_CODES), *seen]
