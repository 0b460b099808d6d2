"""A seed is a world: the same number gives the same trace, whatever the process's hash seed and however often it is run."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from tests.simulation.runner.runner import run
from tests.simulation.runner.world_drawing import swarm_of
from tests.simulation.world.world import World, build
from tests.support.tier import ALL, at_night

SEEDS = ("1", "2", "7")[: at_night(3, else_=1)]
SHORT_MS = 15_000
"""How long worlds of the quick tier are busy: an order that follows the hash seed shows within seconds of their time."""
HASH_SEEDS = ("0", "1")[: at_night(2, else_=1)]
"""Of other processes; this one has a hash seed of its own."""
SCRIPT = """
import sys
from tests.simulation.test_determinism import digest
print(*map(digest, sys.argv[1:]))
"""


def a_world(seed: int) -> World:
    if ALL:
        return build(seed, hashed=True)
    return build(seed, hashed=True, swarm=replace(swarm_of(seed), busy_ms=SHORT_MS))


def digest(seed: str) -> str:
    return run(a_world(int(seed))).trace.digest()


@pytest.fixture(scope="module")
def digests() -> list[str]:
    return [digest(seed) for seed in SEEDS]


@pytest.mark.parametrize("hash_seed", HASH_SEEDS)
def test_given_another_hash_seed_then_the_traces_are_equal(hash_seed: str, digests: list[str]) -> None:
    """Another process orders its sets differently."""
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", SCRIPT, *SEEDS]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout.split() == digests


def test_given_a_process_that_has_simulated_before_then_the_trace_is_equal(digests: list[str]) -> None:
    assert digest(SEEDS[0]) == digests[0]


def test_given_another_seed_then_the_trace_is_another_one(digests: list[str]) -> None:
    others = [*digests, digest("3")]
    assert len(set(others)) == len(others)
