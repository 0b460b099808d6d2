"""What must hold at rest. Each check is a function from a case to the problems that it finds, in words.

A problem begins with what it breaks: an invariant of DESIGN 2 (`I1: ...`), `answers`, `order`, `liveness` or `dead letters`. Checks
judge by what users, programs and sinks saw; the store's rows say only what became of things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from tidegate_testkit.simulation.checks.answers import check_answers
from tidegate_testkit.simulation.checks.case import Case
from tidegate_testkit.simulation.checks.constraints import check_constraints
from tidegate_testkit.simulation.checks.controls import check_controls
from tidegate_testkit.simulation.checks.dispositions import check_dispositions
from tidegate_testkit.simulation.checks.ends import check_ends
from tidegate_testkit.simulation.checks.events import check_events
from tidegate_testkit.simulation.checks.evidence import check_evidence
from tidegate_testkit.simulation.checks.fires import check_fires
from tidegate_testkit.simulation.checks.instances import check_instances
from tidegate_testkit.simulation.checks.limits import check_limits
from tidegate_testkit.simulation.checks.messages import check_messages
from tidegate_testkit.simulation.checks.outages import check_outages
from tidegate_testkit.simulation.checks.overlap import check_overlap
from tidegate_testkit.simulation.checks.recurring import check_recurring
from tidegate_testkit.simulation.checks.reminders import check_reminders
from tidegate_testkit.simulation.checks.repeats import check_repeats
from tidegate_testkit.simulation.checks.rest import check_rest
from tidegate_testkit.simulation.checks.retries import check_retries
from tidegate_testkit.simulation.checks.runs import check_runs
from tidegate_testkit.simulation.checks.sources import check_sources
from tidegate_testkit.simulation.checks.stops import check_stops
from tidegate_testkit.simulation.checks.submissions import check_submissions
from tidegate_testkit.simulation.checks.ticks import check_ticks
from tidegate_testkit.simulation.checks.upstreams import check_upstreams

if TYPE_CHECKING:
    from tidegate_testkit.simulation.world import World

Check: TypeAlias = Callable[[Case], Iterable[str]]

CHECKS: tuple[Check, ...] = (
    check_rest,
    check_answers,
    check_fires,
    check_outages,
    check_dispositions,
    check_overlap,
    check_runs,
    check_submissions,
    check_retries,
    check_events,
    check_sources,
    check_evidence,
    check_ticks,
    check_instances,
    check_reminders,
    check_limits,
    check_constraints,
    check_stops,
    check_ends,
    check_controls,
    check_messages,
    check_recurring,
    check_repeats,
    check_upstreams,
)


def violations(world: World) -> list[str]:
    """Returns all that is wrong with a world that was run, the most telling first."""
    case = Case(world)
    found = list(world.cluster.record.failures)
    for check in CHECKS:
        found.extend(check(case))
    return found
