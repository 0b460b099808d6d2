"""A source may be refused while its topic does not answer, and for no other reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.checks import violations
from tests.simulation.checks.case import Case
from tests.simulation.checks.sources import check_sources
from tests.simulation.faults.broker_faults import LAST_TOPIC, calm_broker
from tests.simulation.faults.random_draws import Period
from tests.simulation.runner.runner import run
from tests.simulation.runner.world_drawing import swarm_of
from tests.simulation.world.world import World, build

SEED = 0


@pytest.fixture(scope="module")
def world() -> World:
    """A calm world but for the source's topic, which nobody leads for its first minute."""
    calm = swarm_of(SEED, faults=False)
    broker = replace(calm.broker, leaderless=((LAST_TOPIC, (0, 60_000)),))
    return run(build(SEED, swarm=replace(calm, broker=broker, busy_ms=90_000, traps=("sources",))))


def test_given_a_topic_that_does_not_answer_then_its_source_is_refused_and_applied_until_it_is_there(
    world: World,
) -> None:
    """Seeds 870017, 832262, 833310: the judge wanted the source to be there, and its topic read."""
    assert violations(world) == []
    (user,) = world.sources
    statuses = [step.asked.status for step in user.steps if step.opens]
    assert statuses[0] == "rejected"
    assert statuses[-1] == "accepted"


@pytest.mark.parametrize("leaderless", [(0, 2_000)], ids=["for too short"])
def test_given_a_topic_that_answered_then_a_refusal_is_wrong(
    world: World, monkeypatch: pytest.MonkeyPatch, leaderless: Period
) -> None:
    others = replace(calm_broker(), leaderless=((LAST_TOPIC, leaderless),))
    monkeypatch.setattr(world.cluster.broker, "_faults", others)
    assert any("was answered rejected" in problem for problem in check_sources(Case(world)))
