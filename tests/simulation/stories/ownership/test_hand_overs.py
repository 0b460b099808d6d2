"""A shard changes its owner while records of its requests wait in a node's queue (docs/internals/protocol.md)."""

from __future__ import annotations

from tests.support.builders import REQUESTS, SECOND, a_send
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.rows.effects import Effect, ReadRange


def jobs_read(effect: Effect) -> bool:
    return isinstance(effect, ReadRange) and effect.range.low == "J#"


def test_given_records_that_arrive_while_their_reader_recovers_then_all_messages_are_sent() -> None:
    """Two are appended during recovery; the second one comes from a node's queue, of a reading that has ended."""
    bench = ActorHarness(shards=1)
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
