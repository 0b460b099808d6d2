"""The simulated coordinator of the classic protocol."""

from __future__ import annotations

from tidegate_core.decisions.guard import ProbeVerdict
from tidegate_testkit.simulation.group import REBALANCE_MS_MAX, Coordinator
from tidegate_testkit.simulation.swarm import SESSION_MS
from tidegate_testkit.simulation.timeline import Timeline
from tidegate_testkit.simulation.trace import Trace


def test_given_a_member_that_was_put_out_then_its_join_under_the_old_id_is_refused() -> None:
    """Whatever it claims to own may have another owner by then."""
    timeline = Timeline(0)
    coordinator = Coordinator(timeline, Trace(timeline), 2, lambda: False)
    given: list[frozenset[int]] = []

    def assigned(generation: int, topic_partitions: frozenset[int]) -> None:
        given.append(topic_partitions)

    assert coordinator.join("a.1", frozenset(), assigned)
    timeline.run(timeline.now + 3 * SESSION_MS)
    assert coordinator.heartbeat("a.1") is ProbeVerdict.EXPELLED
    assert not coordinator.join("a.1", frozenset({0, 1}), assigned)
    assert coordinator.join("a.2", frozenset(), assigned)
    timeline.run(timeline.now + 1_000)
    assert given == [{0, 1}, {0, 1}]


def test_given_a_coordinator_that_was_away_when_a_round_would_have_ended_then_who_did_not_join_has_its_time_anew() -> (
    None
):
    """Seed 20000002: what it had just said to a member held for a session, and 10 ms later another one had its topic partitions."""
    timeline = Timeline(0)
    away = [False]
    coordinator = Coordinator(timeline, Trace(timeline), 2, lambda: away[0])
    assert coordinator.join("a.1", frozenset(), lambda *_: None)
    timeline.run(1_000)
    assert coordinator.join("b.1", frozenset(), lambda *_: None)
    away[0] = True
    timeline.run(1_000 + REBALANCE_MS_MAX + 1)
    away[0] = False
    coordinator.forgive()
    timeline.run(timeline.now + REBALANCE_MS_MAX - 1)
    coordinator.heartbeat("a.1")
    coordinator.heartbeat("b.1")
    assert coordinator.has("a.1")
    timeline.run(timeline.now + 2)
    assert not coordinator.has("a.1")
    assert set(coordinator.holders.values()) == {"b.1"}
