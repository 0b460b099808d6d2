"""After which effects a sweep of crashes kills the actor: all of them at night, else the first of each kind. For tests of the core."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support import tier
from tests.support.harness.actor_harness import OUTSIDE, ActorHarness
from tidegate_core.rows.effects import Commit, Effect, Produce, Write


def crash_points(undisturbed: ActorHarness, after: int) -> list[int]:
    """Returns values for `ActorHarness.crash_after`, from a run without a crash.

    Args:
        undisturbed: A bench that has played the whole story.
        after: How many effects on the outside came before the story.
    """
    outside = [effect for effect in undisturbed.asked if isinstance(effect, OUTSIDE)]
    of_the_story = outside[len(outside) - (undisturbed.effects_outside - after) :]
    return [after + place + 1 for place in places_of_faults(of_the_story)]


def places_of_faults(effects: Sequence[Effect]) -> list[int]:
    """Returns the places at which a fault comes: all at night, else the first of each kind."""
    if tier.ALL:
        return list(range(len(effects)))
    first: dict[tuple[str, str], int] = {}
    for place, effect in enumerate(effects):
        first.setdefault(kind_of(effect), place)
    return list(first.values())


def kind_of(effect: Effect) -> tuple[str, str]:
    """Returns what an effect is for: its type, and the name of its transaction or batch, or its topic."""
    match effect:
        case Commit(transaction):
            name = transaction.name
        case Write(batch):
            name = batch.name
        case Produce():
            name = effect.topic
        case _:
            name = ""
    return type(effect).__name__, name
