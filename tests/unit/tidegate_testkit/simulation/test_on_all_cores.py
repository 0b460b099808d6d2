"""Many seeds: the same outcomes as one by one, in the order of the seeds; no answer in time is an error."""

from __future__ import annotations

import multiprocessing

import pytest

from tidegate_testkit.simulation import on_all_cores as module
from tidegate_testkit.simulation.on_all_cores import outcomes
from tidegate_testkit.simulation.outcome import simulate

SEEDS = range(11, 14)


def test_given_more_seeds_than_a_process_takes_then_their_outcomes_come_in_order_as_one_by_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SEEDS_PER_PROCESS", 1)

    assert list(outcomes(SEEDS, workers=2)) == [simulate(seed) for seed in SEEDS]


def test_given_no_answer_in_time_then_it_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE_S", 0)

    with pytest.raises(multiprocessing.TimeoutError):
        list(outcomes(SEEDS, workers=1))
