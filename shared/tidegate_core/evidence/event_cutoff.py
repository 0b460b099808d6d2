"""What came before a schedule's activation does not count, nor what came before its namespace was let go on (SEMANTICS 5, 6, 10)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from tidegate_core.language.events.trigger_facts import Fact, RunFact
from tidegate_core.rows import keys
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.shard.events.evidence_log import Entry
from tidegate_core.shard.events.outbox import ACTIVATION_SLACK_MS
from tidegate_core.writes.unit_of_work import UnitOfWork

VECTORS_KEPT = 100
"""Parsed end-offset vectors per process: one per scope that was resumed lately."""

Heard: TypeAlias = Callable[[Fact, Entry], bool]


def cutoff_of(unit: UnitOfWork, state: ScheduleState) -> Heard:
    """Returns whether a matched fact counts for an active schedule.

    Events by their offsets: those below the log's end at the activation are in no match, those below its end at the namespace's
    last resume do not count. Runs by their admission: which of them come after the activation only the state tells, since a
    match may be by a row of a former owner, with another instant.
    """
    namespace = state.namespace
    last = unit.controls.resumes(namespace)
    items = unit.items([keys.offsets_vector(vector) for vector, _ in last])
    resumes = [
        _Resume(at, _offsets(str(item["offsets"])))
        for (_, at), item in zip(last, items, strict=True)
        if item is not None  # One that has expired is old.
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
    """What tells the events before a resume from those after it.

    Attributes:
        at: Append time of its request.
        offsets: The log's ends after that, as the brokers told them.
    """

    at: int
    offsets: Mapping[str, int]

    def precedes(self, matched: Entry) -> bool:
        """Whether the event came after it.

        The ends do not name each topic partition: events of a topic that was deleted before they were read may wait in an
        inbox still, and a topic may be made anew, or grow, after it. Append times tell these apart, as they bound the
        suspended spans.
        """
        topic_partition, _, offset = str(matched["origin"]).rpartition("/")
        end = self.offsets.get(topic_partition)
        return int(matched["at"]) >= self.at if end is None else int(offset) >= end


@lru_cache(maxsize=VECTORS_KEPT)
def _offsets(text: str) -> Mapping[str, int]:
    offsets: dict[str, int] = json.loads(text)
    return offsets
