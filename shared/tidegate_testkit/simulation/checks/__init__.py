"""What must hold at rest. Each check is a function from a world to the problems that it finds, in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from tidegate_testkit.simulation.checks.answers import check_answers
from tidegate_testkit.simulation.checks.events import check_events
from tidegate_testkit.simulation.checks.fires import check_fires
from tidegate_testkit.simulation.checks.limits import check_limits
from tidegate_testkit.simulation.checks.messages import check_messages
from tidegate_testkit.simulation.checks.rest import check_rest
from tidegate_testkit.simulation.checks.runs import check_runs
from tidegate_testkit.simulation.checks.stops import check_stops

if TYPE_CHECKING:
    from tidegate_testkit.simulation.world import World

CheckFunction: TypeAlias = Callable[["World"], Iterable[str]]

CHECKS: tuple[CheckFunction, ...] = (
    check_rest,
    check_answers,
    check_fires,
    check_runs,
    check_events,
    check_limits,
    check_stops,
    check_messages,
)


def violations(world: World) -> list[str]:
    """Returns all that is wrong with a world that was run, the most telling first."""
    found = list(world.cluster.record.failures)
    for check in CHECKS:
        found.extend(check(world))
    return found
