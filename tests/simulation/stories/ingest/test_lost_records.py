"""A request has two records: one goes with its topic, the other one outlives it in the inbox (docs/internals/protocol.md)."""

from __future__ import annotations

import json

import pytest

from tests.simulation.stories.stage import comes_through_the_inbox
from tests.support.builders import MINUTE, SECOND, a_send
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_batch, a_commit
from tests.support.harness.recreated_topic import recreate_requests_topic
from tidegate_core.engine.actor_inputs import Woken
from tidegate_core.language.values.derived_ids import message_shard

SHARDS = 4
NAME = "asked again"
REQUEST = a_send(NAME, key="k", after="15s")
SHARD = message_shard("orders", "k", NAME, SHARDS)


def times_sent(bench: ActorHarness) -> int:
    return [json.loads(each)["of"] for each in bench.delivered()].count(NAME)


@pytest.mark.parametrize("copies", [1, 2])
def test_given_repeats_in_the_inbox_when_the_first_record_goes_with_its_topic_then_the_message_is_sent_once(
    copies: int,
) -> None:
    """The first of the repeats becomes the request. The position of the first record has not moved when its topic goes."""
    bench = ActorHarness(shards=SHARDS)
    bench.run(SECOND)
    bench.hold_back(a_commit("cursor"))
    bench.request(REQUEST)
    for number in range(copies):
        comes_through_the_inbox(bench, REQUEST, bench.now + 1, SHARD, number)
    bench.give(Woken(SHARD))
    bench.run(SECOND)
    recreate_requests_topic(bench, 2)
    bench.run(MINUTE)
    assert times_sent(bench) >= 1, "I1: a request was not delivered"
    assert times_sent(bench) <= 1, "I8: a request was delivered twice"


@pytest.mark.parametrize("is_seen", [False, True], ids=["unseen", "seen by an owner in between"])
def test_given_a_record_in_the_inbox_when_the_repeat_that_replaced_goes_with_its_topic_then_the_record_is_sent_in_its_place(
    is_seen: bool,
) -> None:
    """The repeat has raised the guard of a replacement, and its rows are not written. With `is_seen`, an owner in between reads
    the record behind that guard.
    """
    bench = ActorHarness(shards=SHARDS)
    bench.run(SECOND)
    first = bench.now
    bench.request(a_send("replaced", key="k", after="10s"))
    bench.run(SECOND)
    bench.hold_back(a_commit("cursor"))
    bench.hold_back(a_batch("messages"))
    bench.request(REQUEST)
    comes_through_the_inbox(bench, REQUEST, first, SHARD)
    if is_seen:
        bench.hold_back(a_commit("cursor"))
        bench.crash()
        bench.run(SECOND)
    recreate_requests_topic(bench, 2)
    bench.release()
    bench.run(MINUTE)
    assert times_sent(bench) >= 1, "I1: a request of two records was not delivered"
    assert len(bench.delivered()) == 1, "I8: the request was sent twice, or the message that it replaced was sent"
