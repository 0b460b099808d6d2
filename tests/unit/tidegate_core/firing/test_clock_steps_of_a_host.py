"""The clock of a host steps where broker and node share it: the node ends, and its successor goes by the stepped clock (docs/outages.md)."""

from __future__ import annotations

from itertools import pairwise

from tests.support.builders import HOUR, MINUTE, SECOND, a_send, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.shard_bench import a_bench
from tidegate_core.language.values.instants import format_instant


def stepped(by: int) -> ActorHarness:
    """A schedule of every ten minutes, and two messages that were asked for after the step."""
    bench = a_bench()
    bench.request(an_apply(a_spec(trigger=every("10m"))))
    bench.run(30 * MINUTE)
    bench.request(a_send("before", after="1s"))
    bench.run(MINUTE)
    bench.now += by
    bench.new_actor("node-2")
    bench.run(MINUTE)
    bench.request(a_send("after", after="10s"))
    bench.request(a_send("at", deliver_at=format_instant(bench.now + 20 * SECOND)))
    return bench


def sent(bench: ActorHarness) -> list[tuple[bytes, int]]:
    return [(each.value, each.at) for each in bench.sent if each.topic == "out"][1:]


def test_given_a_clock_that_was_set_back_then_messages_and_fires_wait_until_it_has_come_to_where_it_was() -> None:
    bench = stepped(-HOUR)
    before = bench.now - MINUTE + HOUR
    fired = len(bench.ledger())
    bench.run(HOUR - 2 * MINUTE)
    assert sent(bench) == []
    assert len(bench.ledger()) == fired
    bench.run(15 * MINUTE)
    assert [value for value, _ in sent(bench)] == [b'{"of":"at"}', b'{"of":"after"}']
    assert all(before - 2 * MINUTE <= at <= before + 11 * SECOND for _, at in sent(bench))
    instants = [nominal for _, _, nominal, _ in bench.ledger()]
    assert len(instants) == len(set(instants)) > fired


def test_given_a_clock_that_was_set_ahead_then_what_lies_in_the_step_is_made_up_for_as_after_an_outage() -> None:
    bench = stepped(HOUR)
    asked_at = bench.now
    bench.run(HOUR)
    assert [(value, at - asked_at) for value, at in sent(bench)] == [
        (b'{"of":"after"}', 10 * SECOND),
        (b'{"of":"at"}', 20 * SECOND),
    ]
    instants = sorted(nominal for _, _, nominal, _ in bench.ledger())
    assert {later - earlier for earlier, later in pairwise(instants)} == {10 * MINUTE}
