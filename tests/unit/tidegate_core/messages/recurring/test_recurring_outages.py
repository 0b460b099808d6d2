"""Recurring messages after an outage: one delivery stands for all that was missed, whoever falls in the catch-up."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, SECOND, a_position, a_recurring, a_request, an_apply
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.recurring_bench import (
    AWAY,
    covered,
    nominals,
    outage,
    tally,
    to_out,
)
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.messages.wire.message_record import WIRE_PATIENCE_MS
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.scope_suspension import Scope, ScopeSuspensions, StoredSuspensions
from tidegate_core.rows.store_operations import Put


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def test_given_an_outage_then_one_delivery_stands_for_all_that_was_missed(bench: ActorHarness) -> None:
    """SEMANTICS 3: `last` is the default of recurring messages."""
    bench.request(an_apply(a_recurring()))
    bench.run(25 * SECOND)
    before = len(bench.on("out"))
    outage(bench, 10 * MINUTE)
    bench.run(30 * SECOND)
    late, *others = bench.on("out")[before:]
    first, last, count = covered(late) or (0, 0, 0)
    assert (last - first) // (10 * SECOND) + 1 == count == 60
    assert parse_instant(late.headers["tidegate-nominal"]) == last
    assert [covered(each) for each in others] == [None] * 3
    assert tally(bench, "coalesced") == count - 1


def test_given_a_hand_over_that_took_its_time_but_no_outage_then_each_is_sent(bench: ActorHarness) -> None:
    bench.request(an_apply(a_recurring()))
    bench.run(25 * SECOND)
    bench.away(30 * SECOND)  # Within the grace from the acquire on: this owner has given no sign of life since.
    bench.run(10 * SECOND)
    assert sorted(set(nominals(bench))) == list(range(min(nominals(bench)), bench.now + 1, 10 * SECOND))


@pytest.mark.parametrize("crash_at", [0, 1, 2, 3])
def test_given_a_second_crash_in_a_catch_up_then_it_is_brought_to_its_end_under_one_id(
    bench: ActorHarness, crash_at: int
) -> None:
    bench.request(an_apply(a_recurring()))
    bench.run(25 * SECOND)
    before = len(bench.on("out"))
    bench.hold_back(to_out, times=crash_at % 2)
    outage(bench, 10 * MINUTE)
    bench.run(crash_at * SECOND)
    bench._rules.clear()
    bench.crash()
    bench.run(20 * SECOND)
    late = [each for each in bench.on("out")[before:] if covered(each)]
    assert len({(each.headers["tidegate-id"], covered(each)) for each in late}) == 1
    bench.run(MINUTE)
    bench.crash()
    bench.run(MINUTE)
    assert len([each for each in bench.on("out")[before:] if covered(each)]) == len(late)


def test_given_a_second_outage_before_the_first_was_caught_up_then_each_nominal_is_covered(bench: ActorHarness) -> None:
    bench.request(an_apply(a_recurring()))
    bench.run(25 * SECOND)
    before = len(bench.on("out"))
    bench.hold_back(to_out, times=100)
    outage(bench, 5 * MINUTE)
    bench.run(SECOND)
    bench._rules.clear()
    bench._held.clear()
    outage(bench, 5 * MINUTE)
    bench.run(20 * SECOND)
    reached: set[int] = set()
    for each in bench.on("out")[before:]:
        first, last, _ = covered(each) or (*[parse_instant(each.headers["tidegate-nominal"])] * 2, 1)
        reached |= set(range(first, last + 1, 10 * SECOND))
    assert (
        set(range(max(nominals(bench)[:before]), max(reached), 10 * SECOND)) - set(nominals(bench)[:before]) <= reached
    )


def test_given_a_stop_during_catch_up_then_what_was_not_caught_up_is_cancelled(bench: ActorHarness) -> None:
    bench.request(an_apply(a_recurring()))
    bench.run(25 * SECOND)
    before = len(bench.on("out"))
    bench.answer_with(to_out, AWAY, times=10_000)
    outage(bench, 10 * MINUTE)
    bench.run(SECOND)
    bench.request(a_request("suspend", "ping"))
    bench.run(WIRE_PATIENCE_MS + SECOND)
    bench.as_usual()
    bench.run(MINUTE)
    assert len(bench.on("out")) == before
    assert tally(bench, "cancelled") == 60


@pytest.mark.parametrize("falls", [False, True], ids=["the same owner", "a successor"])
def test_given_missed_fires_that_are_not_made_up_for_and_a_suspend_then_they_are_counted_as_expired(
    bench: ActorHarness, falls: bool
) -> None:
    """Found by a review: nothing had a checkpoint tell of them, and a successor counted them as delivered."""
    bench.request(an_apply({**a_recurring(), "catchup": {"mode": "none"}}))
    bench.run(25 * SECOND)
    sent = len(bench.on("out"))
    outage(bench, 45 * SECOND)
    bench.run(SECOND // 2)
    bench.request(a_request("suspend", "ping"))
    bench.run(SECOND // 5)
    if falls:
        bench.crash()
    bench.run(3 * MINUTE)
    assert [tally(bench, name) for name in ("delivered", "cancelled", "coalesced")] == [sent, 0, 0]
    assert tally(bench, "expired") >= 4


def test_given_a_wide_suspend_that_began_and_ended_within_an_outage_then_what_was_missed_behind_it_is_made_up_for() -> (
    None
):
    """Found in review: a delivery that stands for many was due with the first of them, so that the suspended span took it."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring()))
    bench.run(30 * SECOND)
    spans = ((bench.now + 2 * MINUTE, bench.now + 3 * MINUTE),)
    scope = Scope(namespace="flights", position=a_position(9, at=bench.now).text(), spans=spans, dropped=1)
    stored = StoredSuspensions.of(ScopeSuspensions(version=2, scopes=(scope,)))
    bench.store.write([Put(keys.SUSPENSIONS_KEY, {**to_item(stored, keys.SUSPENSIONS_KEY), "rev": 2})])
    before = len(bench.on("out"))
    bench.away(10 * MINUTE)
    end = bench.now
    bench.run(MINUTE)
    made_up = [span for each in bench.on("out")[before:] if (span := covered(each)) is not None]
    assert len(made_up) == 1
    assert made_up[0][1] >= end - 10 * SECOND
