"""Many seeds: the same outcomes as one by one, in the order of the seeds; no answer in time is an error."""

from __future__ import annotations

import multiprocessing

import pytest

from tests.simulation.__main__ import main
from tests.simulation.mutants import MUTANTS
from tests.simulation.runner import parallel_runner as module
from tests.simulation.runner.outcome import Outcome, simulate
from tests.simulation.runner.parallel_runner import AS_DRAWN, Worlds, outcomes
from tests.simulation.runner.world_drawing import swarm_of, trapped

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


def test_given_traps_then_each_world_has_them_beside_what_it_draws_and_each_once() -> None:
    worlds = Worlds(traps=("sources", "stubborn"))
    for seed in range(60):
        drawn, set_in_it = swarm_of(seed).traps, worlds.swarm(seed).traps
        assert set_in_it == (*drawn, *(name for name in worlds.traps if name not in drawn))
        assert AS_DRAWN.swarm(seed) == swarm_of(seed)


def test_given_traps_then_their_worlds_are_run() -> None:
    swarms = [trapped(swarm_of(seed), seed, "contention") for seed in SEEDS]
    assert all("contention" not in swarm_of(seed).traps for seed in SEEDS)
    wanted = [simulate(seed, swarm=swarm) for seed, swarm in zip(SEEDS, swarms, strict=True)]

    assert list(outcomes(SEEDS, Worlds(traps=("contention",)), workers=1)) == wanted


def test_given_worlds_that_no_seed_draws_then_the_story_of_one_says_how_to_have_it_again() -> None:
    name = next(iter(MUTANTS))
    outcome = Outcome(7, nodes=3)
    assert "`python -m tests.simulation --seed 7 --trace`" in outcome.story(*AS_DRAWN.arguments)
    assert "simulation --trap sources --trap ticks --seed 7" in outcome.story(
        *Worlds(traps=("sources", "ticks")).arguments
    )
    assert f"simulation --mutant '{name}' --seed 7" in outcome.story(*Worlds(name).arguments)


def test_given_the_command_line_and_a_trap_then_the_world_has_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "11", "--trap", "contention"]) == 0
    assert "'contention'" in capsys.readouterr().out

    with pytest.raises(SystemExit):
        main(["--seed", "11", "--trap", "contention", "--mutant", next(iter(MUTANTS))])
    assert "not allowed with argument" in capsys.readouterr().err
