"""Benches for stories of hand-overs: what they hold back, and what the next owner sends again."""

from __future__ import annotations

from tests.support.builders import SECOND, a_recurring, an_apply, every
from tests.support.harness.actor_harness import Bench
from tidegate_core.effects import Effect, ReadRange


def a_bench(step: str) -> Bench:
    """A bench with a recurring message that is sent at each step, whatever stands in front of it."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring(trigger=every(step))))
    return bench


def jobs_read(effect: Effect) -> bool:
    """Recovery reads jobs when the delivery plane serves already."""
    return isinstance(effect, ReadRange) and effect.range.low == "J#"


def hand_over_before_recovery(bench: Bench) -> None:
    """The owner that has just begun is asked to hand over before it has recovered; the next owner recovers."""
    bench.hold_back(jobs_read, times=1_000)
    bench.run(10 * SECOND)
    bench.drain()
    bench.run(SECOND)
    next_owner(bench)


def next_owner(bench: Bench) -> None:
    bench.as_usual()
    bench.run(SECOND)
    bench.crash()
    bench.run(10 * SECOND)


def assert_nothing_is_sent_again(bench: Bench) -> None:
    sent = [each.headers["tidegate-id"] for sink in ("out", "elsewhere") for each in bench.on(sink)]
    assert sent, "nothing was sent at all"
    assert len(sent) == len(set(sent)), "I8: messages were sent again after an orderly hand-over"
