"""Schedules that wait for each other's runs, in a circle: taken, as one may be meant, and warned of, as it hardly ever is.

Pure: whoever has definitions at hand passes them in. Those of a circle may live in several shards and come one by one, so no
owner knows of it when it decides; the API and the simulator, which can read all of them, tell.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.triggers import RunStatusTrigger
from tidegate_core.language.triggers.trigger import EventTrigger
from tidegate_core.language.values.problems import Problem

SHOWN_MAX = 10
"""Members of a circle that a warning names."""


def upstreams_of(spec: ScheduleSpec) -> list[str]:
    """Returns the schedules whose runs its trigger waits for, as `<ns>/<name>`, each once."""
    if not isinstance(spec.trigger, EventTrigger):
        return []
    leaves = [leaf for leaf in spec.trigger.leaves() if isinstance(leaf, RunStatusTrigger)]
    return list(dict.fromkeys(leaf.upstream_ref(spec.namespace) for leaf in leaves))


def circle_warning(spec: ScheduleSpec, others: Mapping[str, ScheduleSpec]) -> Problem | None:
    """Returns that a schedule waits for its own runs by way of others, None where that cannot be seen.

    Args:
        spec: As it is to be applied.
        others: Definitions that are known, by `<ns>/<name>`; what it waits for and is not among them ends the search.
    """
    own = f"{spec.namespace}/{spec.name}"
    came_by: dict[str, str] = {}
    frontier = [(own, upstream) for upstream in upstreams_of(spec)]
    for waiting, upstream in frontier:  # Grows meanwhile: the shortest circle is found first.
        if upstream == own:
            return _told(_way_back(came_by, waiting, own))
        if upstream not in came_by and upstream in others:
            came_by[upstream] = waiting
            frontier += [(upstream, further) for further in upstreams_of(others[upstream])]
    return None


def _way_back(came_by: Mapping[str, str], last: str, own: str) -> list[str]:
    """Returns the circle from the schedule to the one that waits for it."""
    way = [last]
    while way[-1] != own:
        way.append(came_by[way[-1]])
    return way[::-1]


def _told(circle: list[str]) -> Problem:
    named = [*circle[:SHOWN_MAX], *(["..."] if len(circle) > SHOWN_MAX else []), circle[0]]
    return Problem(
        "trigger",
        f"waits for its own runs, in a circle: {' waits for '.join(named)}",
        "once one of them runs they start each other for ever, and where each waits for all it names none begins by itself; "
        "tidegate simulate shows it",
    )
