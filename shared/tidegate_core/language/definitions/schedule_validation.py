"""Checks of a whole schedule: whether its parts fit together, and whether it can fire from the present on.

Parsing calls `fitting_problems`. Apply and dry run call `check_schedule` and `schedule_warnings`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidegate_core.language.constraints import DelayConstraint, LoadConstraint
from tidegate_core.language.constraints.limit_scope import ScopedConstraint
from tidegate_core.language.constraints.load import LOCAL, LOCAL_MOST
from tidegate_core.language.definitions.catch_up_policy import CatchUp, catch_up_problems, catch_up_warning, is_too_old
from tidegate_core.language.definitions.never_runs import INSTANTS_MAX, never_runs_warning
from tidegate_core.language.definitions.quotas import NO_QUOTA, Quota
from tidegate_core.language.definitions.run_policies import overlap_problems
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.targets.argument_templates import text_problems
from tidegate_core.language.time.cron_items import is_hashed
from tidegate_core.language.triggers import AtTrigger, RunStatusTrigger, TimesTrigger
from tidegate_core.language.triggers.composite.composite import CompositeTrigger
from tidegate_core.language.triggers.composite.ticks import TickLeaf
from tidegate_core.language.triggers.exclusions import ExcludedCron
from tidegate_core.language.triggers.on_event.counting_leaf import DatasetLeaf
from tidegate_core.language.triggers.on_event.custom_event import CustomEventTrigger
from tidegate_core.language.triggers.on_time.cron import CronTrigger
from tidegate_core.language.triggers.on_time.every import SHORTEST_PERIOD_MS
from tidegate_core.language.triggers.search import STEPS_PER_SEARCH, Search
from tidegate_core.language.triggers.trigger import EventTrigger, LeafTrigger, TimeTrigger
from tidegate_core.language.triggers.unmatchable_filters import vain_filter_problems
from tidegate_core.language.values.durations import format_duration
from tidegate_core.language.values.instants import TEN_YEARS_MS, Instant, format_instant
from tidegate_core.language.values.json_values import ESCAPES, WRONG_ESCAPE, is_wrongly_escaped
from tidegate_core.language.values.problems import Problem

if TYPE_CHECKING:
    from tidegate_core.language.definitions.schedule_spec import ScheduleSpec


DEFAULT_MINIMUM_PERIOD_MS = 10_000
"""Shortest period of a time trigger, if the setting of the processes has no other value."""
RENEWING = frozenset({"keep_latest", "coalesce", "cancel_running"})
"""Overlap policies under which only the newest job waits."""
MINIMUM_PERIOD_SETTING = "TIDEGATE_MINIMUM_PERIOD_MS"
QUOTAS_SETTING = "TIDEGATE_QUOTAS"
"""Setting of nodes and API processes with the quotas of all namespaces."""


def fitting_problems(spec: ScheduleSpec) -> list[Problem]:
    """Returns the problems between the parts of a schedule that do not depend on the time."""
    of_target = spec.target_rules.problems(
        spec.trigger, overlap=spec.overlap, has_constraints=bool(spec.constraints), retries=spec.retry.tries
    )
    own = (*_own_upstream(spec), *_flexible_problems(spec), *_delays_for_nothing(spec), *_key_problems(spec))
    since = (*_load_problems(spec), *_hashed_problems(spec), *_filter_problems(spec))
    return [*of_target, *overlap_problems(spec), *catch_up_problems(spec), *own, *since]


def _filter_problems(spec: ScheduleSpec) -> list[Problem]:
    found: list[Problem] = []
    for path, leaf in _leaf_paths(spec.trigger) if isinstance(spec.trigger, EventTrigger) else []:
        if isinstance(leaf, DatasetLeaf | CustomEventTrigger) and leaf.where is not None:
            wrong = [each for each in leaf.where.fields() if is_wrongly_escaped(each)]
            found += [Problem(f"{path}.where", f"{each[:64]} {WRONG_ESCAPE}", ESCAPES) for each in wrong]
            found += vain_filter_problems(leaf, path)
    return found


def _flexible_problems(spec: ScheduleSpec) -> list[Problem]:
    flexible = spec.trigger.flexible if isinstance(spec.trigger, TimeTrigger) else None
    if flexible is None or flexible < spec.pending_timeout:
        return []
    least = format_duration(spec.pending_timeout)
    return [Problem("trigger.flexible", f"is not shorter than pending_timeout, {least}", "jobs would expire in it")]


def _key_problems(spec: ScheduleSpec) -> list[Problem]:
    keys = [
        (f"constraints[{place}].key", each.key)
        for place, each in enumerate(spec.constraints)
        if isinstance(each, ScopedConstraint) and each.key is not None
    ]
    return text_problems(spec.trigger, keys)


def _delays_for_nothing(spec: ScheduleSpec) -> list[Problem]:
    if spec.pending_timeout_action != "abort":
        return []
    return [
        Problem(
            f"constraints[{place}].after",
            "is not shorter than pending_timeout: every job would expire first",
            f"it is {format_duration(spec.pending_timeout)}; give it more, or another pending_timeout_action",
        )
        for place, constraint in enumerate(spec.constraints)
        if isinstance(constraint, DelayConstraint) and constraint.after >= spec.pending_timeout
    ]


def _load_problems(spec: ScheduleSpec) -> list[Problem]:
    """Returns the problems of load constraints on the node's host. The units of other sources are unknown here.

    The check is not in the constraint's model: a stored definition of an older version must stay readable.
    """
    found: list[Problem] = []
    for place, each in enumerate(spec.constraints):
        if not isinstance(each, LoadConstraint) or each.source != LOCAL:
            continue
        most = LOCAL_MOST.get(each.resource)
        if most is None:
            problem = f'"{each.resource}" is no resource of local, which has {" and ".join(LOCAL_MOST)}'
            hint = "for other resources name a source of the nodes' setting load.sources"
            found.append(Problem(f"constraints[{place}].resource", problem, hint))
            continue
        bounds = {"below": each.below, "resume": each.resume}
        found += [
            Problem(f"constraints[{place}].{field}", *_never_reached(each.resource, bound, most))
            for field, bound in bounds.items()
            if bound is not None and bound > most
        ]
    return found


def _hashed_problems(spec: ScheduleSpec) -> list[Problem]:
    """Returns the problems of exclusions with `H`: it would not have the value that it has in the schedule's trigger.

    The check is not in the exclusion's model, for the same reason as above.
    """
    return [
        Problem(
            f"{path}.exclude[{place}].expression",
            f'"{each.expression[:64]}" has an H, whose value in the trigger an exclusion does not know',
            "name the excluded times: * * 25 12 * is a day, * 2 * * * an hour",
        )
        for path, trigger in _with_specs(spec)
        for place, each in enumerate(trigger.exclude or ())
        if isinstance(each, ExcludedCron) and is_hashed(each.expression)
    ]


def _with_specs(spec: ScheduleSpec) -> Iterator[tuple[str, TimeTrigger]]:
    for path, trigger in _of_time(spec):
        yield path, trigger
        if isinstance(trigger, TimesTrigger):
            yield from ((f"{path}.specs[{place}]", each) for place, each in enumerate(trigger.specs))


def _never_reached(resource: str, bound: float, most: float) -> tuple[str, str]:
    """Returns the problem and the hint."""
    problem = f"is {bound:g}, and {resource} of local is a share (1.0 = all of it): the bound would never hold a job"
    example = f"{bound / 100:g} for {bound:g} %" if 10 <= bound <= 100 else "0.85"
    return problem, f"write at most {most:g}, such as {example}"


def schedule_warnings(spec: ScheduleSpec, now: Instant) -> list[Problem]:
    """Returns warnings for a schedule that is applied at `now`: allowed, but rarely intended. A dry run shows them."""
    warnings = (
        catch_up_warning(spec),
        _delay_warning(spec),
        _crowded_window_warning(spec, now),
        _too_old_warning(spec, now),
        never_runs_warning(spec, now),
    )
    return [warning for warning in warnings if warning is not None]


def _too_old_warning(spec: ScheduleSpec, now: Instant) -> Problem | None:
    """Returns a warning if the instant of an `at` has passed too long ago to fire at once."""
    trigger = spec.trigger
    if not isinstance(trigger, AtTrigger) or not is_too_old(spec, trigger.instant, now):
        return None
    window = format_duration(spec.catchup.window)
    return Problem(
        "trigger.instant",
        f"has passed longer ago than catchup.window, {window}: it will not run, but end as expired/catchup_window",
        "name a later instant, or a longer window",
    )


def _delay_warning(spec: ScheduleSpec) -> Problem | None:
    """Returns a warning if no job would ever start, because each occurrence replaces the one before during its delay."""
    if spec.overlap not in RENEWING or not isinstance(spec.trigger, TimeTrigger):
        return None
    gap = spec.trigger.smallest_gap_ms(f"{spec.namespace}/{spec.name}")
    for place, constraint in enumerate(spec.constraints):
        if gap is not None and isinstance(constraint, DelayConstraint) and constraint.after >= gap:
            problem = f"with overlap: {spec.overlap} each occurrence replaces one that is still delayed"
            hint = f"make it shorter than {format_duration(gap)}, or use overlap: queue"
            return Problem(f"constraints[{place}].after", problem, hint)
    return None


def _crowded_window_warning(spec: ScheduleSpec, now: Instant) -> Problem | None:
    """Returns a warning if occurrences would end before their instants in a flexible window.

    Until its instant an occurrence waits, and the overlap policy bounds the waiting jobs. There is no warning if that bound
    exceeds the number of checked instants.
    """
    trigger = spec.trigger
    if not isinstance(trigger, TimeTrigger) or trigger.flexible is None:
        return None
    if spec.overlap in RENEWING:
        most, way_out = 1, "use overlap: queue"
        problem = f"with overlap: {spec.overlap} an occurrence replaces one whose instant in the window has not come"
    elif spec.overlap == "queue":
        most, way_out = spec.max_pending, "give it more max_pending"
        problem = f"more occurrences wait for their instants in the window than may wait, {most}"
    else:
        return None
    nominals = _coming(trigger, now, f"{spec.namespace}/{spec.name}")
    longest = min((late - early for early, late in zip(nominals, nominals[most:], strict=False)), default=None)
    if longest is None or trigger.flexible <= longest:
        return None
    return Problem("trigger.flexible", problem, f"make it no longer than {format_duration(longest)}, or {way_out}")


def _coming(trigger: TimeTrigger, now: Instant, identity: str) -> list[Instant]:
    """Returns the next instants of a schedule that is applied at `now`, within the search limit of one decision."""
    search, found = Search.of_a_decision(), list[Instant]()
    nominal = trigger.seek(trigger.counts_from(now) - 1, identity, search).found
    while nominal is not None and nominal <= now + TEN_YEARS_MS and len(found) < INSTANTS_MAX:
        found.append(nominal)
        nominal = trigger.seek(nominal, identity, search).found
    return found


def _own_upstream(spec: ScheduleSpec) -> list[Problem]:
    if not isinstance(spec.trigger, EventTrigger):
        return []
    own = (spec.namespace, spec.name)
    return [
        Problem(
            f"{path}.schedule",
            "is the schedule itself, which would start itself for ever",
            "name another schedule",
        )
        for path, leaf in _leaf_paths(spec.trigger)
        if isinstance(leaf, RunStatusTrigger) and leaf.upstream(spec.namespace) == own
    ]


def _leaf_paths(trigger: EventTrigger) -> list[tuple[str, LeafTrigger]]:
    if isinstance(trigger, CompositeTrigger):
        return [(f"trigger.{path}", leaf) for path, leaf in trigger.paths()]
    return [("trigger", leaf) for leaf in trigger.leaves()]


def check_schedule(
    spec: ScheduleSpec,
    *,
    now: Instant,
    minimum_period_ms: int = DEFAULT_MINIMUM_PERIOD_MS,
    quota: Quota = NO_QUOTA,
    trigger_stays: bool = False,
    making_up: CatchUp | None = None,
) -> tuple[Problem, ...]:
    """Returns the problems of a schedule at `now`, under the settings of the calling process.

    Call it only for a definition that changes something: the trigger of an unchanged one may have ended.

    Args:
        spec: Schedule without problems between its parts.
        now: Instant of the activation.
        minimum_period_ms: Setting of the process; never below 1 s.
        quota: Quota of the schedule's namespace.
        trigger_stays: Whether an update leaves the trigger unchanged. Then the trigger may have ended, and is not checked.
        making_up: Catch-up of instants before `now`; None for a new schedule.
    """
    identity = f"{spec.namespace}/{spec.name}"
    minimum_ms = max(minimum_period_ms, quota.minimum_period_ms or 0, SHORTEST_PERIOD_MS)
    setting = MINIMUM_PERIOD_SETTING if minimum_period_ms >= minimum_ms else f"{QUOTAS_SETTING} ({spec.namespace})"
    # All checks share one search limit: an apply blocks the shard writer, however many triggers it contains.
    search = Search(STEPS_PER_SEARCH, TEN_YEARS_MS)
    found: list[Problem | None] = [_catch_up_problem(spec, quota), _pending_problem(spec, quota)]
    if not trigger_stays:
        found.append(_reminder_problem(spec, quota))
    mode = making_up or spec.catchup.on_create if spec.target_rules.makes_jobs else "none"
    for place, trigger in () if trigger_stays else _of_time(spec):
        found.append(_period_problem(trigger, identity, minimum_ms, place, setting))
        if mode == "none" or not _makes_up(spec, trigger, now, identity, search):
            problem = _horizon_problem(trigger, now, identity, search, place)
            has_passed = problem is not None and problem.field == f"{place}.end"
            found.append(
                _past_range_problem(spec, place, mode) if has_passed and trigger.start is not None else problem
            )
    return tuple(problem for problem in found if problem is not None)


def _of_time(spec: ScheduleSpec) -> list[tuple[str, TimeTrigger]]:
    """Returns the time trigger, or the time leaves of a composite, with their paths."""
    if isinstance(spec.trigger, TimeTrigger):
        return [("trigger", spec.trigger)]
    return [(path, leaf) for path, leaf in _leaf_paths(spec.trigger) if isinstance(leaf, TickLeaf)]


def _catch_up_problem(spec: ScheduleSpec, quota: Quota) -> Problem | None:
    wanted, most = spec.catchup, quota.catch_up_runs_max
    may_have_many = "all" in (wanted.mode, wanted.after_pause, wanted.on_create, wanted.after_update)
    if most is None or not may_have_many or not isinstance(spec.trigger, TimeTrigger):
        return None
    if wanted.max_runs <= most or not spec.target_rules.makes_jobs:
        return None
    return Problem(
        "catchup.max_runs",
        f"is {wanted.max_runs}, namespace {spec.namespace} may have {most} jobs for one cause at most",
        f"write max_runs: {most} or fewer, or mode: last; or raise catch_up_runs_max in {QUOTAS_SETTING} of nodes and API",
    )


def _pending_problem(spec: ScheduleSpec, quota: Quota) -> Problem | None:
    """Returns a problem if too many jobs could wait. The bound is per schedule: a count per namespace would cost an item per admission."""
    most = quota.pending_max
    if most is None or not spec.target_rules.makes_jobs:
        return None
    way_out = f"or raise pending_max in {QUOTAS_SETTING} of nodes and API"
    if spec.overlap == "queue" and spec.max_pending > most:
        problem = f"is {spec.max_pending}, in namespace {spec.namespace} {most} jobs of a schedule may wait at most"
        return Problem("max_pending", problem, f"write max_pending: {most} or fewer, {way_out}")
    if spec.overlap == "allow" and (spec.constraints or getattr(spec.trigger, "flexible", None) is not None):
        problem = f"does not bound how many jobs wait, in namespace {spec.namespace} {most} of a schedule may"
        return Problem("overlap", problem, f"write overlap: queue with max_pending: {most} or fewer, {way_out}")
    return None


def _reminder_problem(spec: ScheduleSpec, quota: Quota) -> Problem | None:
    """Returns a problem if `at_least_every` is shorter than the minimum period: with `allow_empty` it is a period as well."""
    every = spec.trigger.at_least_every if isinstance(spec.trigger, EventTrigger) else None
    if every is None or quota.minimum_period_ms is None or every >= quota.minimum_period_ms:
        return None
    least = format_duration(quota.minimum_period_ms)
    return Problem(
        "trigger.at_least_every",
        f"makes a job every {format_duration(every)}, the minimum period is {least}",
        f"write {least} or more, or set {QUOTAS_SETTING} ({spec.namespace}) of nodes and API",
    )


def _period_problem(trigger: TimeTrigger, identity: str, minimum_ms: int, place: str, setting: str) -> Problem | None:
    if isinstance(trigger, TimesTrigger):
        each = (
            _period_problem(spec, identity, minimum_ms, f"{place}.specs[{number}]", setting)
            for number, spec in enumerate(trigger.specs)
        )
        return next((problem for problem in each if problem is not None), None)
    gap_ms = trigger.smallest_gap_ms(identity)
    if gap_ms is None or gap_ms >= minimum_ms:
        return None
    field = f"{place}.expression" if isinstance(trigger, CronTrigger) else f"{place}.period"
    least = format_duration(minimum_ms)
    return Problem(
        field,
        f"fires every {format_duration(gap_ms)}, the minimum period is {least}",
        f"leave at least {least} between two occurrences, or set {setting} of nodes and API",
    )


def _makes_up(spec: ScheduleSpec, trigger: TimeTrigger, now: Instant, identity: str, search: Search) -> bool:
    """Whether catch-up reaches an instant before `now`. Then that instant fires, even if no later one follows."""
    first = trigger.next_after(now - spec.catchup.window - 1, identity, search)
    return trigger is spec.trigger and first is not None and first < now


def _past_range_problem(spec: ScheduleSpec, place: str, mode: CatchUp) -> Problem:
    window = format_duration(spec.catchup.window)
    if mode == "none":
        hint = "to run past occurrences, create it with catchup: {on_create: all}, which reaches back"
        return Problem(f"{place}.end", "has passed, and nothing would ever fire", f"{hint} catchup.window, {window}")
    problem = f"has passed, and no time of the trigger is within catchup.window, {window}: nothing would ever fire"
    return Problem(f"{place}.end", problem, "write a longer catchup.window")


def _horizon_problem(trigger: TimeTrigger, now: Instant, identity: str, search: Search, place: str) -> Problem | None:
    for number, spec in enumerate(trigger.specs if isinstance(trigger, TimesTrigger) else ()):
        # A spec that never fires would go unnoticed among others, and cost a long search at each fire once they have ended.
        if spec.first_after_activation(now, identity, search) is None and (search.gave_up or search.left_out):
            return _too_much_excluded(f"{place}.specs[{number}].exclude", search)
    # A past `at` inside a composite never latches; outside it fires at once.
    is_leaf = isinstance(trigger, TickLeaf)
    first = (
        trigger.next_after(now - 1, identity, search)
        if is_leaf
        else trigger.first_after_activation(now, identity, search)
    )
    if first is None and (search.gave_up or search.left_out):
        return _too_much_excluded(f"{place}.specs" if trigger.exclude is None else f"{place}.exclude", search)
    if first is not None and first <= now + TEN_YEARS_MS:
        return None
    if is_leaf and isinstance(trigger, AtTrigger) and trigger.instant < now:
        return Problem(f"{place}.instant", f"has passed, it is {format_instant(now)}", "it would never latch")
    if isinstance(trigger, AtTrigger):
        return Problem(f"{place}.instant", "is more than ten years ahead", "name an earlier instant")
    if trigger.end is not None and trigger.end <= now:
        return Problem(f"{place}.end", f"has passed, it is {format_instant(now)}", "nothing would ever fire")
    return Problem(place, "names no time in the next ten years", "check its years, dates, start and exclusions")


def _too_much_excluded(field: str, search: Search) -> Problem:
    if search.left_out:
        hint = "exclude less; to exclude whole days write {type: dates}"
        return Problem(field, "excludes so much that no time is left in ten years", hint)
    return Problem(
        field,
        f"excludes so much that no time was found in {STEPS_PER_SEARCH:,} comparisons of an instant with an exclusion",
        "exclude whole days ({type: dates}, or * in both fields of the time), or narrow the trigger's own expression",
    )
