"""A hand-over waits for rows of a predecessor, and for fires of held schedules, that stand before what was sent
(docs/protocol.md, A message's life).

The predecessor wrote a message's rows and crashed before its create was durable, so the rows wait for the create, in the
inbox or in the log. Its successor sends what comes after them, and is asked to hand over before it has recovered.
"""

from __future__ import annotations

from tests.simulation.stories.ownership.hand_over_benches import (
    jobs_read,
)
from tests.support.builders import REQUESTS, SECOND, a_recurring, a_send, an_apply, every
from tests.support.harness.actor_harness import Bench
from tests.support.harness.effect_matchers import a_commit, a_produce
from tidegate_core.effects import Effect, NotProduced, Read


def payloads_read(effect: Effect) -> bool:
    return isinstance(effect, Read) and effect.keys[0].sk.startswith("M#")


def a_definition_is_read(effect: Effect) -> bool:
    """The last read of a request that is about to hold its schedule."""
    return isinstance(effect, Read) and effect.keys[0].sk.startswith("DEF#")


def test_given_records_that_arrive_while_their_reader_recovers_then_all_messages_are_sent() -> None:
    """Two are appended during recovery; the second one comes from a node's queue, of a reading that has ended."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.hold_back(jobs_read, times=1_000)
    bench.crash()
    bench.run(SECOND)
    for name in ("m-1", "m-2"):
        bench.request(a_send(name, after="5s"))
    bench.give(bench.arrived(REQUESTS, 0, 1))
    bench.as_usual()
    bench.release()
    bench.run(10 * SECOND)
    assert len(bench.on("out")) == 2, "I1: a request that was appended while its reader recovered was never read"


def test_given_a_record_that_arrives_after_a_drain_then_all_messages_are_sent() -> None:
    """The second one waits for a move that is under way, and is forgotten; the third comes from a node's queue."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.hold_back(a_commit("cursor"))
    for name in ("m-1", "m-2"):
        bench.request(a_send(name, after="5s"))
    bench.drain()
    bench.request(a_send("m-3", after="5s"))
    bench.give(bench.arrived(REQUESTS, 0, 2))
    bench.as_usual()
    bench.release()
    bench.run(5 * SECOND)
    bench.new_actor()
    bench.run(20 * SECOND)
    assert len(bench.on("out")) == 3, "I1: a request that a drain forgot was never read"


def with_a_fire_that_gets_no_acknowledgement() -> Bench:
    """The fire stands between two messages that go to another topic."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    ahead = 20 - bench.now // SECOND % 20
    bench.request(an_apply(a_recurring(trigger=every("20s"))))
    bench.request(a_send("m-1", after=f"{ahead - 1}s", topic="elsewhere"))
    bench.request(a_send("m-2", after=f"{ahead + 1}s", topic="elsewhere"))
    bench.answer_with(a_produce("out"), NotProduced("unavailable", "transport"), times=1_000)
    return bench
