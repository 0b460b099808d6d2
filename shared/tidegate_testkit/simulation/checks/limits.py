"""I4: never more programs at a time than the limits allow, by the programs' own marks; at rest no permit is held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from tidegate_core.store import keys
from tidegate_testkit.simulation.definitions import NAMESPACE

if TYPE_CHECKING:
    from tidegate_testkit.simulation.checks.case import Case
    from tidegate_testkit.simulation.record import Body
    from tidegate_testkit.simulation.world import World


def check_limits(case: Case) -> Iterator[str]:
    world, bodies = case.world, case.record.bodies
    shared: dict[tuple[str, int], list[str]] = {}
    for life in case.lives:
        definition = life.definition
        if definition.most is not None:
            mine = [body for body in bodies if body.schedule == definition.name]
            yield from _check(definition.name, definition.most, mine, world.ended_at)
        if definition.program is not None:
            shared.setdefault(definition.program, []).append(definition.name)
    for (program, most), names in shared.items():
        mine = [body for body in bodies if body.schedule in names]
        yield from _check(f"program {program} of {', '.join(names)}", most, mine, world.ended_at)
    yield from _check_admissions(case)
    if world.at_rest:
        yield from _check_permits(world)


def _check_admissions(case: Case) -> Iterator[str]:
    """Each schedule is admitted by its own number, and counts all runs of the program, whichever schedule they are of."""
    shared = {life.name: life.definition.program for life in case.lives}
    for admitted in case.world.limits.admitted:
        program = shared[admitted.schedule]
        limit = None if program is None else keys.program_limit(NAMESPACE, program[0]).pk
        if program is not None and admitted.limit == limit and admitted.in_use > program[1]:
            yield f"I4: {admitted.schedule} was admitted at {admitted.at} as number {admitted.in_use} of {program[1]}"
            return


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
        is_limit = str(item["sk"]).startswith("LIM#") or item["sk"] == "LIMIT"
        if is_limit and (item.get("holders") or item.get("in_use")):
            yield f"I4: {item['pk']!s} {item['sk']!s} is held at rest: {item.get('holders')!r} {item.get('in_use')!r}"
        if str(item["sk"]).startswith(("PERMIT#", "W#")):
            yield f"I4: {item['pk']!s} {item['sk']!s} is left at rest"
