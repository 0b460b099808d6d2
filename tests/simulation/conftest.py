"""What the simulation's tests share: how a seed is judged."""

from __future__ import annotations

import pytest

from tidegate_testkit.simulation.outcome import Outcome, simulate

FIRES_MIN = 20
EVENTS_MIN = 20
NODES_MIN = 3
TAKE_OVERS_MIN = 2
KINDS_MIN = 2


class Judge:
    """Runs seeds and fails with all that a reader needs to replay the first that is wrong."""

    def seed(self, number: int) -> Outcome:
        """Asserts that the seed's world was rough enough to mean something, and that nothing was wrong in it."""
        outcome = simulate(number)
        assert not outcome.violations, outcome.story()
        assert outcome.nodes >= NODES_MIN
        assert outcome.fires >= FIRES_MIN, f"seed {number}: {outcome.fires} fires"
        assert outcome.events >= EVENTS_MIN, f"seed {number}: {outcome.events} events"
        assert outcome.take_overs >= TAKE_OVERS_MIN, f"seed {number}: {outcome.take_overs} take-overs"
        assert len(outcome.kinds) >= KINDS_MIN, f"seed {number}: {outcome.kinds}"
        return outcome


@pytest.fixture(scope="session")
def judge() -> Judge:
    return Judge()
