"""What came before a namespace was let go on is not counted after it: the wide form of an activation (SEMANTICS 5, 10)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from tidegate_core.decisions.run_plane.entries import Entry
from tidegate_core.decisions.run_plane.outbox import ACTIVATION_SLACK_MS
from tidegate_core.model.facts import Fact, RunFact
from tidegate_core.store import keys
from tidegate_core.transactions.unit_of_work import UnitOfWork

VECTORS_KEPT = 100
"""Parsed end-offset vectors per process: one per scope that was resumed lately."""

Heard: TypeAlias = Callable[[Fact, Entry], bool]


def heard_since_resume(unit: UnitOfWork, namespace: str) -> Heard:
    """Returns whether a matched fact counts.

    Events by their offsets, as at an activation: those below the log's end at the resume never do. Runs by their admission.
    """
    last = unit.controls.resumes(namespace)
    if not last:
        return lambda fact, matched: True
    items = unit.items([keys.offsets_vector(vector) for vector, _ in last])
    resumes = [
        _Resume(at, _offsets(str(item["offsets"])))
        for (_, at), item in zip(last, items, strict=True)
        if item is not None  # One that has expired is old.
    ]
    admitted_from = unit.controls.resumed_at(namespace) - ACTIVATION_SLACK_MS

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
