"""What must hold at rest. Each check is a function from a case to the problems that it finds, in words.

A problem begins with what it breaks: an invariant of DESIGN 2 (`I1: ...`), `answers`, `order`, `liveness` or `dead letters`. Checks
judge by what users, programs and sinks saw; the store's rows say only what became of things.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeAlias

from tests.simulation.checks.case import Case
from tests.simulation.checks.constraints import check_constraints
from tests.simulation.checks.dispositions import check_dispositions
from tests.simulation.checks.events import check_events
from tests.simulation.checks.evidence import check_evidence
from tests.simulation.checks.fires import check_fires
from tests.simulation.checks.limits import check_limits
from tests.simulation.checks.messages import check_messages
from tests.simulation.checks.outages import check_outages
from tests.simulation.checks.overlap import check_overlap
from tests.simulation.checks.overtaking import check_overtaking
from tests.simulation.checks.quiescence import check_rest
from tests.simulation.checks.receipts import check_answers
from tests.simulation.checks.recurring_messages import check_recurring
from tests.simulation.checks.reminders import check_reminders
from tests.simulation.checks.repeats import check_repeats
from tests.simulation.checks.retries import check_retries
from tests.simulation.checks.runs import check_runs
from tests.simulation.checks.scope_suspension import check_controls
from tests.simulation.checks.sources import check_sources
from tests.simulation.checks.stops import check_stops
from tests.simulation.checks.submissions import check_submissions
from tests.simulation.checks.tick_instances import check_instances
from tests.simulation.checks.ticks import check_ticks
from tests.simulation.checks.timed_suspensions import check_ends
from tests.simulation.checks.upstream_deletion import check_upstreams

if TYPE_CHECKING:
    from tests.simulation.world.world import World

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
    check_overtaking,
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
