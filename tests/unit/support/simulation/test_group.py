"""The simulated coordinator of the classic protocol."""

from __future__ import annotations

from tests.simulation.runner.swarm import CONSUMER_SESSION_MS, DRAIN_MS_MAX, HALF_SESSION_MS, HEARTBEAT_MS, SESSION_MS
from tests.simulation.runner.trace import Trace
from tests.simulation.world.classic_coordinator import REBALANCE_MS_MAX, Coordinator
from tests.simulation.world.kip848_coordinator import REVOKED_WITHIN_MS
from tests.simulation.world.timeline import Timeline
from tidegate_core.engine.membership_lease import ProbeVerdict
from tidegate_kafka.clients.settings import KafkaSettings


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


def test_given_the_simulated_coordinators_then_they_wait_for_a_member_as_long_as_the_nodes_settings_ask_for() -> None:
    """Seed 37024173: it waited for 8 s of a session of 6 s. A member that had committed was put out 0.1 s later, and its guard held."""
    settings = KafkaSettings(
        allow_plaintext=True,
        session_ms=SESSION_MS,
        heartbeat_ms=HEARTBEAT_MS,
        drain_ms_max=DRAIN_MS_MAX,
        poll_gap_ms_max=REBALANCE_MS_MAX,
    )
    assert settings.classic_poll_gap_ms_min == REBALANCE_MS_MAX
    assert settings.half_session_ms == HALF_SESSION_MS
    wide = settings.model_copy(
        update={"group_protocol": "consumer", "session_ms": CONSUMER_SESSION_MS, "poll_gap_ms_max": REVOKED_WITHIN_MS}
    )
    assert wide.half_session_ms == HALF_SESSION_MS
