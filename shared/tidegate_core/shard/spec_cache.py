"""From a stored definition to the spec that decides, parsed once per version."""

from __future__ import annotations

from functools import lru_cache

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.rows import keys
from tidegate_core.rows.schedule import Definition
from tidegate_core.writes.unit_of_work import UnitOfWork

SPECS_KEPT = 10_000
"""Parsed specs per process (about 5 KB each)."""


SPEC_CHARACTERS_KEPT_MAX = 20_000
"""Longer ones, with the payload of a message in them, are parsed again each time: requests alone ask for them."""


def parsed(text: str) -> ScheduleSpec:
    """Returns the spec of a stored definition's canonical JSON."""
    return _kept(text) if len(text) <= SPEC_CHARACTERS_KEPT_MAX else ScheduleSpec.from_canonical(text)


@lru_cache(maxsize=SPECS_KEPT)
def _kept(text: str) -> ScheduleSpec:
    return ScheduleSpec.from_canonical(text)


def spec_of(unit: UnitOfWork, namespace: str, name: str, version: int) -> ScheduleSpec | None:
    """Returns the spec of a schedule version, or None when its definition is gone (a tombstone's)."""
    definition = unit.record(Definition, keys.definition(unit.shard, namespace, name, version))
    return None if definition is None else parsed(definition.spec)
