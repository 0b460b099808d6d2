"""A hand-over also waits for the fact of an outage that begins during it, and for rows that are loaded during it
(docs/protocol.md, A message's life).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from tests.simulation.stories.ownership.hand_over_benches import (
    a_bench,
    assert_nothing_is_sent_again,
    jobs_read,
    next_owner,
)
from tests.support.builders import REQUESTS, SECOND, a_send
from tests.support.harness.effect_matchers import a_commit, a_produce
from tidegate_core.effects import Commit, Effect, NotProduced, Read, ReadRange, Write

EVERY_TIME = 10**9


def to_the_store(effect: Effect) -> bool:
    return isinstance(effect, Commit | Write | Read | ReadRange)


def reading_of_rows(*, but_first: int = 0) -> Callable[[Effect], bool]:
    reads = itertools.count(1)
    return lambda effect: isinstance(effect, ReadRange) and effect.range.low == "D#" and next(reads) > but_first


def test_given_a_fire_without_acknowledgement_when_a_silent_store_becomes_an_outage_during_a_hand_over_then_nothing_is_sent_again() -> (
    None
):
    """The fire stands before a message that was sent."""
    bench = a_bench("10s")
    bench.run(15 * SECOND)
    bench.answer_with(a_produce("out"), NotProduced("unavailable", "no leader"), times=EVERY_TIME)
    bench.run(10 * SECOND)
    bench.request(a_send("m-1", after="0s", topic="elsewhere"))
    bench.run(SECOND)
    bench.drain()
    bench.run(SECOND)
    bench.lose(to_the_store, times=EVERY_TIME)
    bench.run(65 * SECOND)
    bench.as_usual()
    bench.run(5 * SECOND)
    next_owner(bench)
    assert_nothing_is_sent_again(bench)


def test_given_a_row_of_the_log_when_it_is_loaded_during_a_hand_over_then_nothing_is_sent_again() -> None:
    """It stands before fires that were sent, and waits for a create that is read again only then."""
    bench = a_bench("2s")
    bench.lose(a_commit("cursor"), times=1_000)
    bench.append(REQUESTS, 0, a_send("m-1", after="3s", topic="elsewhere"))
    bench.run(50)
    bench.as_usual()
    bench.new_actor()
    bench.hold_back(jobs_read, times=1_000)
    bench.hold_back(reading_of_rows(but_first=1))
    bench.run(10 * SECOND)
    bench.drain()
    bench.run(SECOND)
    bench.release_last()
    bench.run(SECOND)
    next_owner(bench)
    assert_nothing_is_sent_again(bench)
