"""The simulated coordinator of the classic protocol."""

from __future__ import annotations

from tidegate_core.decisions.guard import ProbeVerdict
from tidegate_testkit.simulation.group import Coordinator
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
