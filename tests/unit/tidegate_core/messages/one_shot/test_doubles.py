"""A second timer row of a message, which a former owner put at another slot (I8, seed 739355)."""

from __future__ import annotations

from typing import Any

from tests.support.builders import MINUTE, SECOND, a_cancel, a_send
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.message import MessageTimer
from tidegate_core.rows.store_operations import Put

BEHIND_MS = 20 * SECOND


def a_bench_with_both_rows() -> ActorHarness:
    """An owner that has loaded both rows: of 30 s from now, and of 50 s."""
    made = ActorHarness(shards=1)
    made.run(SECOND)
    made.request(a_send("m-1", after="30s"))
    made.run(SECOND)
    (row,) = made.rows("D#")
    timer = from_item(MessageTimer, row)
    changed: dict[str, Any] = {**to_item(timer, timer.key(0)), "slot": timer.slot + BEHIND_MS}
    key = from_item(MessageTimer, changed).key(0)
    made.store.write((Put(key, {**changed, "pk": key.pk, "sk": key.sk}),))
    made.crash()
    made.run(SECOND)
    assert len(made.rows("D#")) == 2
    return made


def test_given_two_rows_then_the_position_passes_both_and_nobody_sends_the_second() -> None:
    bench = a_bench_with_both_rows()
    bench.run(MINUTE)
    bench.drain()
    bench.run(SECOND)
    bench.crash()
    bench.run(MINUTE)
    assert len(bench.on("out")) == 1


def test_given_two_rows_of_what_was_not_sent_then_a_cancel_takes_it_back() -> None:
    bench = a_bench_with_both_rows()
    bench.request(a_cancel("c-1", message_id="m-1"))
    bench.run(SECOND)
    assert bench.status_of("c-1") == "cancelled"
    bench.run(MINUTE)
    assert bench.on("out") == []


def test_given_a_second_row_that_is_still_there_when_the_first_one_was_passed_then_a_cancel_is_too_late() -> None:
    """It is closed, and yet it does not say that the message was taken back."""
    bench = a_bench_with_both_rows()
    bench.run(40 * SECOND)
    assert len(bench.on("out")) == 1
    bench.request(a_cancel("c-1", message_id="m-1"))
    bench.run(SECOND)
    assert bench.status_of("c-1") == "too_late"
