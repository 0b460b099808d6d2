"""What an apply is warned of: what the definition itself says, and circles that it closes with others that are stored."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate_api.reads.schedules import ScheduleReads
from tidegate_api.thread_pools import Pools
from tidegate_core.language.definitions.dependency_cycles import circle_warning, upstreams_of
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.definitions.schedule_validation import schedule_warnings
from tidegate_core.language.values.instants import Instant

UPSTREAMS_READ_MAX = 50
"""Definitions of others that are read for one apply: as many as one trigger has leaves. A circle behind more is not seen."""


async def warnings_of(
    schedules: ScheduleReads,
    pools: Pools,
    spec: ScheduleSpec,
    now: Instant,
    beside: Mapping[str, ScheduleSpec] | None = None,
) -> list[str]:
    """Returns what is allowed and hardly ever meant, each with its field and a way out.

    Args:
        schedules: Where the definitions of others are read.
        pools: Whose threads of reads look: instants are searched for.
        spec: What is applied.
        now: The present.
        beside: What is applied in the same request, by `<ns>/<name>`.
    """
    others = await _upstreams(schedules, spec, beside or {})
    found = await pools.read(lambda: [*schedule_warnings(spec, now), circle_warning(spec, others)])
    return [str(warning) for warning in found if warning is not None]


async def _upstreams(
    schedules: ScheduleReads, spec: ScheduleSpec, beside: Mapping[str, ScheduleSpec]
) -> dict[str, ScheduleSpec]:
    """Returns what it waits for, what that waits for and so on, one read for each step, within the bound."""
    own = f"{spec.namespace}/{spec.name}"
    found: dict[str, ScheduleSpec] = {}
    asked = {own}
    wanted = upstreams_of(spec)
    while wanted := [ref for ref in dict.fromkeys(wanted) if ref not in asked][: UPSTREAMS_READ_MAX + 1 - len(asked)]:
        asked.update(wanted)
        found |= {ref: beside[ref] for ref in wanted if ref in beside}
        found |= await schedules.specs([ref for ref in wanted if ref not in beside])
        wanted = [further for ref in wanted if ref in found for further in upstreams_of(found[ref])]
    return found
