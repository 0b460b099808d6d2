"""Requests on recurring messages: each counts from its instant on, also between two checkpoints (DESIGN 5)."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.builders import MINUTE, SECOND, a_recurring, a_request, a_send, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.recurring_bench import (
    AWAY,
    a_control,
    covered,
    nominals,
    outage,
    payload,
    records,
    shown,
    tally,
    to_out,
)
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.messages.wire.message_record import WIRE_PATIENCE_MS
from tidegate_core.rows.effects import Commit, Effect, Produce


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def a_checkpoint(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "checkpoint"


@pytest.mark.parametrize("crashed", [False, True])
@pytest.mark.parametrize("kind", ["suspend", "delete"])
def test_given_a_stop_between_two_checkpoints_then_nothing_is_sent_after_it(
    bench: ActorHarness, kind: str, crashed: bool
) -> None:
    """Also by a successor, which begins where the last checkpoint stood: what was sent is counted, and not sent again."""
    bench.request(an_apply(a_recurring(trigger=every("1s"))))
    bench.run(7 * SECOND + 500)
    bench.request(a_request(kind, "ping"))
    assert bench.status_of(f"{kind}-ping") == "accepted"
    before = nominals(bench)
    if crashed:
        bench.crash()
    bench.run(MINUTE)
    assert nominals(bench) == before
    assert tally(bench, "delivered") == len(before)
    assert tally(bench, "cancelled") == 0


def test_given_an_update_between_two_checkpoints_and_a_crash_then_each_version_sends_what_is_its_own(
    bench: ActorHarness,
) -> None:
    bench.request(an_apply(a_recurring(trigger=every("1s"), payload="old")))
    bench.run(6 * SECOND + 300)
    bench.request(an_apply(a_recurring(trigger=every("2s"), payload="new"), "update"))
    updated = bench.now
    bench.run(3 * SECOND)
    bench.crash()
    bench.run(20 * SECOND)
    sent = [(parse_instant(each.headers["tidegate-nominal"]), payload(each)) for each in bench.on("out")]
    assert {document for nominal, document in sent if nominal < updated} == {"old"}
    assert {document for nominal, document in sent if nominal > updated} == {"new"}
    assert max(Counter(nominal for nominal, document in sent if document == "old").values()) == 1
    assert shown(bench, "update")[0] in {nominal for nominal, _ in sent}


def test_given_update_suspend_and_outage_between_two_checkpoints_then_nothing_is_lost_or_sent_too_much(
    bench: ActorHarness,
) -> None:
    bench.hold_back(a_checkpoint, times=1_000)
    bench.request(an_apply(a_recurring(trigger=every("1s"), payload="one")))
    bench.run(2 * SECOND + 500)
    bench.request(an_apply(a_recurring(trigger=every("1s"), payload="two"), "update"))
    bench.run(2 * SECOND)
    bench.request(a_request("suspend", "ping"))
    bench.run(2 * SECOND)
    bench.request(a_request("resume", "ping"))
    resumed = bench.now
    bench.run(SECOND + 600)
    before = nominals(bench)
    bench._rules.clear()
    bench._held.clear()
    outage(bench, 30 * SECOND)
    bench.run(10 * SECOND)
    after = bench.on("out")[len(before) :]
    assert all(parse_instant(each.headers["tidegate-nominal"]) > resumed for each in after)
    (one,) = [each for each in after if covered(each) is not None]
    first, last, count = covered(one) or (0, 0, 0)
    assert count == (last - first) // SECOND + 1
    reached = {*before, *nominals(bench), *range(first, last + 1, SECOND)}
    assert set(range(resumed // SECOND * SECOND + SECOND, bench.now, SECOND)) <= reached


def test_given_a_name_that_is_deleted_and_made_again_then_its_messages_have_other_ids(bench: ActorHarness) -> None:
    bench.request(an_apply(a_recurring()))
    bench.run(12 * SECOND)
    bench.request(a_request("delete", "ping"))
    bench.request(an_apply(a_recurring(), "again"))
    assert bench.status_of("again") == "accepted"
    bench.crash()
    bench.run(30 * SECOND)
    assert len({each.headers["tidegate-id"] for each in bench.on("out")}) == len(bench.on("out")) >= 4


def test_given_a_suspended_span_then_it_is_no_miss(bench: ActorHarness) -> None:
    bench.request(an_apply(a_recurring()))
    bench.run(12 * SECOND)
    bench.request(a_request("suspend", "ping"))
    bench.run(10 * MINUTE)
    before = len(bench.on("out"))
    bench.request(a_request("resume", "ping"))
    bench.run(30 * SECOND)
    assert len(bench.on("out")) == before + 3


def test_given_an_unchanged_definition_then_nothing_is_disturbed(bench: ActorHarness) -> None:
    bench.request(an_apply(a_recurring()))
    bench.run(15 * SECOND)
    bench.request(an_apply(a_recurring(), "same"))
    assert bench.status_of("same") == "unchanged"
    bench.run(30 * SECOND)
    assert max(Counter(nominals(bench)).values()) == 1
    assert len(bench.on("out")) == 4


def test_given_a_broker_that_is_away_then_a_stop_is_answered_soon_and_what_was_not_acknowledged_is_never_sent(
    bench: ActorHarness,
) -> None:
    bench.request(an_apply(a_recurring()))
    bench.run(12 * SECOND)
    bench.hold_back(to_out, times=1_000)
    bench.run(10 * SECOND)
    assert bench.holds_something
    asked = bench.now
    bench.request(a_request("suspend", "ping"))
    bench.run(WIRE_PATIENCE_MS + SECOND)
    assert bench.status_of("suspend-ping") == "accepted"
    receipt = next(each for each in bench.on("tidegate.receipts") if each.key == b"suspend-ping")
    assert receipt.at <= asked + WIRE_PATIENCE_MS + 100
    before = len(bench.on("out"))
    bench._rules.clear()
    bench._held.clear()
    bench.crash()
    bench.run(MINUTE)
    assert len(bench.on("out")) == before
    assert tally(bench, "cancelled") == 1


def test_given_no_acknowledgement_and_a_stop_then_it_is_not_sent_again(bench: ActorHarness) -> None:
    bench.answer_with(to_out, AWAY, times=10_000)
    bench.request(an_apply(a_recurring()))
    bench.run(12 * SECOND)
    bench.request(a_request("suspend", "ping"))
    bench.run(SECOND)
    assert bench.status_of("suspend-ping") == "accepted"
    tries = len([each for each in bench.all_asked(Produce) if each.topic == "out"])
    bench.as_usual()
    bench.run(MINUTE)
    assert len([each for each in bench.all_asked(Produce) if each.topic == "out"]) == tries
    assert tally(bench, "cancelled") == 1


def test_given_a_stop_whose_transaction_hangs_then_the_fires_meanwhile_wait_and_none_is_lost_when_it_fails(
    bench: ActorHarness,
) -> None:
    bench.request(an_apply(a_recurring(trigger=every("1s"))))
    bench.request(a_send("m-1", after="20s"))
    bench.run(5 * SECOND)
    bench.hold_back(a_control)
    bench.request(a_request("suspend", "ping"))
    before = len(bench.on("out"))
    bench.run(30 * SECOND)
    assert len(bench.on("out")) == before + 1, "the other message does not wait"
    bench._held.clear()
    bench.crash()
    bench.run(10 * SECOND)
    assert bench.status_of("suspend-ping") == "accepted"
    assert records(bench)["C"] == [] or bench.receipts()


def test_given_a_checkpoint_while_a_schedule_is_being_made_then_its_first_instants_are_not_passed(
    bench: ActorHarness,
) -> None:
    """The record's transaction takes its time; other messages fire, and their checkpoint stops before what it will open."""
    names = [f"ping{number}" for number in range(4)]  # Some shard has both.
    bench.hold_back(a_control, times=len(names))
    for name in names:
        bench.request(an_apply(a_recurring(name, trigger=every("1s"), payload=name)))
    begun = bench.now
    for number in range(20):
        bench.request(a_send(f"m-{number}", after="2s"))
    bench.run(20 * SECOND)
    bench.release()
    bench.run(SECOND)
    bench.crash()
    bench.run(5 * SECOND)
    for name in names:
        mine = {parse_instant(each.headers["tidegate-nominal"]) for each in bench.on("out") if payload(each) == name}
        assert set(range(shown(bench, f"apply-{name}")[0], bench.now, SECOND)) <= mine, name
    assert min(shown(bench, f"apply-{name}")[0] for name in names) <= begun + SECOND


@pytest.mark.parametrize("back", [False, True])
def test_given_a_target_that_becomes_another_then_the_former_one_ends(bench: ActorHarness, back: bool) -> None:
    program, message = a_spec("ping", every("10s")), a_recurring()
    bench.request(an_apply(program if back else message))
    bench.run(15 * SECOND)
    bench.request(an_apply(message if back else program, "other"))
    assert bench.status_of("other") == "accepted"
    sent, started = len(bench.on("out")), len(bench.started)
    bench.run(30 * SECOND)
    assert (len(bench.on("out")) > sent, len(bench.started) > started) == (back, not back)


def test_given_run_now_for_a_message_then_it_is_refused_as_planned(bench: ActorHarness) -> None:
    bench.request(an_apply(a_recurring()))
    bench.request(a_request("trigger", "ping"))
    assert bench.status_of("trigger-ping") == "rejected"
    assert "planned" in str(bench.receipts()["trigger-ping"]["errors"])
