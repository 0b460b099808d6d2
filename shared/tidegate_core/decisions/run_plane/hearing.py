"""What came before a namespace was let go on is not counted after it: the wide form of an activation (SEMANTICS 5, 10)."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
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
    wanted = unit.controls.vectors(namespace)
    if not wanted:
        return lambda fact, matched: True
    items = unit.items([keys.offsets_vector(vector) for vector in wanted])
    vectors = [_offsets(str(item["offsets"])) for item in items if item is not None]  # One that has expired is old.
    admitted_from = unit.controls.resumed_at(namespace) - ACTIVATION_SLACK_MS

    def heard(fact: Fact, matched: Entry) -> bool:
        if isinstance(fact, RunFact):
            return fact.admitted_at >= admitted_from
        topic_partition, _, offset = str(matched["origin"]).rpartition("/")
        return all(int(offset) >= vector.get(topic_partition, 0) for vector in vectors)

    return heard


@lru_cache(maxsize=VECTORS_KEPT)
def _offsets(text: str) -> Mapping[str, int]:
    offsets: dict[str, int] = json.loads(text)
    return offsets
