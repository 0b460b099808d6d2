"""The simulated coordinator of KIP-848: epochs of members, no barrier, fencing, and commits that keep nobody."""

from __future__ import annotations

import pytest

from tests.simulation.runner.swarm import CONSUMER_SESSION_MS
from tests.simulation.runner.trace import Trace
from tests.simulation.world.kip848_coordinator import REVOKED_WITHIN_MS, ConsumerCoordinator, balanced
from tests.simulation.world.timeline import Timeline
from tidegate_core.decisions.guard import ProbeVerdict

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

    def pass_time(self, milliseconds: int, *members: str) -> None:
        for _ in range(milliseconds // BEAT_MS):
            self.timeline.run(self.timeline.now + BEAT_MS)
            for member in members:
                self.beat(member)


@pytest.fixture
def group() -> Group:
    made = Group()
    made.settle("a")
    return made


def test_given_one_member_then_it_has_all(group: Group) -> None:
    assert group.owned["a"] == {0, 1, 2, 3}


def test_given_another_one_then_it_is_given_only_what_the_first_has_given_up(group: Group) -> None:
    group.beat("b")
    assert group.owned["b"] == NOTHING
    group.beat("a", gives_up=False)
    group.beat("b")
    assert group.owned["b"] == NOTHING, "the first still holds all"
    group.settle("a", "b")
    assert group.owned["a"] | group.owned["b"] == {0, 1, 2, 3}
    assert not group.owned["a"] & group.owned["b"]


def test_given_a_member_that_gives_nothing_up_then_it_is_put_out_in_the_end(group: Group) -> None:
    group.beat("b")
    for _ in range((REVOKED_WITHIN_MS + 2 * CONSUMER_SESSION_MS) // BEAT_MS):
        group.timeline.run(group.timeline.now + BEAT_MS)
        group.beat("a", gives_up=False)
        group.beat("b")
    assert not group.coordinator.has("a")
    assert group.owned["b"] == {0, 1, 2, 3}


def test_given_others_who_come_and_go_then_a_member_that_keeps_its_own_is_not_disturbed(group: Group) -> None:
    group.beat("b")
    group.settle("a", "b")
    kept = group.owned["a"]
    group.coordinator.leave("b")
    assert kept <= group.coordinator.heartbeat("a", group.epochs["a"], kept).topic_partitions  # type: ignore[union-attr]


def test_given_an_epoch_of_another_life_then_the_member_is_fenced(group: Group) -> None:
    assert group.coordinator.heartbeat("a", 99, NOTHING) is None
    assert not group.coordinator.has("a")


def test_given_commits_and_no_heartbeat_then_the_member_is_put_out_all_the_same(group: Group) -> None:
    """The difference to the classic protocol on which the guard rests."""
    for _ in range(CONSUMER_SESSION_MS // BEAT_MS):
        assert group.coordinator.commit("a", group.epochs["a"]) is ProbeVerdict.MEMBER
        group.timeline.run(group.timeline.now + BEAT_MS)
    group.timeline.run(group.timeline.now + 2)
    assert group.coordinator.commit("a", group.epochs["a"]) is ProbeVerdict.EXPELLED
    assert not group.beat("a")


def test_given_a_commit_under_an_older_epoch_then_it_says_nothing(group: Group) -> None:
    assert group.coordinator.commit("a", group.epochs["a"] - 1) is ProbeVerdict.UNSETTLED


def test_given_more_topic_partitions_then_they_are_given_out(group: Group) -> None:
    group.coordinator.grow(6)
    group.settle("a")
    assert group.owned["a"] == {0, 1, 2, 3, 4, 5}


@pytest.mark.parametrize(("members", "topic_partitions"), [(1, 5), (2, 5), (3, 8), (5, 3)])
def test_given_any_group_then_the_target_is_fair_and_keeps_what_it_can(members: int, topic_partitions: int) -> None:
    before = {f"m{number}": NOTHING for number in range(members)}
    first = balanced(before, topic_partitions)
    assert sorted(number for each in first.values() for number in each) == list(range(topic_partitions))
    sizes = [len(each) for each in first.values()]
    assert max(sizes) - min(sizes) <= 1
    assert balanced(first, topic_partitions) == first
    joined = balanced({**first, "new": NOTHING}, topic_partitions)
    assert all(joined[member] <= first[member] for member in first)
