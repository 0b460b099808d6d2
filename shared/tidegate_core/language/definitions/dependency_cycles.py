"""Finds schedules that wait for each other's runs in a cycle. A cycle is accepted with a warning, because a user may intend it.

The schedules of a cycle can be in several shards and be applied one by one, so no owner knows of the cycle when it decides. The
API and the simulator can read all definitions; they call this.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.triggers import RunStatusTrigger
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.problems import Problem

SHOWN_MAX = 10
"""Members of a cycle that a warning names."""


def upstreams_of(spec: ScheduleSpec) -> list[str]:
    """Returns the upstream schedules of a schedule's trigger, as `<ns>/<name>`, each once."""
    if not isinstance(spec.trigger, EventTrigger):
        return []
    leaves = [leaf for leaf in spec.trigger.leaves() if isinstance(leaf, RunStatusTrigger)]
    return list(dict.fromkeys(leaf.upstream_ref(spec.namespace) for leaf in leaves))


def circle_warning(spec: ScheduleSpec, others: Mapping[str, ScheduleSpec]) -> Problem | None:
    """Returns a warning if a schedule waits for its own runs through other schedules; None if no cycle is visible.

    Args:
        spec: Definition that will be applied.
        others: Known definitions, by `<ns>/<name>`. The search ends at an upstream schedule that is not among them.
    """
    own = f"{spec.namespace}/{spec.name}"
    came_by: dict[str, str] = {}
    frontier = [(own, upstream) for upstream in upstreams_of(spec)]
    for (
        waiting,
        upstream,
    ) in frontier:  # The loop extends the list: a breadth-first search finds the shortest cycle first.
        if upstream == own:
            return _told(_way_back(came_by, waiting, own))
        if upstream not in came_by and upstream in others:
            came_by[upstream] = waiting
            frontier += [(upstream, further) for further in upstreams_of(others[upstream])]
    return None


def _way_back(came_by: Mapping[str, str], last: str, own: str) -> list[str]:
    """Returns the cycle, from the schedule to the last schedule that waits for it."""
    way = [last]
    while way[-1] != own:
        way.append(came_by[way[-1]])
    return way[::-1]


def _told(circle: list[str]) -> Problem:
    named = [*circle[:SHOWN_MAX], *(["..."] if len(circle) > SHOWN_MAX else []), circle[0]]
    return Problem(
        "trigger",
        f"waits for its own runs, in a cycle: {' waits for '.join(named)}",
        "once one of them runs, they start each other for ever; if each needs all its upstream schedules, none ever starts; "
        "check with tidegate simulate",
    )
