"""Asks the production walk and the oracle the same questions."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.oracles.calendar.brute_force_walker import first_fire_after, rules_of
from tests.oracles.calendar.random_questions import Triple, triple
from tidegate_core.language.time.cron_fields import parse_cron
from tidegate_core.language.time.wall_clock import next_fire, previous_fire
from tidegate_core.language.time.zones import zone_named

HORIZON_MS = 3_640 * 86_400_000
"""Beyond that the two may stop looking at different days."""
SHOWN = 20


@dataclass(frozen=True)
class Comparison:
    """What came of some questions; `differences` is the number, `stories` the first of them."""

    triples: int
    fires: int
    differences: int
    stories: tuple[str, ...]


def difference(asked: Triple) -> tuple[bool, str | None]:
    """Returns whether something fires, and what differs, if anything does."""
    fields, zone = parse_cron(asked.expression, asked.dialect), zone_named(asked.zone)
    expected = first_fire_after(asked.meaning, rules_of(asked.zone), asked.after)
    found = next_fire(fields, zone, asked.after, asked.policy)
    if expected is None or expected > asked.after + HORIZON_MS:
        agrees = found is None or found > asked.after + HORIZON_MS
        return False, None if agrees else f"{asked}: {found}, and nothing fires"
    if found != expected:
        return True, f"{asked}: {found} instead of {expected}"
    if previous_fire(fields, zone, expected + 1, asked.policy) != expected:
        return True, f"{asked}: what fires at {expected} is not found backwards"
    before = previous_fire(fields, zone, expected, asked.policy)
    if before is not None and (before > asked.after or next_fire(fields, zone, before, asked.policy) != expected):
        return True, f"{asked}: {before} is told to be the one before {expected}"
    return True, None


def compare(seed: int, count: int) -> Comparison:
    """Returns what came of `count` questions of a seed."""
    chance = Random(seed)
    fires, stories = 0, list[str]()
    for _ in range(count):
        fired, story = difference(triple(chance))
        fires += fired
        if story is not None:
            stories.append(story)
    return Comparison(count, fires, len(stories), tuple(stories[:SHOWN]))
