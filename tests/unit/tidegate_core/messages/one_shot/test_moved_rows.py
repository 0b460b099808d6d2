"""A row that moved to a later slot still says whether its message may have been sent."""

from __future__ import annotations

from tests.support.builders import MINUTE, SECOND, a_cancel, a_send
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.rows.effects import Effect, NotProduced, Produce


def a_delivery(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic == "out"


def test_given_a_delivery_without_an_answer_and_a_refused_one_then_a_successor_answers_its_cancel_too_late() -> None:
    """Found by the simulation (seed 20502306): the successor took the message for unsent, and answered `cancelled`."""
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(a_send("m-1", after="1s"))
    bench.lose_answer_of(a_delivery, told=NotProduced("unavailable", "scripted"))
    bench.answer_with(a_delivery, NotProduced("refused", "not allowed"))
    bench.run(3 * SECOND)
    bench.crash()
    bench.run(SECOND)
    bench.request(a_cancel(message_id="m-1"))
    bench.run(MINUTE)
    assert bench.on("out"), "the first delivery arrived"
    assert bench.status_of("c-1") == "too_late"
