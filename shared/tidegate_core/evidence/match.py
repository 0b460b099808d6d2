"""Counts events in the inbox as evidence; enough evidence makes a job (I3).

The transaction that moves the evidence deletes the counted inbox rows. So a replayed row is gone, and an existing row
was never counted. `cutoff_of` excludes events before the schedule's activation and before its scope's last resume.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TypeAlias

from tidegate_core.evidence.accumulator import EvidenceAccumulator, Groups
from tidegate_core.evidence.tick_instances import gathering_of
from tidegate_core.language.events.trigger_facts import Fact, RunFact, fact_from_json
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.rows import keys
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Key
from tidegate_core.shard.events.deferred_inbox import NOTHING
from tidegate_core.shard.events.evidence_log import Entry, as_json, entry_of
from tidegate_core.shard.events.outbox import ACTIVATION_SLACK_MS
from tidegate_core.shard.events.subscriptions import RUNS
from tidegate_core.shard.schedule_state import fires, spec_of
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.writes.unit_of_work import UnitOfWork

GROUPS_PER_DECISION = 12
"""Groups that one decision counts for, each with seven actions at most (`inbox_batches.py`): 50 leaves with own groups
may accept one run.
"""


@dataclass(frozen=True, slots=True)
class MatchEvents:
    """Counts inbox rows of one schedule, oldest first.

    Attributes:
        before: Append time from which entries stay in their rows for later decisions. None: count all.
        memory: Cache with deferred rows and low watermarks; without it nothing waits.
    """

    ref: str
    rows: tuple[Key, ...]
    before: int | None = None
    memory: ShardCache | None = None
    stale: tuple[Key, ...] = ()
    name: str = "count"

    @property
    def about(self) -> str:
        return self.rows[0].sk if len(self.rows) == 1 else self.ref

    def decide(self, unit: UnitOfWork, now: int) -> None:
        namespace, schedule = self.ref.split("/", 1)
        state = unit.record(ScheduleState, keys.schedule_state(unit.shard, namespace, schedule))
        rows = [from_item(InboxRow, item) for item in unit.items(self.rows) if item is not None]
        done = _Done()
        if state is not None and fires(state):
            if unit.controls.covers(namespace):
                rows = [row for row in rows if not self._leave(unit, row)]
            else:
                done = self._count(unit, state, rows, now)
        for row in rows:
            _drop_counted(unit, row, self.before if done.cut is None else done.cut, done.beside)
        if done.goes_on:
            unit.go_on()

    def _leave(self, unit: UnitOfWork, row: InboxRow) -> bool:
        """Leaves a row of a suspended namespace in place when an unknown resume may let some of it count."""
        last = max(append_times(row), default=0)
        if self.memory is None or not self.memory.left_rows.may_count(unit.controls.version, last):
            return False
        unit.after(partial(self.memory.leave_in_inbox, row.key(unit.shard), last))
        return True

    def _count(self, unit: UnitOfWork, state: ScheduleState, rows: Sequence[InboxRow], now: int) -> _Done:
        """Counts the entries before the first tick that did not fit, and before the entries that wait."""
        spec = spec_of(unit, state.namespace, state.name, state.version)
        if spec is None or not isinstance(spec.trigger, EventTrigger):
            return _Done()
        settled = NOTHING if self.memory is None else self.memory.settled.through(self.ref)
        gathering = gathering_of(unit, state, spec, now, settled.unread)
        sorting = _Sorting(spec.trigger, state, cutoff_of(unit, state), rows, self.before)
        waits_from = None
        if self._waits(gathering, sorting, settled.instant):
            waits_from = settled.instant + 1
            sorting = _Sorting(spec.trigger, state, cutoff_of(unit, state), rows, waits_from)
        cut = gathering.fold_all(sorting.groups, sorting.last_at)
        gathering.close()
        return _Done(waits_from if cut is None else cut, frozenset(sorting.left), cut is not None or bool(sorting.left))

    def _waits(self, gathering: EvidenceAccumulator, sorting: _Sorting, through: int) -> bool:
        """Returns whether entries must wait: an unread event may be in time for a deadline or tick before them."""
        if self.memory is None or sorting.last_at <= through:
            return False
        settled = self.memory.settled
        if not settled.waits(self.ref) and not gathering.passes_uncounted_deadline(
            sorting.groups, sorting.last_at, through
        ):
            return False
        # At once, so that later decisions of the same transaction wait as well.
        settled.wait(self.ref, sorting.last_at)
        return True


@dataclass(frozen=True, slots=True)
class _Done:
    """The result of counting some rows.

    Attributes:
        cut: Append time from which entries stay in the rows; None: none do.
        beside: Leaves and origins of further entries that stay.
        goes_on: True when the decision runs again at once. Otherwise the end of the wait counts them.
    """

    cut: int | None = None
    beside: frozenset[tuple[int, str]] = frozenset()
    goes_on: bool = False


def append_times(row: InboxRow) -> list[int]:
    """Returns the append times of a row's events, ascending."""
    try:
        return sorted(int(matched["at"]) for matched in json.loads(row.body))
    except (ValueError, TypeError, KeyError):
        return []  # Only the decision that counts this row fails.


def _matches(row: InboxRow) -> list[Entry]:
    """Returns a row's matches, each with its fact: leaves that accept the same fact store it once."""
    fact = None
    matches: list[Entry] = json.loads(row.body)
    for matched in matches:
        fact = matched.setdefault("fact", fact)
    return matches


def _place_of(matched: Entry) -> tuple[int, str]:
    return int(matched["leaf"]), str(matched["origin"])


def _drop_counted(unit: UnitOfWork, row: InboxRow, cut: int | None, beside: Collection[tuple[int, str]]) -> None:
    """Deletes the row, or keeps the entries to count later: from `cut` on, and those in `beside`."""
    key = row.key(unit.shard)
    matches = [] if cut is None and not beside else _matches(row)
    left = [each for each in matches if _place_of(each) in beside or (cut is not None and int(each["at"]) >= cut)]
    if not left:
        unit.delete(key)
    elif len(left) < len(matches):
        fact = None
        body = []
        for matched in left:
            body.append({name: each for name, each in matched.items() if name != "fact" or each is not fact})
            fact = matched["fact"]
        unit.put(replace(row, body=as_json(body)), key)


class _Sorting:
    """Matched events as entries by group, so that each evidence item is written once."""

    def __init__(
        self, trigger: EventTrigger, state: ScheduleState, heard: Heard, rows: Sequence[InboxRow], before: int | None
    ) -> None:
        self._trigger = trigger
        self._leaves = trigger.leaves()
        self._namespace = state.namespace
        self._heard = heard
        self._gone = frozenset(f"{RUNS}{ref}" for ref in state.gone)
        self.groups: Groups = {}
        self.left: set[tuple[int, str]] = set()
        self.last_at = 0
        for matched in (each for row in rows for each in _matches(row) if before is None or int(each["at"]) < before):
            # A match of an older generation was made before the update and does not count for the new one.
            if (matched["incarnation"], matched["generation"]) == (state.incarnation, state.generation):
                self._add(matched)

    def _add(self, matched: Entry) -> None:
        number = matched["leaf"]
        if number >= len(self._leaves):
            return  # From a subscription of a failed request.
        fact = fact_from_json(matched["fact"])
        leaf = self._leaves[number]
        if leaf.event_key(self._namespace) in self._gone:
            return  # The schedule was deleted and recreated: the trigger works without it.
        key = leaf.accepts(fact, self._namespace) if self._heard(fact, matched) else None
        if key is None:
            return
        group = self._trigger.group_of(number, fact, int(matched["at"]))
        paired_by = self._trigger.paired_by(number, fact)
        if group not in self.groups and len(self.groups) >= GROUPS_PER_DECISION:
            self.left.add(_place_of(matched))
            return
        self.last_at = max(self.last_at, int(matched["at"]))
        self.groups.setdefault(group, (paired_by, []))[1].append(entry_of(fact, matched, leaf, key))


VECTORS_KEPT = 100
"""Parsed end-offset vectors per process: one for each recently resumed scope."""

Heard: TypeAlias = Callable[[Fact, Entry], bool]


def cutoff_of(unit: UnitOfWork, state: ScheduleState) -> Heard:
    """Returns a function that tells whether a matched fact counts for an active schedule.

    Events count by offset. Events below the activation's end offset have no match, and events below the end offset at
    the namespace's last resume do not count. Runs count by admission time. The state decides which follow the
    activation, because a match may come from a former owner's row with another time.
    """
    namespace = state.namespace
    last = unit.controls.resumes(namespace)
    items = unit.items([keys.offsets_vector(vector) for vector, _ in last])
    resumes = [
        _Resume(at, _offsets(str(item["offsets"])))
        for (_, at), item in zip(last, items, strict=True)
        if item is not None  # An expired vector is old.
    ]
    resumed_at = unit.controls.resumed_at(namespace) if last else 0
    admitted_from = max(state.activated_at, resumed_at) - ACTIVATION_SLACK_MS

    def heard(fact: Fact, matched: Entry) -> bool:
        if isinstance(fact, RunFact):
            return fact.admitted_at >= admitted_from
        return all(resume.precedes(matched) for resume in resumes)

    return heard


@dataclass(frozen=True, slots=True)
class _Resume:
    """The boundary between events before and after a resume.

    Attributes:
        at: Append time of the request.
        offsets: End offsets that the brokers reported after it.
    """

    at: int
    offsets: Mapping[str, int]

    def precedes(self, matched: Entry) -> bool:
        """Returns whether the event came after the resume.

        The end offsets may lack a topic partition: an inbox may hold events of a topic that was deleted unread, or a
        topic may be recreated or grow later. Then append times decide, as they bound the suspended spans.
        """
        topic_partition, _, offset = str(matched["origin"]).rpartition("/")
        end = self.offsets.get(topic_partition)
        return int(matched["at"]) >= self.at if end is None else int(offset) >= end


@lru_cache(maxsize=VECTORS_KEPT)
def _offsets(text: str) -> Mapping[str, int]:
    offsets: dict[str, int] = json.loads(text)
    return offsets
