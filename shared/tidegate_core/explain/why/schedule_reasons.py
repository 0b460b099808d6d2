"""Reasons that hold back a schedule as a whole: it or its scope is suspended, it is deleted, or no node serves its shard."""

from __future__ import annotations

from itertools import pairwise

from tidegate_core.explain.why.reason import Reason
from tidegate_core.explain.why.schedule_snapshot import Facts
from tidegate_core.language.constraints.constraint import Compared
from tidegate_core.language.values.instants import Instant, format_instant
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.scope_suspension import Scope
from tidegate_core.shard.outages.outage_time import OUTAGE_GRACE_MS


def whole_schedule(facts: Facts) -> list[Reason]:
    """Returns the reasons that hold back the whole schedule now."""
    return [*_own(facts), *_wide(facts), *unserved(facts), *_pruned(facts)]


def _own(facts: Facts) -> list[Reason]:
    state = facts.state
    if state.status == "deleted":
        values: dict[str, Compared] = {"since": format_instant(state.changed_at)}
        by = _by(state.actor, state.reason)
        return [Reason("deleted", f"deleted at {format_instant(state.changed_at)}{by}", None, values)]
    if state.status == "suspended":
        since = format_instant(state.suspended_at)
        ends = "" if state.until is None else f", until {format_instant(state.until)}"
        # An update of a suspended schedule overwrites actor and reason. Of the suspend, the state keeps the first hundred characters of each.
        was_updated = state.stopped_by is not None and state.changed_at != state.suspended_at
        by = _by(state.stopped_by, state.stopped_for) if was_updated else _by(state.actor, state.reason)
        text = f"suspended since {since} (mode {state.mode}){ends}{by}"
        reason = Reason("suspended", text, state.until, {"mode": state.mode, "since": since})
        return [reason, *(_resuming(state) if state.mode == "drain" else ())]
    return _resuming(state)


def _resuming(state: ScheduleState) -> list[Reason]:
    """Returns that the cut of a resume is still being ended. Until then no kept job is admitted, not even if the schedule is draining again."""
    if state.shedding is None:
        return []
    text = f"resumed with backlog {state.shedding}: what is not wanted of it is being ended"
    return [Reason("resuming", text, None, {"backlog": state.shedding})]


def _pruned(facts: Facts) -> list[Reason]:
    gone = facts.state.gone
    if not gone or facts.state.status == "deleted":
        return []
    names = ", ".join(gone)
    text = f"its trigger does without {names}, which was deleted; apply it again to wait for what comes under that name"
    return [Reason("upstream_gone", text, None, {"gone": names})]


def _wide(facts: Facts) -> list[Reason]:
    suspended = [scope for scope in facts.controls.scopes if scope.is_suspended]
    return [_wide_reason(scope, scope.spans[-1]) for scope in suspended if covers(scope, facts)]


def covers(scope: Scope, facts: Facts) -> bool:
    return scope.namespace in (None, facts.state.namespace)


def _wide_reason(scope: Scope, span: tuple[int, int | None]) -> Reason:
    begun, ended = span
    since = format_instant(begun)
    what = "everything" if scope.namespace is None else f"namespace {scope.namespace}"
    code = "system_suspended" if scope.namespace is None else "namespace_suspended"
    values: dict[str, Compared] = {"since": since}
    if ended is None:
        return Reason(code, f"{what} is suspended since {since}{_by(scope.actor, scope.reason)}", None, values)
    values["to"] = format_instant(ended)
    return Reason(code, f"{what} was suspended from {since} to {values['to']}", None, values)


def unserved(facts: Facts) -> list[Reason]:
    """Returns that no node serves the shard, once the time without a heartbeat counts as an outage."""
    sign = facts.last_sign
    if sign is None or facts.now - sign < OUTAGE_GRACE_MS:
        return []
    text = f"no node has served shard {facts.shard} since {format_instant(sign)}"
    return [Reason("not_served", text, None, {"shard": facts.shard, "since": format_instant(sign)})]


# -- at an instant --------------------------------------------------------------------------------------------------------


def suspended_at(facts: Facts, instant: Instant) -> list[Reason]:
    """Returns the suspensions of the schedule or its scope at an instant, as far as they are stored."""
    return [*_own_at(facts, instant), *_wide_at(facts, instant)]


def _own_at(facts: Facts, instant: Instant) -> list[Reason]:
    state = facts.state
    goes_on = state.status == "suspended" and instant >= state.suspended_at
    if goes_on and (state.until is None or instant < state.until):
        return _own(facts)
    for begun, ended in list(pairwise(state.pauses))[::2]:
        if begun <= instant < ended:
            values: dict[str, Compared] = {"since": format_instant(begun), "to": format_instant(ended)}
            return [Reason("suspended", f"was suspended from {values['since']} to {values['to']}", None, values)]
    return []


def _wide_at(facts: Facts, instant: Instant) -> list[Reason]:
    return [
        _wide_reason(scope, (begun, ended))
        for scope in facts.controls.scopes
        if covers(scope, facts)
        for begun, ended in scope.spans
        if begun <= instant and (ended is None or instant < ended)
    ]


def _by(actor: str | None, reason: str | None) -> str:
    who = f", by {actor}" if actor else ""
    return f"{who}: {reason}" if reason else who


def being_made(nominal: Instant) -> Reason:
    """Returns that an instant is due, and its job is about to be written."""
    text = f"due since {format_instant(nominal)}, and its job is made now"
    return Reason("being_made", text, None, {"next": format_instant(nominal)})
