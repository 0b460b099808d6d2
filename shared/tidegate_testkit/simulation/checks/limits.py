"""I4: never more programs at a time than the limits allow, by the programs' own marks; at rest no permit is held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tidegate_core.store import keys
from tidegate_core.store.values import Key
from tidegate_testkit.simulation.definitions import NAMESPACE

if TYPE_CHECKING:
    from tidegate_testkit.simulation.checks.case import Case
    from tidegate_testkit.simulation.definitions import Definition
    from tidegate_testkit.simulation.limit_monitor import Load
    from tidegate_testkit.simulation.record import Body
    from tidegate_testkit.simulation.world import World


def check_limits(case: Case) -> Iterator[str]:
    world, bodies = case.world, case.record.bodies
    definitions = [life.definition for life in case.lives]
    shared: dict[tuple[str, int], list[str]] = {}
    for definition in definitions:
        if definition.most is not None:
            mine = [body for body in bodies if body.schedule == definition.name]
            yield from _check(definition.name, definition.most, mine, world.ended_at)
        if definition.program is not None:
            shared.setdefault(definition.program, []).append(definition.name)
    for (program, most), names in shared.items():
        mine = [body for body in bodies if body.schedule in names]
        yield from _check(f"program {program} of {', '.join(names)}", most, mine, world.ended_at)
    yield from _check_groups(definitions, bodies, world.ended_at)
    yield from _check_keys(definitions, bodies, world.ended_at)
    yield from _check_admissions(case)
    yield from _check_refusals(case)
    if world.at_rest:
        yield from _check_permits(world)


def _check_groups(definitions: list[Definition], bodies: list[Body], ended_at: int) -> Iterator[str]:
    for group in sorted({group for each in definitions for group, _ in each.groups}):
        members = {each.name: dict(each.groups)[group] for each in definitions if group in dict(each.groups)}
        mine = [body for body in bodies if body.schedule in members]
        yield from _check(f"group {group} of {', '.join(members)}", max(members.values()), mine, ended_at)


def _check_keys(definitions: list[Definition], bodies: list[Body], ended_at: int) -> Iterator[str]:
    for key in sorted({key for each in definitions for key, _ in each.keys}):
        limited = {each.name: dict(each.keys)[key] for each in definitions if key in dict(each.keys)}
        mine = [body for body in bodies if body.schedule in limited]
        for value in sorted({_resolved(key, body.context["correlation"]) for body in mine}):
            with_it = [body for body in mine if _resolved(key, body.context["correlation"]) == value]
            yield from _check(f"key {value} of {', '.join(limited)}", max(limited.values()), with_it, ended_at)


def _check_admissions(case: Case) -> Iterator[str]:
    """Each schedule is admitted by its own numbers, and counts all runs of a limit, whichever schedule they are of.

    Whoever is admitted has all its permits from that moment on: none of them is taken before, or later (SEMANTICS 7.2).
    """
    definitions = {life.name: life.definition for life in case.lives}
    for begun in case.world.limits.begun:
        wanted = _shared_by(definitions[begun.schedule], begun.correlation)
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
    definitions, limits = {life.name: life.definition for life in case.lives}, case.world.limits
    for refused in limits.refused:
        wanted = _shared_by(definitions[refused.schedule], refused.correlation)
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


def _check(what: str, most: int, bodies: Iterable[Body], ended_at: int) -> Iterator[str]:
    marks: list[tuple[int, int]] = []
    for body in bodies:
        marks.append((body.start, 1))
        marks.append((ended_at if body.end is None else body.end, -1))
    running = 0
    for instant, change in sorted(marks):
        running += change
        if running > most:
            yield f"I4: {running} programs of {what} ran at {instant}, at most {most} may"
            return


def _check_permits(world: World) -> Iterator[str]:
    for item in world.cluster.store.memory.stored():
        key = Key(str(item["pk"]), str(item["sk"]))
        is_limit = key.sk.startswith("LIM#") or (key.sk == "LIMIT" and not keys.is_rate(key))
        if is_limit and (item.get("holders") or item.get("in_use")):
            yield f"I4: {item['pk']!s} {item['sk']!s} is held at rest: {item.get('holders')!r} {item.get('in_use')!r}"
        if str(item["sk"]).startswith(("PERMIT#", "IW#")):
            yield f"I4: {item['pk']!s} {item['sk']!s} is left at rest"
