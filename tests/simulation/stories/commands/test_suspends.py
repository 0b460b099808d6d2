"""Stories of a suspension that ends by itself while its owner is away (SEMANTICS 10)."""

from __future__ import annotations

from tests.support.builders import SECOND, a_recurring, a_request, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.language.values.instants import format_instant, parse_instant

PERIOD = 10 * SECOND


def test_given_the_end_of_a_suspension_when_its_messages_are_late_then_each_of_them_is_sent() -> None:
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring(trigger=every("10s"))))
    end = (bench.now // PERIOD + 2) * PERIOD
    bench.request(a_request("suspend", "ping", until=format_instant(end)))
    bench.run(end - bench.now - SECOND)
    bench.away(45 * SECOND)
    bench.run(20 * SECOND)
    sent = {parse_instant(each.headers["tidegate-nominal"]) for each in bench.on("out")}
    missing = sorted(set(range(end, end + 4 * PERIOD, PERIOD)) - sent)
    assert not missing, "I1: a message behind the end of a suspension was never sent"
