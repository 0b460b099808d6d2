"""What a schedule itself missed, and is to make up for: written down in its state by the request that ends it (SEMANTICS 3.5).

By default it is nothing: a suspended span is no miss, and what an update brings counts from then on.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate_core.model.catch_up import CatchUp
from tidegate_core.model.schedule import ScheduleSpec
from tidegate_core.records.run_plane import ScheduleState
from tidegate_core.store import keys
from tidegate_core.triggers.base import TimeTrigger
from tidegate_core.triggers.search import Search


def after_pause(
    state: ScheduleState, spec: ScheduleSpec, before: ScheduleState, backlog: CatchUp | None
) -> ScheduleState:
    """Returns the state of a schedule that goes on, with what lay in its suspended span to be made up for.

    One that began suspended, and was never active, begins now: what lay before that is its creation's.

    Args:
        state: As the resume makes it.
        spec: Its definition.
        before: Its state while it was suspended.
        backlog: What the resume asks for instead of the schedule's own word.
    """
    since = before.suspended_at or before.changed_at
    start = spec.trigger.start if isinstance(spec.trigger, TimeTrigger) else None
    was_never_active = before.suspended_at == before.activated_at
    if backlog is None and was_never_active and start is not None and spec.catchup.on_create != "none":
        return _making_up(state, spec, start, spec.catchup.on_create)
    return _making_up(state, spec, since, backlog or spec.catchup.after_pause)


def after_apply(state: ScheduleState, spec: ScheduleSpec, before: ScheduleState | None) -> ScheduleState:
    """Returns the state after an apply, with what its trigger named before to be made up for.

    Args:
        state: As the apply makes it.
        spec: What is applied.
        before: None when the name was not there.
    """
    if not isinstance(spec.trigger, TimeTrigger):
        return state
    if before is None or before.status == "deleted":
        start = spec.trigger.start
        return state if start is None else _making_up(state, spec, start, spec.catchup.on_create)
    begin = max(before.fired_through + 1, before.activated_at)
    return state if before.status != "active" else _making_up(state, spec, begin, spec.catchup.after_update)


def _making_up(state: ScheduleState, spec: ScheduleSpec, begin: int, mode: CatchUp) -> ScheduleState:
    if mode == "none" or state.status != "active" or spec.sends_messages or not isinstance(spec.trigger, TimeTrigger):
        return state
    if spec.trigger.fires_left(state.fires) == 0:
        return state
    end = state.activated_at
    begin = max(begin, end - spec.catchup.window)  # Nobody waits for what is older, and years of seconds are many.
    ref = keys.schedule_ref(state.namespace, state.name)
    first = spec.trigger.seek(max(begin, state.fired_through + 1) - 1, ref, Search.of_a_decision())
    if not first.is_due(end - 1):
        return state
    # Where that is but a bound there may be none: then the search goes on to the first one that counts from now on.
    return replace(state.at_next(first), missed_from=begin, missed_until=end, missed_as=mode)
