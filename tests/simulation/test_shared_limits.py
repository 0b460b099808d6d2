"""Queues before shared limits in worlds that are calm otherwise: how soon a free slot and the first of the queue meet.

Hostile worlds have them too (`queues` in `faults/scenarios.py`), and a monitor of every write judges permits and order there.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from unittest import mock

import pytest

from tests.simulation.faults.scenarios import CROWD
from tests.simulation.runner.outcome import judged
from tests.simulation.runner.runner import run
from tests.simulation.runner.swarm import Swarm
from tests.simulation.runner.world_drawing import swarm_of
from tests.simulation.users.schedule_definitions import NAMESPACE, Definition
from tests.simulation.world import world as world_module
from tests.simulation.world.world import World, build
from tidegate_core.admission import admit
from tidegate_core.admission.limit_coordinator import SERVE_MS
from tidegate_core.rows import keys

SEEDS = (0, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (2, 3)))
"""In world 1 a wide suspend leaves hardly anything to wait for."""
LEFT_FIRST = 3
LEFT_IN = (LEFT_FIRST, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (2, 6, 8)))
"""Worlds in which the queue is left before its home, which hears of nothing, finds it; and then the limit has room."""
OFFERED_WITHIN_MS = SERVE_MS + 500
"""A look at the queue, and the shard writer's turn, behind whatever the shard does at the moment."""
OFFERS_MIN = 3
"""In a world where fewer were made, nothing is shown."""
SWEEP_MS = 12_000
"""What a lost poke of somebody who joins costs at most."""


def a_crowd(seed: int, *, lost_pokes: float = 0.0) -> Swarm:
    swarm = swarm_of(seed, faults=False)
    launcher = replace(swarm.launcher, slow_start_ms=2_000)
    return replace(swarm, crowd=CROWD, launcher=launcher, broker=replace(swarm.broker, lost_pokes=lost_pokes))


def the_world(seed: int, swarm: Swarm) -> World:
    world = run(build(seed, swarm=swarm))
    outcome = judged(world)
    assert not outcome.violations, outcome.story()
    return world


def all_in_one_group(chance: Random, drawn: list[Definition]) -> list[Definition]:
    return [each if each.program is None else replace(each, groups=(("all", 2),)) for each in drawn]


def one_who_waits_and_leaves_soon(chance: Random, drawn: list[Definition]) -> list[Definition]:
    """All others that share the program abort: nobody else joins its queue, and tells its home of it."""
    now_and_then = {"type": "every", "period": "12s"}
    return [
        replace(each, trigger=now_and_then, pending_timeout="2s")
        if each.name == "crowd-0"
        else replace(each, aborts=each.program is not None)
        for each in drawn
    ]


def idle_longest(world: World) -> int:
    return max(watched.idle_longest for watched in world.limits.limits.values())


def offers(world: World) -> int:
    return sum(each.offers for each in world.limits.begun)


@pytest.mark.parametrize("seed", SEEDS)
def test_given_a_crowd_then_a_free_slot_is_offered_to_the_first_of_the_queue_within_a_second(seed: int) -> None:
    world = the_world(seed, a_crowd(seed))
    assert offers(world) >= OFFERS_MIN
    assert idle_longest(world) <= OFFERED_WITHIN_MS


@pytest.mark.parametrize("seed", SEEDS)
def test_given_that_all_pokes_are_lost_then_the_first_of_the_queue_waits_for_a_sweep_at_most(seed: int) -> None:
    world = the_world(seed, a_crowd(seed, lost_pokes=1.0))
    assert offers(world) >= OFFERS_MIN
    assert idle_longest(world) <= SWEEP_MS + OFFERED_WITHIN_MS


@pytest.mark.parametrize("seed", SEEDS)
def test_given_schedules_that_need_two_shared_limits_then_none_waits_for_ever(seed: int) -> None:
    """All that share a program are in one group, too."""
    with mock.patch.object(world_module, "with_shared_limits", all_in_one_group):
        world = the_world(seed, a_crowd(seed))
    assert len(world.limits.limits) == 2
    assert offers(world) >= OFFERS_MIN


@pytest.mark.parametrize("seed", LEFT_IN)
def test_given_a_queue_that_is_left_before_its_home_hears_of_it_then_no_job_ends_because_of_it(seed: int) -> None:
    """`the_world` demands that no check finds anything; the test behind this one shows that one would."""
    with mock.patch.object(world_module, "with_shared_limits", one_who_waits_and_leaves_soon):
        the_world(seed, a_crowd(seed, lost_pokes=1.0))


def test_given_jobs_that_end_because_of_a_queue_that_was_left_then_the_audit_says_so() -> None:
    with (
        mock.patch.object(world_module, "with_shared_limits", one_who_waits_and_leaves_soon),
        mock.patch.object(admit, "would_be_granted", return_value=False),
    ):
        outcome = judged(run(build(LEFT_FIRST, swarm=a_crowd(LEFT_FIRST, lost_pokes=1.0))))
    assert any("because others wait, and none has since" in each for each in outcome.violations)


def some_need_a_busy_limit_as_well(chance: Random, drawn: list[Definition]) -> list[Definition]:
    """Of those that share the program each second one needs the only slot of another group too; the others abort."""
    wide, busy = sorted(("x", "y"), key=lambda group: keys.shared_limit(NAMESPACE, "group", group))
    return [
        each
        if each.program is None
        else replace(
            each,
            program=(each.program[0], 50),
            groups=((wide, 3), (busy, 1))[: 2 - number % 2],
            aborts=number % 2 == 1,
        )
        for number, each in enumerate(drawn)
    ]


def test_given_those_who_wait_for_another_limit_as_well_then_no_job_ends_where_they_leave_it_a_slot() -> None:
    """Without the look at whose the slots are it would, and the check says so."""
    seed = 5  # One in which jobs leave it in both.
    with mock.patch.object(world_module, "with_shared_limits", some_need_a_busy_limit_as_well):
        assert the_world(seed, a_crowd(seed)).limits.refused
        with mock.patch.object(admit, "would_be_granted", return_value=False):
            outcome = judged(run(build(seed, swarm=a_crowd(seed))))
    assert any("because others wait, and they leave it a slot" in each for each in outcome.violations)
