"""What the simulation's tests share: how a seed is judged."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tidegate_testkit.simulation.outcome import Outcome, simulate

FIRES_MIN = 20
BODIES_MIN = 8
EVENTS_MIN = 20
NODES_MIN = 3
TAKE_OVERS_MIN = 2
KINDS_MIN = 2


@pytest.fixture(scope="session")
def judge() -> Callable[[int], Outcome]:
    """Runs a seed and fails with all that a reader needs to replay it."""

    def judged(seed: int) -> Outcome:
        outcome = simulate(seed)
        assert not outcome.violations, outcome.story()
        # A world in which little happened, or nothing went wrong, proves nothing.
        assert outcome.nodes >= NODES_MIN
        assert outcome.fires >= FIRES_MIN, f"seed {seed}: {outcome.fires} fires"
        assert outcome.bodies >= BODIES_MIN, f"seed {seed}: {outcome.bodies} programs ran"
        assert outcome.events >= EVENTS_MIN, f"seed {seed}: {outcome.events} events"
        assert outcome.take_overs >= TAKE_OVERS_MIN, (
            f"seed {seed}: {outcome.take_overs} lost nodes were followed by another"
        )
        assert len(outcome.kinds) >= KINDS_MIN, f"seed {seed}: {outcome.kinds}"
        return outcome

    return judged
