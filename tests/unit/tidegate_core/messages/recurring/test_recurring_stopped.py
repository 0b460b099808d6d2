"""What waits of a recurring message when its schedule is stopped or moves: it is given up with all that it held."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, SECOND, a_recurring, a_request, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.recurring_bench import nominals, tally
from tidegate_core.messages.wire import payload_budget


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness(shards=1)
    made.run(SECOND)
    return made


def run_until_right_before_a_fire(bench: ActorHarness) -> None:
    bench.run(10 * SECOND - bench.now % (10 * SECOND) + 8 * SECOND)


@pytest.mark.parametrize("kind", ["suspend", "delete"])
def test_given_a_stop_right_before_a_fire_whose_payload_is_loaded_then_its_bytes_are_given_back(
    bench: ActorHarness, kind: str
) -> None:
    """Found in review."""
    bench.request(an_apply(a_recurring(trigger=every("10s"))))
    bench.run(30 * SECOND)
    run_until_right_before_a_fire(bench)
    bench.request(a_request(kind, "ping"))
    bench.run(MINUTE)
    assert bench.actor.planes[0].payloads.bytes_held == 0


def test_given_many_stops_then_messages_go_out_all_the_same(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found in review: each left its payload behind, until there was no room for any."""
    monkeypatch.setattr(payload_budget, "PAYLOAD_BYTES_MAX", 64)
    monkeypatch.setattr(payload_budget, "PAYLOADS_AHEAD_BYTES_MAX", 64)
    for number in range(20):
        bench.request(an_apply(a_recurring(trigger=every("10s")), f"a-{number}"))
        bench.run(20 * SECOND)
        run_until_right_before_a_fire(bench)
        bench.request(a_request("delete", "ping", f"d-{number}"))
        bench.run(10 * SECOND)
    sent = len(bench.on("out"))
    bench.request(an_apply(a_recurring(trigger=every("10s")), "last"))
    bench.run(MINUTE)
    assert len(bench.on("out")) > sent


def test_given_an_update_before_anything_was_due_then_the_next_instant_is_counted_once(bench: ActorHarness) -> None:
    """Found in review: the instant of the former version, which had nothing left, stayed where it waited and counted as well."""
    bench.request(an_apply(a_recurring(trigger=every("10s"), payload="old"), "a-1"))
    bench.run(2 * SECOND)
    bench.request(an_apply(a_recurring(trigger=every("10s"), payload="new"), "a-2"))
    bench.run(MINUTE)
    bench.drain()
    assert tally(bench, "delivered") == len(nominals(bench)) == len(set(nominals(bench)))
    assert tally(bench, "cancelled") == 0
