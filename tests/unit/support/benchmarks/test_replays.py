"""What is recorded of runs, events and creates can be sent to a store, and says the same again."""

from collections.abc import Callable

import pytest

from tests.benchmarks.rig.call_recordings import (
    Recording,
    recorded_runs,
)
from tests.benchmarks.rig.call_replays import replay_s
from tidegate_core.rows.store_operations import Key, Transaction
from tidegate_memory.store import MemoryStore

RUNS, SHARDS = 5, 3


@pytest.fixture(scope="module")
def recording() -> Recording:
    return recorded_runs(RUNS, SHARDS)


def keys(recording: Recording) -> set[Key]:
    return {action.key for write in recording.writes for action in write.actions}


def test_given_a_store_that_refuses_one_then_it_is_no_figure(recording: Recording) -> None:
    """Without the rows of before, conditions do not hold."""
    first = next(write for write in recording.writes if isinstance(write, Transaction))
    with pytest.raises(AssertionError, match="Cancelled"):
        replay_s(MemoryStore(), Recording((), [[first]]))


class Counting:
    """A broker's part that keeps what it was given; with `fails` its part comes to nothing."""

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.log: list[str] = []

    def prepared(self, recording: Recording) -> list[Callable[[], None]]:
        self.log.append(f"{len(recording.read)} read, {len(recording.produced)} produced")
        return [self._part]

    def close(self) -> None:
        self.log.append("closed")

    def _part(self) -> None:
        self.log.append("part")
        assert not self.fails, "no more records"


def test_given_a_broker_s_part_that_comes_to_nothing_then_it_is_no_figure(recording: Recording) -> None:
    logs = Counting(fails=True)
    with pytest.raises(AssertionError, match="no more records"):
        replay_s(MemoryStore(), recording, logs)
    assert logs.log[-1] == "closed"
