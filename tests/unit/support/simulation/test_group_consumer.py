"""The simulated coordinator of KIP-848: epochs of members, no barrier, fencing, and commits that keep nobody."""

from __future__ import annotations

import pytest

from tests.simulation.runner.swarm import CONSUMER_SESSION_MS
from tests.simulation.runner.trace import Trace
from tests.simulation.world.kip848_coordinator import ConsumerCoordinator
from tests.simulation.world.timeline import Timeline
from tidegate_core.engine.membership_lease import ProbeVerdict

NOTHING: frozenset[int] = frozenset()
BEAT_MS = 1_000


class Group:
    """Members that answer at once, unless a test lets them be silent."""

    def __init__(self, topic_partitions: int = 4) -> None:
        self.timeline = Timeline(0)
        self.coordinator = ConsumerCoordinator(self.timeline, Trace(self.timeline), topic_partitions, lambda: False)
        self.owned: dict[str, frozenset[int]] = {}
        self.epochs: dict[str, int] = {}

    def beat(self, member: str, *, gives_up: bool = True) -> bool:
        """One heartbeat; False when the member is not known any more."""
        told = self.coordinator.heartbeat(member, self.epochs.get(member, 0), self.owned.get(member, NOTHING))
        if told is None:
            return False
        self.epochs[member] = told.epoch
        held = self.owned.get(member, NOTHING)
        self.owned[member] = told.topic_partitions if gives_up else held | told.topic_partitions
        return True

    def settle(self, *members: str) -> None:
        for _ in range(4):
            for member in members:
                self.beat(member)


@pytest.fixture
def group() -> Group:
    made = Group()
    made.settle("a")
    return made


def test_given_another_one_then_it_is_given_only_what_the_first_has_given_up(group: Group) -> None:
    group.beat("b")
    assert group.owned["b"] == NOTHING
    group.beat("a", gives_up=False)
    group.beat("b")
    assert group.owned["b"] == NOTHING, "the first still holds all"
    group.settle("a", "b")
    assert group.owned["a"] | group.owned["b"] == {0, 1, 2, 3}
    assert not group.owned["a"] & group.owned["b"]


def test_given_commits_and_no_heartbeat_then_the_member_is_put_out_all_the_same(group: Group) -> None:
    """The difference to the classic protocol on which the guard rests."""
    for _ in range(CONSUMER_SESSION_MS // BEAT_MS):
        assert group.coordinator.commit("a", group.epochs["a"]) is ProbeVerdict.MEMBER
        group.timeline.run(group.timeline.now + BEAT_MS)
    group.timeline.run(group.timeline.now + 2)
    assert group.coordinator.commit("a", group.epochs["a"]) is ProbeVerdict.EXPELLED
    assert not group.beat("a")
