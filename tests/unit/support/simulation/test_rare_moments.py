"""Worlds that hunt what is hardly met: they name transactions that nodes send, and add to what the world has."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.faults.rare_scenarios import AS_IT_BEGINS_MS, COMMON, FALLS
from tests.simulation.faults.scenarios import TRAPS
from tests.simulation.runner.world_drawing import source, swarm_of, trapped
from tests.simulation.users.schedule_definitions import TIMEOUT, TRAP, draw, hurried
from tests.simulation.world.timeline import START
from tests.simulation.world.transaction_names import (
    HARDLY,
    HARDLY_OF_RESUMES,
    HARDLY_OF_SUSPENDS,
    OF_REFUSALS,
    OF_REJECTIONS,
    OF_SOURCES,
    OF_TICKS,
    OWNERS,
    RARE,
)

NAMES = tuple(name for name in TRAPS if name.startswith("rare_"))
SEEDS = range(20)


def test_given_the_names_then_what_is_hardly_met_is_rare_or_a_step_of_controls_and_nothing_is_missing() -> None:
    assert {*HARDLY, *HARDLY_OF_SUSPENDS, *HARDLY_OF_RESUMES} <= {*OWNERS, *OF_SOURCES}
    assert set(COMMON) | set(RARE) == set(OWNERS)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", SEEDS)
def test_given_such_a_world_then_it_hunts_what_it_aims_at_and_keeps_the_faults_that_it_has(
    name: str, seed: int
) -> None:
    before = swarm_of(seed)
    after = trapped(before, seed, name)
    assert set(after.store.hunted) <= set(after.store.aimed)
    assert set(before.store.aimed) <= set(after.store.aimed) or name == "rare_resumes"
    assert len(after.store.aimed_outs) > len(before.store.aimed_outs)
    assert len(after.node.trouble) > len(before.node.trouble)
    kept = after.node.trouble[: len(before.node.trouble)]
    assert [replace(each, at=0) for each in kept] == [replace(each, at=0) for each in before.node.trouble]
    assert all(late.at >= each.at for late, each in zip(kept, before.node.trouble, strict=True))
    assert kept == before.node.trouble or name == "rare_outages"
    names = {None, *OWNERS, *OF_SOURCES, *OF_TICKS, *OF_REFUSALS, *OF_REJECTIONS}
    assert {each.once_applied for each in after.node.trouble} <= names


@pytest.mark.parametrize("seed", SEEDS)
def test_given_a_world_that_hunts_the_facts_of_a_silence_then_nothing_of_the_world_moves_shards_in_it(
    seed: int,
) -> None:
    """Of the first such worlds two in three had none, because whoever acquires a shard in the silence writes its fact in the acquire."""
    before = swarm_of(seed)
    after = trapped(before, seed, "rare_outages")
    begin, end = after.store.brown_outs[-1]
    moving = [each.at for each in after.node.trouble[: len(before.node.trouble)]]
    moving += [grown[0] for grown in (after.topics.requests_grown,) if grown]
    assert not [at for at in moving if begin - AS_IT_BEGINS_MS <= at < end]


def test_given_many_worlds_then_all_that_is_hardly_met_is_hunted_and_nodes_both_fall_and_freeze() -> None:
    calm = [trapped(swarm_of(seed, faults=False), seed, "rare_moments") for seed in range(100)]
    assert {name for each in calm for name in each.store.hunted} == set(HARDLY)
    assert {trouble.kind for each in calm for trouble in each.node.trouble} == {"crash", "pause"}
    assert all(len(each.node.trouble) == FALLS for each in calm)


def test_given_a_world_whose_composites_give_up_soon_then_nothing_else_of_its_schedules_is_another() -> None:
    drawn = draw(source(3, "schedules"), START, 60_000)
    calm = swarm_of(3, faults=False)
    assert hurried(drawn, calm) == drawn
    soon = hurried(drawn, trapped(calm, 3, TRAP))
    assert {each.trigger["timeout"] for each in soon if "timeout" in each.trigger} == {TIMEOUT}
    changed = [(one, other) for one, other in zip(drawn, soon, strict=True) if one != other]
    assert all({**one.trigger, "timeout": TIMEOUT} == other.trigger for one, other in changed)
