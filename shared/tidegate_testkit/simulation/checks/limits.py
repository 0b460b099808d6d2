"""I4: never more programs at a time than the limits allow, by the programs' own marks; at rest no permit is held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tidegate_core.store import keys
from tidegate_core.store.values import Key
from tidegate_testkit.simulation.definitions import GROUP, NAMESPACE

if TYPE_CHECKING:
    from tidegate_testkit.simulation.checks.case import Case
    from tidegate_testkit.simulation.definitions import Definition
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
    yield from _check_group(definitions, bodies, world.ended_at)
    yield from _check_keys(definitions, bodies, world.ended_at)
    yield from _check_admissions(case)
    if world.at_rest:
        yield from _check_permits(world)


def _check_group(definitions: Iterable[Definition], bodies: Iterable[Body], ended_at: int) -> Iterator[str]:
    members = {each.name: each.group for each in definitions if each.group is not None}
    if members:
        mine = [body for body in bodies if body.schedule in members]
        yield from _check(f"group of {', '.join(members)}", max(members.values()), mine, ended_at)


def _check_keys(definitions: Iterable[Definition], bodies: Iterable[Body], ended_at: int) -> Iterator[str]:
    limited = {each.name: each.key for each in definitions if each.key is not None}
    mine = [body for body in bodies if body.schedule in limited]
    for value in sorted({str(body.context["correlation"]) for body in mine}):
        with_it = [body for body in mine if body.context["correlation"] == value]
        yield from _check(f"key {value} of {', '.join(limited)}", max(limited.values()), with_it, ended_at)


def _check_admissions(case: Case) -> Iterator[str]:
    """Each schedule is admitted by its own number, and counts all runs of the limit, whichever schedule they are of."""
    known = {life.name: _shared_by(life.definition) for life in case.lives}
    for admitted in case.world.limits.admitted:
        most = known[admitted.schedule].get(admitted.limit)
        if most is None:
            most = next(iter(_of_keys(case, admitted.schedule)), None)
        if most is None or admitted.in_use > most:
            yield f"I4: {admitted.schedule} was admitted at {admitted.at} as number {admitted.in_use} of {most}"
            return


def _shared_by(definition: Definition) -> dict[str, int]:
    """Returns the bounds of the limits that the schedule names as they are, by the limits' partition keys."""
    found: dict[str, int] = {}
    if definition.program is not None:
        name, most = definition.program
        found[keys.shared_limit(NAMESPACE, "program", name).pk] = most
    if definition.group is not None:
        found[keys.shared_limit(NAMESPACE, "group", GROUP).pk] = definition.group
    return found


def _of_keys(case: Case, schedule: str) -> Iterator[int]:
    """Yields the bound of the limits that the schedule names by a key: each value has one of its own."""
    yield from (life.definition.key for life in case.lives if life.name == schedule and life.definition.key is not None)


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
        if str(item["sk"]).startswith(("PERMIT#", "W#")):
            yield f"I4: {item['pk']!s} {item['sk']!s} is left at rest"
