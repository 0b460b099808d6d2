"""I4: never more programs at a time than the limits allow, by the programs' own marks; at rest no permit is held."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from tests.simulation.users.schedule_definitions import NAMESPACE
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.monitors.limit_monitor import Load
    from tests.simulation.users.schedule_definitions import Definition
    from tests.simulation.world.observations import Body
    from tests.simulation.world.world import World


FORCED_MAX: Final = 16
"""Open runs of a schedule that one which was asked for by hand, with `force_overlap`, may be the last of."""


def check_limits(case: Case) -> Iterator[str]:
    world = case.world
    limited: defaultdict[str, list[tuple[Body, int | None]]] = defaultdict(list)
    names = {life.name for life in case.lives}
    for body in (body for body in case.record.bodies if body.schedule in names):
        for limit, most in _limits_of(case, body):
            limited[limit].append((body, most))
    for limit, bounded in limited.items():
        yield from _check(limit, bounded, world.ended_at)
    yield from _check_admissions(case)
    yield from _check_refusals(case)
    if world.at_rest:
        yield from _check_permits(world)


def _limits_of(case: Case, body: Body) -> Iterator[tuple[str, int | None]]:
    """Yields what counts a program, and how many programs of that its own schedule lets run; None = any number."""
    wants = case.shape_of(body)
    is_forced = body.run_id in case.forced and wants.most in (None, 1)  # Else a constraint bounds it.
    yield body.schedule, FORCED_MAX if is_forced else wants.most
    if wants.program is not None:
        name, most = wants.program
        yield f"program {name}", most
    for group, most in wants.groups:
        yield f"group {group}", most
    for key, most in wants.keys:
        yield f"key {_resolved(key, body.context['correlation'])}", most


def _check_admissions(case: Case) -> Iterator[str]:
    """Each schedule is admitted by its own numbers, and counts all runs of a limit, whichever schedule they are of.

    Whoever is admitted has all its permits from that moment on: none of them is taken before, or later (SEMANTICS 7.2).
    """
    for begun in case.world.limits.begun:
        wanted = _shared_by(case.shape(case.life(begun.schedule), begun.version), begun.correlation)
        for limit, most in wanted.items():
            in_use = begun.in_use.get(limit)
            if in_use is None or in_use > most:
                yield f"I4: {begun.schedule} was admitted at {begun.at} as number {in_use} of {most} of {limit}"
                return
        for limit in sorted(begun.in_use.keys() - wanted.keys()):
            yield f"I4: {begun.schedule} was admitted at {begun.at} with a permit of {limit}, which it does not need"
            return


def _check_refusals(case: Case) -> Iterator[str]:
    """Who ends because others wait ends because somebody does, and has the slots: a mark that was left behind is nobody.

    Nor is who waits for another limit meanwhile, but for the first of those that do (decision 24).
    """
    for refused in case.world.limits.refused:
        wanted = _shared_by(case.shape(case.life(refused.schedule), refused.version), refused.correlation)
        waited = max((at for limit, at in refused.waited.items() if limit in wanted), default=0)
        if waited < refused.since:
            yield f"order: {refused.schedule} ended at {refused.at} because others wait, and none has since {waited}"
        elif not any(_is_all_others(refused.loads.get(limit, ()), most) for limit, most in wanted.items()):
            yield f"order: {refused.schedule} ended at {refused.at} because others wait, and they leave it a slot"


def _is_all_others(loads: Sequence[Load], most: int) -> bool:
    """Whether there was a moment at which nothing was left for one who allows so many runs."""
    return any(load.slots >= (most if load.narrowest is None else min(most, load.narrowest)) for load in loads)


def _shared_by(definition: Definition, correlation: str | None) -> dict[str, int]:
    """Returns the bounds of the limits that a run of the schedule shares with others, by the limits' partition keys."""
    named = [("group", group, most) for group, most in definition.groups]
    named += [("key", _resolved(key, correlation), most) for key, most in definition.keys]
    if definition.program is not None:
        named.append(("program", *definition.program))
    return {keys.shared_limit(NAMESPACE, scope, name).pk: most for scope, name, most in named}


def _resolved(key: str, correlation: object) -> str:
    return key.replace("${correlation}", str(correlation))


def _check(what: str, bounded: Sequence[tuple[Body, int | None]], ended_at: int) -> Iterator[str]:
    """Of those that run together and let no more than so many run, one was admitted last, and counted the others."""
    marks = [(body.start, 1, number) for number, (body, _) in enumerate(bounded)]
    mosts = [most for _, most in bounded]
    marks += [(ended_at if body.end is None else body.end, -1, number) for number, (body, _) in enumerate(bounded)]
    running = set[int]()
    for instant, change, number in sorted(marks):
        if change < 0:
            running.discard(number)
            continue
        running.add(number)
        allowed = sorted(most for each in running if (most := mosts[each]) is not None)
        for together, most in enumerate(allowed, start=1):
            if together > most:
                yield f"I4: {together} programs of {what} ran at {instant}, at most {most} may"
                return


def _check_permits(world: World) -> Iterator[str]:
    for item in world.cluster.store.memory.stored():
        key = Key(str(item["pk"]), str(item["sk"]))
        is_limit = key.sk.startswith("LIM#") or (key.sk == "LIMIT" and not keys.is_rate(key))
        if is_limit and (item.get("holders") or item.get("in_use")):
            yield f"I4: {item['pk']!s} {item['sk']!s} is held at rest: {item.get('holders')!r} {item.get('in_use')!r}"
        if str(item["sk"]).startswith(("PERMIT#", "IW#")):
            yield f"I4: {item['pk']!s} {item['sk']!s} is left at rest"
