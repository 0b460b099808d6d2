"""What the simulation's tests share: how seeds are judged."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.simulation.judging import KINDS_MIN, NODES_MIN, Judge
from tests.simulation.runner.outcome import Outcome, simulate


@pytest.fixture(scope="session")
def judge() -> Judge:
    """Runs seeds and fails with all that a reader needs to replay the first that is wrong."""

    def judged(seeds: Iterable[int]) -> list[Outcome]:
        outcomes = [simulate(seed) for seed in seeds]
        for outcome in outcomes:
            assert not outcome.violations, outcome.story()
            assert outcome.nodes >= NODES_MIN, f"seed {outcome.seed}: {outcome.nodes} nodes"
            assert len(outcome.kinds) >= KINDS_MIN, f"seed {outcome.seed}: {outcome.kinds}"
        return outcomes

    return judged
