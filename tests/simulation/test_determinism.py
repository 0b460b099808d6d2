"""A seed is a world: the same number gives the same trace, whatever the process's hash seed and however often it is run."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.simulation.runner.runner import run
from tests.simulation.world.world import build

DIGEST = """
import sys
from tests.simulation.runner.runner import run
from tests.simulation.world.world import build
for seed in map(int, sys.argv[1:]):
    print(run(build(seed, hashed=True)).trace.digest())
"""
SEEDS = ("1", "2", "7")


@pytest.fixture(scope="module")
def digests_by_hash_seed() -> dict[str, list[str]]:
    """Digests of the same seeds from processes that order their sets differently."""
    found: dict[str, list[str]] = {}
    for hash_seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        ended = subprocess.run(
            [sys.executable, "-c", DIGEST, *SEEDS], env=environment, capture_output=True, text=True, check=True
        )
        found[hash_seed] = ended.stdout.split()
    return found


def test_given_two_hash_seeds_then_the_traces_are_equal(digests_by_hash_seed: dict[str, list[str]]) -> None:
    assert len(digests_by_hash_seed["0"]) == len(SEEDS)
    assert digests_by_hash_seed["0"] == digests_by_hash_seed["1"]


def test_given_a_process_that_has_simulated_before_then_the_trace_is_equal(
    digests_by_hash_seed: dict[str, list[str]],
) -> None:
    assert [run(build(int(seed), hashed=True)).trace.digest() for seed in SEEDS] == digests_by_hash_seed["0"]


def test_given_two_seeds_then_the_traces_differ(digests_by_hash_seed: dict[str, list[str]]) -> None:
    assert len(set(digests_by_hash_seed["0"])) == len(SEEDS)
