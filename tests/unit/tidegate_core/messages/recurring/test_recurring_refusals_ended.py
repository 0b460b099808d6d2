"""Fires that the broker refused, and what ends them: a stop, an update, a cancel, the last try. Each counts once."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, SECOND, a_cancel, a_recurring, a_request, a_send, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.recurring_bench import (
    AWAY,
    REFUSED,
    covered,
    outage,
    payload,
    shown,
    tally,
    to_out,
)
from tidegate_core.language.values.instants import format_instant
from tidegate_core.messages.wire import delivery
from tidegate_core.messages.wire.delivery_retries import ATTEMPTS_MAX, RETRY_FIRST_MS
from tidegate_core.messages.wire.message_record import WIRE_PATIENCE_MS
from tidegate_core.rows.effects import Effect, NotProduced, Produce


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def stands_for_sixty(effect: Effect) -> bool:
    return isinstance(effect, Produce) and dict(effect.headers).get("tidegate-covered-count") == b"60"


def test_given_a_stop_while_a_refused_fire_waits_for_its_turn_then_it_gets_no_rows_and_is_counted_once(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "FIRED_TOGETHER", 1)
    bench.answer_with(to_out, REFUSED, times=2)
    bench.hold_back(a_commit("retry"))
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    bench.run(shown(bench, "apply-ping")[1] - bench.now + 100)
    bench.request(a_request("suspend", "ping"))
    bench.run(WIRE_PATIENCE_MS + SECOND)
    assert bench.status_of("suspend-ping") == "accepted"
    bench.release()
    bench.run(MINUTE)
    assert len(bench.commits("retry")) == 1
    assert bench.on("out") == []
    assert tally(bench, "cancelled") == 2


def a_stop_while_rows_are_on_their_way(bench: ActorHarness, attempt: int) -> None:
    """The store has the rows of the next attempt, and no answer comes; the schedule is suspended meanwhile."""
    bench.answer_with(to_out, REFUSED, times=attempt)
    bench.request(an_apply(a_recurring(trigger=every("1h"))))
    bench.run(shown(bench, "apply-ping")[0] - bench.now + (attempt - 1) * RETRY_FIRST_MS - 100)
    bench.hold_back(a_commit("retry"), answer_only=True)
    bench.run(200)
    bench.request(a_request("suspend", "ping"))
    bench.run(WIRE_PATIENCE_MS + 100)
    assert bench.status_of("suspend-ping") == "accepted"
    assert bench.holds_something


@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("hand_over", ["crash", "drain"])
def test_given_a_stop_while_the_rows_of_a_refused_fire_are_on_their_way_then_it_is_counted_once_by_whoever_follows(
    bench: ActorHarness, hand_over: str, attempt: int
) -> None:
    """It was counted at the place that it left, and again by who loaded the row at its new one."""
    a_stop_while_rows_are_on_their_way(bench, attempt)
    if hand_over == "drain":
        bench.release()
        bench.drain()
        bench.run(SECOND)
    bench.crash()
    bench.run(MINUTE)
    assert bench.on("out") == []
    assert tally(bench, "cancelled") == 1


@pytest.mark.parametrize("attempt", [1, 2])
def test_given_a_stop_while_the_rows_of_a_refused_fire_are_on_their_way_then_its_owner_counts_it_once(
    bench: ActorHarness, attempt: int
) -> None:
    a_stop_while_rows_are_on_their_way(bench, attempt)
    bench.release()
    bench.run(MINUTE)
    assert bench.on("out") == []
    assert tally(bench, "cancelled") == 1
    bench.crash()
    bench.run(MINUTE)
    assert tally(bench, "cancelled") == 1


@pytest.mark.parametrize("crashed", [False, True])
@pytest.mark.parametrize("kind", ["suspend", "delete", "update"])
def test_given_a_refusal_and_then_a_stop_then_it_is_not_tried_again(
    bench: ActorHarness, kind: str, crashed: bool
) -> None:
    bench.answer_with(to_out, REFUSED, times=1)
    bench.request(an_apply(a_recurring(trigger=every("1h"), payload="old")))
    bench.run(shown(bench, "apply-ping")[0] - bench.now + SECOND)
    update = an_apply(a_recurring(trigger=every("1h"), payload="new"), "update-ping")
    bench.request(update if kind == "update" else a_request(kind, "ping"))
    assert bench.status_of(f"{kind}-ping") == "accepted"
    if crashed:
        bench.crash()
    bench.run(30 * MINUTE)
    assert bench.on("out") == []
    assert tally(bench, "cancelled") == 1


def a_refused_catch_up(bench: ActorHarness, times: int) -> None:
    """The broker refuses what stands for sixty occurrences, so often."""
    bench.request(an_apply(a_recurring()))
    bench.run(25 * SECOND)
    bench.answer_with(stands_for_sixty, REFUSED, times=times)
    outage(bench, 10 * MINUTE)
    bench.run(SECOND)


@pytest.mark.parametrize("crashed", [False, True])
def test_given_a_refused_fire_that_stands_for_an_outage_and_a_stop_then_each_of_its_occurrences_is_counted(
    bench: ActorHarness, crashed: bool
) -> None:
    """One was counted, and 59 were in no tally."""
    a_refused_catch_up(bench, 1)
    bench.request(a_request("suspend", "ping"))
    if crashed:
        bench.crash()
    bench.run(MINUTE)
    assert [covered(each) for each in bench.on("out") if covered(each)] == []
    assert tally(bench, "cancelled") == 60


def test_given_a_fire_that_stands_for_an_outage_and_is_refused_for_good_then_each_of_its_occurrences_is_dead(
    bench: ActorHarness,
) -> None:
    a_refused_catch_up(bench, ATTEMPTS_MAX)
    bench.run(30 * MINUTE)
    assert [covered(each) for each in bench.on("out") if covered(each)] == []
    assert tally(bench, "dead") == 60


def test_given_a_refusal_a_stop_and_a_resume_then_it_stays_cancelled(bench: ActorHarness) -> None:
    bench.answer_with(to_out, REFUSED, times=1)
    bench.request(an_apply(a_recurring(trigger=every("1h"))))
    bench.run(shown(bench, "apply-ping")[0] - bench.now + SECOND)
    bench.request(a_request("suspend", "ping"))
    bench.request(a_request("resume", "ping"))
    bench.crash()
    bench.run(30 * MINUTE)
    assert bench.on("out") == []


@pytest.mark.parametrize(("answer", "sent"), [(REFUSED, 0), (AWAY, 1)])
def test_given_an_at_that_was_not_delivered_and_an_update_then_it_is_made_again_unless_it_was_refused(
    bench: ActorHarness, answer: NotProduced, sent: int
) -> None:
    """Seed 300121: what the broker refused was made, and has rows of its own, which end with its version.

    What only got no answer stays in its place and was not. A new life of the name makes both.
    """
    at = {"type": "at", "instant": format_instant(bench.now + 10 * SECOND)}
    bench.answer_with(to_out, answer, times=1 if sent == 0 else 10_000)
    bench.request(an_apply(a_recurring(trigger=at, payload="old")))
    bench.run(11 * SECOND)
    bench.request(an_apply(a_recurring(trigger=at, payload="new"), "update-ping"))
    bench.run(WIRE_PATIENCE_MS + SECOND)
    assert bench.status_of("update-ping") == "accepted"
    assert len(shown(bench, "update-ping")) == sent
    bench.as_usual()
    bench.run(30 * MINUTE)
    assert [each.value for each in bench.on("out")] == [b'"new"'] * sent
    bench.request(a_request("delete", "ping"))
    bench.request(an_apply(a_recurring(trigger=at, payload="anew"), "apply-anew"))
    bench.run(MINUTE)
    assert [each.value for each in bench.on("out")][sent:] == [b'"anew"']


@pytest.mark.parametrize("crashed", [False, True])
def test_given_messages_of_the_same_instant_that_were_passed_then_what_an_update_ends_is_no_less_open(
    crashed: bool,
) -> None:
    """Seed 805067: the position stood within the fire's own slot, before it; the boundary was put behind that slot, so that
    the fire counted as delivered: the update did not make it again, and nobody ever sent it.
    """
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    due = format_instant(bench.now + 10 * SECOND)
    at = {"type": "at", "instant": due}
    bench.answer_with(to_out, AWAY, times=10_000)
    bench.request(an_apply(a_recurring(trigger=at, payload="old")))
    for number in range(12):  # Some of them lie before the fire, by their ids.
        bench.request(a_send(f"m-{number}", deliver_at=due, topic="elsewhere"))
    bench.run(20 * SECOND)
    (passed,) = (str(row["fired_id"]) for row in bench.rows("PROGRESS"))
    assert any(passed.split("#")[0] in each.headers["tidegate-id"] for each in bench.on("elsewhere"))
    bench.request(an_apply(a_recurring(trigger=at, payload="new"), "update-ping"))
    bench.run(WIRE_PATIENCE_MS + SECOND)
    bench.as_usual()
    if crashed:
        bench.crash()
    bench.run(MINUTE)
    assert [each.value for each in bench.on("out")] == [b'"new"']
    assert (tally(bench, "delivered"), tally(bench, "cancelled")) == (13, 1)


def test_given_a_refused_message_then_its_printed_id_cancels_it(bench: ActorHarness) -> None:
    bench.answer_with(to_out, REFUSED, times=1)
    bench.request(an_apply(a_recurring(trigger=every("1h"))))
    bench.run(shown(bench, "apply-ping")[0] - bench.now + SECOND)
    (refused,) = [each for each in bench.all_asked(Produce) if each.topic == "out"]
    printed = dict(refused.headers)["tidegate-id"].decode()
    bench.request({**a_cancel("c-1", message_id=printed), "namespace": "flights"})
    bench.run(MINUTE)
    assert bench.on("out") == []


def an_at_made_again_while_its_refusal_moves(bench: ActorHarness, refusals: int) -> None:
    at = {"type": "at", "instant": format_instant(bench.now + 10 * SECOND)}
    bench.request(an_apply(a_recurring(trigger=at, payload="old"), "a-1"))
    bench.run(SECOND)
    bench.answer_with(to_out, REFUSED, times=refusals)
    bench.hold_back(a_commit("retry"))
    bench.run(10 * SECOND)
    assert bench.holds_something
    bench.request(an_apply(a_recurring(trigger=at, payload="new"), "a-2"))


def test_given_an_at_that_an_update_makes_again_while_its_refusal_moves_then_a_successor_sends_it() -> None:
    """Found in review: the row of the former generation, which ends nobody, stood for that of the new one."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    an_at_made_again_while_its_refusal_moves(bench, refusals=1)
    bench.answer_with(to_out, AWAY, times=1_000)
    bench.run(4 * SECOND)
    assert bench.status_of("a-2") == "accepted"
    bench.release()
    bench.run(SECOND)
    bench._rules.clear()
    bench.crash()
    bench.run(10 * MINUTE)
    assert [payload(each) for each in bench.on("out")] == ["new"]


def test_given_an_at_that_is_made_again_and_refused_again_then_the_row_of_the_former_one_does_not_stand_for_it() -> (
    None
):
    """Found in review, with the one above."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    an_at_made_again_while_its_refusal_moves(bench, refusals=2)
    bench.run(4 * SECOND)
    assert bench.status_of("a-2") == "accepted"
    bench.release()
    bench.run(10 * MINUTE)
    assert [payload(each) for each in bench.on("out")] == ["new"]


def at_once(bench: ActorHarness, seconds: int) -> dict[str, object]:
    return {"type": "at", "instant": format_instant(bench.now + seconds * SECOND)}


def test_given_a_wide_suspend_and_its_resume_while_a_refused_fire_waits_for_its_turn_then_it_is_dropped() -> None:
    """Found in review: at its new place, which it got behind the resume, it looked as if it had been due then (I7)."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring(trigger=at_once(bench, 10))))
    bench.request(an_apply(a_recurring(name="second", trigger=at_once(bench, 12)), "a-2"))
    bench.run(SECOND)
    bench.answer_with(to_out, REFUSED, times=2)
    bench.hold_back(a_commit("retry"), times=1)
    bench.run(12 * SECOND)
    assert bench.holds_something
    for kind in ("suspend", "resume"):
        bench.request({"id": kind, "type": f"control.{kind}", "scope": "namespace", "namespace": "flights"})
        bench.run(10 * SECOND)
        assert bench.status_of(kind) == "accepted"
    bench.release()
    bench.run(10 * MINUTE)
    bench.drain()
    assert bench.on("out") == []
    assert tally(bench, "cancelled") == 2


@pytest.mark.parametrize("falls", [False, True])
def test_given_an_at_made_anew_that_is_refused_then_the_former_one_counts_all_the_same(falls: bool) -> None:
    """Found in review: behind a fall the former one's fire was taken for the new one's, whose row has the same key."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    trigger = at_once(bench, 10)
    bench.request(an_apply(a_recurring(trigger=trigger, payload="old"), "a-1"))
    bench.run(SECOND)
    bench.answer_with(to_out, AWAY, times=1)
    bench.hold_back(to_out, times=1)  # Its second try, on the wire.
    bench.run(9 * SECOND + 500)
    assert bench.holds_something
    bench.lose(a_commit("checkpoint"), times=10**9)
    bench.answer_with(to_out, REFUSED, times=1)
    bench.request(an_apply(a_recurring(trigger=trigger, payload="new"), "a-2"))
    bench.run(4 * SECOND)
    assert bench.status_of("a-2") == "accepted"
    assert len(bench.rows("M#")) == 1
    bench.end_scripts()
    if falls:
        bench.crash()
    else:
        bench.release()
    bench.run(10 * MINUTE)
    bench.drain()
    assert tally(bench, "delivered") + tally(bench, "cancelled") == 2


@pytest.mark.parametrize("falls", [False, True])
def test_given_an_at_made_anew_where_both_were_refused_then_each_counts_once(falls: bool) -> None:
    """Found in review: both have one message row, which bears the name of the second; the first was counted at its instant as well."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.lose(a_commit("checkpoint"), times=10**9)
    trigger = at_once(bench, 5)
    bench.request(an_apply(a_recurring(trigger=trigger, payload="old"), "a-1"))
    bench.run(SECOND)
    bench.answer_with(to_out, REFUSED, times=2)
    bench.hold_back(a_commit("retry"))
    bench.run(4 * SECOND + 300)
    bench.request(an_apply(a_recurring(trigger=trigger, payload="new"), "a-2"))
    bench.run(WIRE_PATIENCE_MS + SECOND)
    assert (bench.status_of("a-2"), bench.holds_something) == ("accepted", True)
    bench.release()
    bench.run(SECOND)
    assert len(bench.commits("retry")) == 2
    bench.end_scripts()
    if falls:
        bench.crash()
    bench.run(10 * MINUTE)
    bench.drain()
    assert [payload(each) for each in bench.on("out")] == ["new"]
    assert (tally(bench, "delivered"), tally(bench, "cancelled")) == (1, 1)
