"""Recurring messages of a span in which all was suspended, and of which their shard's owner hears later."""

from __future__ import annotations

import json

import pytest

from tests.support.builders import SECOND, a_recurring, a_request, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.recurring_bench import nominals
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Put


def was_suspended(bench: ActorHarness, begin: int, end: int) -> None:
    """What the controls' home writes while this shard has no owner."""
    before = bench.store.peek(keys.SUSPENSIONS_KEY)
    assert before is not None
    (scope,) = json.loads(str(before["scopes"]))
    version = int(str(before["version"]))
    scope |= {"spans": [*scope["spans"], [begin, end]], "dropped": version + 1}
    bench.store.write([Put(keys.SUSPENSIONS_KEY, {**before, "version": version + 2, "scopes": json.dumps([scope])})])


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness(shards=1)
    made.run(SECOND)
    for kind in ("suspend", "resume"):
        made.request({"id": kind, "type": f"control.{kind}", "scope": "system"})
        made.run(SECOND)
    return made


def test_given_an_end_of_a_suspension_that_is_carried_out_behind_a_wide_one_then_what_lies_in_that_is_not_sent(
    bench: ActorHarness,
) -> None:
    """Late, they had their places at the activation, and were taken for due then: what was due under the wide suspend was sent."""
    bench.request(an_apply(a_recurring(trigger=every("10s"))))
    end = (bench.now // (10 * SECOND) + 2) * 10 * SECOND
    bench.request(a_request("suspend", "ping", until=format_instant(end)))
    bench.run(end - bench.now - 5 * SECOND)
    sent = len(bench.on("out"))
    was_suspended(bench, end + 5 * SECOND, end + 25 * SECOND)
    bench.away(40 * SECOND)
    bench.run(20 * SECOND)
    assert nominals(bench)[sent:] == [end + seconds * SECOND for seconds in (30, 40, 50)]


def test_given_a_past_instant_that_is_asked_for_behind_a_wide_suspend_then_it_is_sent(bench: ActorHarness) -> None:
    past = bench.now - 90 * SECOND
    bench.request(an_apply(a_recurring(trigger={"type": "at", "instant": format_instant(past)})))
    bench.run(SECOND)
    assert nominals(bench) == [past]
