"""Warnings of an apply: about the definition, and about circles of schedules that wait for each other."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate_api.reads.schedules import ScheduleReads
from tidegate_api.thread_pools import Pools
from tidegate_core.language.definitions.dependency_cycles import circle_warning, upstreams_of
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.definitions.schedule_validation import schedule_warnings
from tidegate_core.language.values.instants import Instant

UPSTREAMS_READ_MAX = 50
"""Upstream definitions that are read for one apply: as many as a trigger may have leaves. A longer circle is not found."""


async def warnings_of(
    schedules: ScheduleReads,
    pools: Pools,
    spec: ScheduleSpec,
    now: Instant,
    together: Mapping[str, ScheduleSpec] | None = None,
) -> list[str]:
    """Returns warnings about valid but probably unintended definitions, each with its field and a remedy.

    Args:
        schedules: Reader of the stored upstream definitions.
        pools: Thread pools; the search for instants runs on the read threads.
        spec: Definition that is applied.
        now: Present time.
        together: Definitions of the same request, by `<ns>/<name>`.
    """
    others = await _upstreams(schedules, spec, together or {})
    found = await pools.read(lambda: [*schedule_warnings(spec, now), circle_warning(spec, others)])
    return [str(warning) for warning in found if warning is not None]


async def _upstreams(
    schedules: ScheduleReads, spec: ScheduleSpec, together: Mapping[str, ScheduleSpec]
) -> dict[str, ScheduleSpec]:
    """Returns the upstream schedules, their upstream schedules and so on, with one read for each step, up to the bound."""
    own = f"{spec.namespace}/{spec.name}"
    found: dict[str, ScheduleSpec] = {}
    asked = {own}
    wanted = upstreams_of(spec)
    while wanted := [ref for ref in dict.fromkeys(wanted) if ref not in asked][: UPSTREAMS_READ_MAX + 1 - len(asked)]:
        asked.update(wanted)
        found |= {ref: together[ref] for ref in wanted if ref in together}
        found |= await schedules.specs([ref for ref in wanted if ref not in together])
        wanted = [further for ref in wanted if ref in found for further in upstreams_of(found[ref])]
    return found
