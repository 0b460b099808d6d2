"""Bounds of searches in a state: written where every node reads them as such, else the search goes on to its end.

A node of a release that knows of no bounds takes one for an instant, and fires at it. Until `tidegate migrate --finish` has said that
there is no such node any more, a decision searches as that release did: as long as there are instants, and whoever stands behind it
in the lane waits. Where a search ends changes nothing but cost, so the outcome is the same.
"""

from __future__ import annotations

from tidegate_core.records.run_plane import ScheduleState
from tidegate_core.records.schema import BOUNDS
from tidegate_core.store import keys
from tidegate_core.transactions.unit_of_work import UnitOfWork
from tidegate_core.triggers.base import TimeTrigger
from tidegate_core.triggers.search import Search


def as_all_read_it(unit: UnitOfWork, state: ScheduleState, trigger: TimeTrigger) -> ScheduleState:
    """Returns the state as it may be written: with its next instant in the place of a bound, where not all nodes know of those."""
    following = state.following
    if unit.writes_version >= BOUNDS or not following.is_bound or following.at is None:
        return state
    found = trigger.seek(following.at - 1, keys.schedule_ref(state.namespace, state.name), Search())
    return state.at_next(found if following.since is None else found._replace(since=following.since))
