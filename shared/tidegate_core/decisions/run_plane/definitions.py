"""From a stored definition to the spec that decides, parsed once per version."""

from __future__ import annotations

from functools import lru_cache

from tidegate_core.model.schedule import ScheduleSpec
from tidegate_core.records.run_plane import Definition
from tidegate_core.store import keys
from tidegate_core.transactions.unit_of_work import UnitOfWork

SPECS_KEPT = 10_000
"""Parsed specs per process (about 5 KB each)."""


@lru_cache(maxsize=SPECS_KEPT)
def parsed(text: str) -> ScheduleSpec:
    """Returns the spec of a stored definition's canonical JSON."""
    return ScheduleSpec.from_canonical(text)


def spec_of(unit: UnitOfWork, namespace: str, name: str, version: int) -> ScheduleSpec | None:
    """Returns the spec of a schedule version, or None when its definition is gone (a tombstone's)."""
    definition = unit.record(Definition, keys.definition(unit.shard, namespace, name, version))
    return None if definition is None else parsed(definition.spec)
