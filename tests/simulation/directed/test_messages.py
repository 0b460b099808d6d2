"""Messages whose place was passed before they were there, and destinations that take nothing for good (DESIGN 5, I1, I8)."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.builders import MINUTE, REQUESTS, SECOND, a_cancel, a_send
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_batch, a_produce
from tests.support.harness.two_owners import BenchPair
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Effect, NotProduced, Read, StartReading

DEAD_LETTERS = "tidegate.requests.dlq"


def the_requests_are_read(effect: Effect) -> bool:
    return isinstance(effect, StartReading) and effect.topic == REQUESTS


def guards_are_read(effect: Effect) -> bool:
    return isinstance(effect, Read) and all(key.sk.startswith("G#") for key in effect.keys)


@pytest.mark.parametrize("crash", [False, True], ids=["", "crash before it is sent"])
def test_given_a_create_whose_place_was_passed_before_it_is_read_again_then_it_gets_a_new_one(crash: bool) -> None:
    """A slot is behind all that a checkpoint covers or may come to cover; else a successor would begin behind the row. The
    former owner's own row, at the old place, comes later still and is inert.
    """
    pair = BenchPair(shards=1)
    pair.run(SECOND)
    pair.request(a_send("m-0", after="6s"))
    pair.first.hold_back(a_batch("messages"))
    pair.request(a_send("m-1", after="3s"))
    pair.second.hold_back(the_requests_are_read)
    pair.take_over()
    pair.run(20 * SECOND)
    assert pair.delivered() == ["m-0"]
    progress = pair.second.store.peek(keys.progress(0))
    assert progress is not None
    assert int(str(progress["fired_slot"])) > pair.first.now, "the position lies behind the place of the other one"

    if crash:
        pair.second.hold_back(a_produce("out"))
    pair.second.release()
    pair.run(SECOND)
    if crash:
        assert pair.delivered() == ["m-0"]
        pair.second.crash()
    pair.run(10 * SECOND)
    pair.first.release()
    pair.thaw(pair.first)
    pair.second.crash()
    pair.run(5 * MINUTE)
    assert Counter(pair.delivered()) == {"m-0": 1, "m-1": 1}


def test_given_a_cancel_between_the_guards_that_a_load_has_read_and_its_rows_then_it_is_not_delivered() -> None:
    """A load's answer is filtered by what was cancelled since it was asked: its guards are older than the cancel."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m-1", after="70s"))
    bench.hold_back(guards_are_read, answer_only=True)
    bench.run(31 * SECOND)
    assert bench.holds_something, "the window was extended, and its guards are on their way"
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "cancelled"
    bench.release()
    bench.run(5 * MINUTE)
    assert bench.on("out") == []


def test_given_a_predecessor_whose_clock_was_ahead_then_a_cancel_of_what_it_sent_is_too_late() -> None:
    """Due between the delivery position and the fence, or a second after it (two clocks, 500 ms each): it may be there."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m-1", after="1s"))
    bench.run(SECOND + 100)
    assert len(bench.on("out")) == 1, "sent, and no checkpoint says so"
    bench.now -= 800
    bench.crash()
    bench.settle()
    bench.request(a_cancel(message_id="m-1"))
    bench.run(10 * SECOND)
    assert bench.status_of("c-1") == "too_late"


@pytest.mark.parametrize("crash_every_ms", [None, 7 * SECOND, 61 * SECOND], ids=["", "crashes", "rarer crashes"])
def test_given_a_destination_that_stays_down_then_the_others_go_on_and_each_message_ends_once(
    crash_every_ms: int | None,
) -> None:
    """What is refused moves to a place of its own, where a successor finds it, and no checkpoint waits for it, whenever its owner
    falls.
    """
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    refused = NotProduced("refused", "unknown topic")
    bench.answer_with(a_produce("down"), refused, times=10**6)
    for number in range(3):
        bench.request(a_send(f"down-{number}", topic="down", after=f"{number + 1}s"))
    minutes = 40
    for number in range(minutes):
        bench.request(a_send(f"m-{number}", after=f"{60 * number + 5}s"))
    end = bench.now + minutes * MINUTE
    while bench.now < end:
        bench.run(min(crash_every_ms or MINUTE, end - bench.now))
        if crash_every_ms is not None:
            bench.crash()
    bench.run(MINUTE)

    letters = Counter(str(sent.document["of"]) for sent in bench.on(DEAD_LETTERS))
    assert letters.keys() == {"down-0", "down-1", "down-2"}
    delivered = Counter(str(sent.document["of"]) for sent in bench.on("out"))
    assert delivered.keys() == {f"m-{number}" for number in range(minutes)}
    if crash_every_ms is None:
        assert set(letters.values()) | set(delivered.values()) == {1}
    (progress,) = bench.rows("PROGRESS")
    assert int(str(progress["fired_slot"])) > end - 2 * MINUTE
