"""What a suspend, an update or a delete of a recurring message withdraws is in its receipt: no occurrence goes silently (I1)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_cancel, a_recurring, a_request, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit, a_produce
from tests.support.harness.recurring_bench import nominals, outage, payload, shown, tally
from tidegate_core.language.values.instants import format_instant
from tidegate_core.messages.recurring import ended_fires
from tidegate_core.messages.wire import shard_messages
from tidegate_core.messages.wire.delivery_retries import ATTEMPTS_MAX
from tidegate_core.messages.wire.message_record import WIRE_PATIENCE_MS
from tidegate_core.rows.effects import NotProduced, Produce

DEAD_LETTERS = "tidegate.requests.dlq"
MISSING = NotProduced("refused", "UNKNOWN_TOPIC_OR_PART")
FORBIDDEN = NotProduced("refused", "TOPIC_AUTHORIZATION_FAILED")
TOO_LARGE = NotProduced("refused", "MSG_SIZE_TOO_LARGE")
NO_ANSWER = NotProduced("unavailable", "_MSG_TIMED_OUT")

FAILS = pytest.mark.parametrize(
    "failure",
    [
        pytest.param(MISSING, id="the topic does not exist"),
        pytest.param(FORBIDDEN, id="no right to write"),
        pytest.param(TOO_LARGE, id="too large"),
        pytest.param(NO_ANSWER, id="no answer in time"),
    ],
)
ENDS = pytest.mark.parametrize("kind", ["suspend", "update", "delete"])
FALLS = pytest.mark.parametrize("falls", [False, True], ids=["its owner goes on", "a successor takes over"])


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def ending(kind: str, period: str = "1h") -> Doc:
    update = an_apply(a_recurring(trigger=every(period), payload="new"), "update-ping")
    return update if kind == "update" else a_request(kind, "ping")


def discarded(bench: ActorHarness, kind: str) -> int:
    receipt: dict[str, Any] = bench.receipts()[f"{kind}-ping"]
    assert receipt["status"] == "accepted"
    return int((receipt["discarded"] or {"messages": 0})["messages"])


def due(bench: ActorHarness, period: str = "1h", **more: Any) -> int:
    """Makes the schedule; returns its first instant."""
    bench.request(an_apply(a_recurring(trigger=every(period), payload="old", **more)))
    return shown(bench, "apply-ping")[0]


@ENDS
@FAILS
@FALLS
def test_given_a_fire_that_is_in_flight_at_an_end_and_fails_then_the_receipt_says_that_it_was_withdrawn(
    bench: ActorHarness, kind: str, failure: NotProduced, falls: bool
) -> None:
    first = due(bench)
    bench.hold_back(a_produce("out"), told=failure)
    bench.run(first - bench.now + SECOND)
    assert bench.holds_something
    bench.request(ending(kind))
    bench.run(WIRE_PATIENCE_MS + SECOND)
    assert discarded(bench, kind) == 1
    if falls:
        bench.crash()
    bench.as_usual()
    bench.run(10 * MINUTE)
    assert (bench.on("out"), bench.on(DEAD_LETTERS)) == ([], [])
    assert (tally(bench, "delivered"), tally(bench, "cancelled")) == (0, 1)


@ENDS
@FALLS
def test_given_a_fire_in_flight_at_an_end_that_arrives_after_all_then_it_is_delivered_once_for_all_that_was_said(
    bench: ActorHarness, kind: str, falls: bool
) -> None:
    """Nobody could know: no acknowledgement had come."""
    first = due(bench)
    bench.hold_back(a_produce("out"), answer_only=True)
    bench.run(first - bench.now + SECOND)
    bench.request(ending(kind))
    bench.run(WIRE_PATIENCE_MS + SECOND)
    assert discarded(bench, kind) == 1
    if falls:
        bench.crash()
    bench.as_usual()
    bench.run(10 * MINUTE)
    assert nominals(bench) == [first]


@ENDS
@FALLS
def test_given_a_topic_that_is_missing_and_an_end_between_two_attempts_then_the_receipt_says_that_it_was_withdrawn(
    bench: ActorHarness, kind: str, falls: bool
) -> None:
    """The topic comes two minutes later: nothing of before the answer arrives."""
    first = due(bench)
    bench.answer_with(a_produce("out"), MISSING, times=1_000)
    bench.run(first - bench.now + 8 * SECOND)
    bench.request(ending(kind))
    assert discarded(bench, kind) == 1
    bench.run(2 * MINUTE)
    bench.end_scripts()
    if falls:
        bench.crash()
    bench.run(10 * MINUTE)
    assert (bench.on("out"), bench.on(DEAD_LETTERS)) == ([], [])
    assert tally(bench, "cancelled") == 1


@ENDS
@pytest.mark.parametrize("seconds", [80, 280], ids=["its next attempt is not loaded yet", "its next attempt is near"])
def test_given_a_successor_and_an_end_then_its_receipt_counts_what_the_predecessor_was_refused(
    bench: ActorHarness, kind: str, seconds: int
) -> None:
    first = due(bench)
    bench.answer_with(a_produce("out"), MISSING, times=1_000)
    bench.run(first - bench.now + seconds * SECOND)
    bench.crash()
    bench.run(SECOND)
    bench.request(ending(kind))
    assert discarded(bench, kind) == 1
    bench.end_scripts()
    bench.run(10 * MINUTE)
    assert bench.on("out") == []
    assert tally(bench, "cancelled") == 1


@ENDS
def test_given_a_next_attempt_that_memory_has_no_room_for_then_the_receipt_counts_it(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(shard_messages, "ROWS_MAX", 0)
    first = due(bench)
    bench.answer_with(a_produce("out"), MISSING, times=1_000)
    bench.run(first - bench.now + 80 * SECOND)
    bench.request(ending(kind))
    assert discarded(bench, kind) == 1
    bench.run(10 * MINUTE)
    assert tally(bench, "cancelled") == 1


@ENDS
def test_given_many_fires_that_were_refused_or_got_no_answer_then_the_receipt_counts_each_once(
    bench: ActorHarness, kind: str
) -> None:
    first = due(bench, "10s")
    bench.answer_with(a_produce("out"), MISSING, times=1_000)
    bench.run(first - bench.now + 35 * SECOND)
    bench.end_scripts()
    bench.answer_with(a_produce("out"), NO_ANSWER, times=1_000)
    bench.run(20 * SECOND)
    bench.request(ending(kind, "10h"))
    bench.run(WIRE_PATIENCE_MS + SECOND)
    assert discarded(bench, kind) == 6
    bench.end_scripts()
    bench.run(10 * MINUTE)
    assert (tally(bench, "delivered"), tally(bench, "cancelled")) == (0, 6)


@ENDS
def test_given_a_refused_delivery_that_stands_for_an_outage_then_the_receipt_counts_each_of_its_occurrences(
    bench: ActorHarness, kind: str
) -> None:
    due(bench, "10s")
    bench.run(25 * SECOND)
    bench.answer_with(a_produce("out"), MISSING, times=1_000)
    outage(bench, 10 * MINUTE)
    bench.run(SECOND)
    bench.request(ending(kind, "10h"))
    assert discarded(bench, kind) == tally(bench, "cancelled") + discarded(bench, kind) >= 60
    bench.end_scripts()
    bench.run(10 * MINUTE)
    assert tally(bench, "cancelled") == discarded(bench, kind)


@ENDS
def test_given_fires_that_were_delivered_or_are_dead_letters_then_the_receipt_of_an_end_names_none(
    bench: ActorHarness, kind: str
) -> None:
    first = due(bench)
    bench.answer_with(a_produce("out"), MISSING, times=ATTEMPTS_MAX)
    bench.run(first - bench.now + HOUR + MINUTE)
    assert (len(bench.on("out")), len(bench.on(DEAD_LETTERS))) == (1, 1)
    bench.request(ending(kind, "5h"))
    assert bench.receipts()[f"{kind}-ping"]["discarded"] in (None, {"jobs": [], "evidence": {}, "messages": 0})
    bench.run(HOUR)
    assert tally(bench, "cancelled") == 0


def test_given_an_at_whose_topic_is_missing_then_an_update_says_that_it_was_withdrawn_and_comes_no_more(
    bench: ActorHarness,
) -> None:
    """A later update does not make it again: its receipt has to say so."""
    at = {"type": "at", "instant": format_instant(bench.now + 10 * SECOND)}
    bench.request(an_apply(a_recurring(trigger=at, payload="old")))
    bench.answer_with(a_produce("out"), MISSING, times=1)
    bench.run(11 * SECOND)
    bench.request(an_apply(a_recurring(trigger=at, payload="new"), "update-ping"))
    assert (discarded(bench, "update"), shown(bench, "update-ping")) == (1, [])
    bench.run(10 * MINUTE)
    assert bench.on("out") == []


def test_given_a_refused_fire_that_its_printed_id_cancelled_then_the_receipt_does_not_name_it_again(
    bench: ActorHarness,
) -> None:
    first = due(bench)
    bench.answer_with(a_produce("out"), MISSING, times=1)
    bench.run(first - bench.now + SECOND)
    (refused,) = [each for each in bench.all_asked(Produce) if each.topic == "out"]
    printed = dict(refused.headers)["tidegate-id"].decode()
    bench.request({**a_cancel("c-1", message_id=printed), "namespace": "flights"})
    assert bench.status_of("c-1") == "cancelled"
    bench.request(ending("suspend"))
    assert discarded(bench, "suspend") == 0


def test_given_a_second_end_then_its_receipt_names_only_what_it_has_withdrawn_itself(bench: ActorHarness) -> None:
    first = due(bench)
    bench.answer_with(a_produce("out"), MISSING, times=1)
    bench.run(first - bench.now + SECOND)
    bench.request(ending("update"))
    bench.request(ending("delete"))
    assert (discarded(bench, "update"), discarded(bench, "delete")) == (1, 0)


def test_given_a_crash_behind_the_receipt_of_an_end_then_the_repeat_of_it_says_the_same(bench: ActorHarness) -> None:
    first = due(bench)
    bench.answer_with(a_produce("out"), MISSING, times=1)
    bench.run(first - bench.now + SECOND)
    bench.hold_back(a_commit("control"), answer_only=True)
    bench.request(ending("suspend"))
    bench.crash()
    bench.run(SECOND)
    assert discarded(bench, "suspend") == 1


def test_given_more_refused_fires_than_memory_may_keep_then_the_tally_counts_those_that_no_receipt_names(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ended_fires, "WAITING_MAX", 2)
    bench.answer_with(a_produce("out"), MISSING, times=4)
    first = due(bench, "1s")
    bench.run(first - bench.now + 3 * SECOND + 100)
    bench.request(ending("suspend"))
    assert discarded(bench, "suspend") == 2
    bench.run(10 * MINUTE)
    assert tally(bench, "cancelled") == 4


def test_given_what_was_refused_and_delivered_in_the_end_then_nothing_of_it_is_kept(bench: ActorHarness) -> None:
    first = due(bench)
    bench.answer_with(a_produce("out"), MISSING, times=2)
    bench.run(first - bench.now + MINUTE)
    assert [payload(each) for each in bench.on("out")] == ["old"]
    bench.request(ending("suspend"))
    assert discarded(bench, "suspend") == 0


def test_given_a_next_attempt_that_was_withdrawn_beyond_memory_then_its_page_makes_room_for_others(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shard_messages, "ROWS_MAX", 0)
    monkeypatch.setattr(ended_fires, "WAITING_MAX", 1)
    first = due(bench)
    bench.answer_with(a_produce("out"), MISSING, times=1_000)
    bench.run(first - bench.now + 80 * SECOND)
    bench.request(ending("suspend"))
    assert discarded(bench, "suspend") == 1
    bench.run(5 * MINUTE)
    bench.request(an_apply(a_recurring("ping", trigger=every("1m")), "again"))
    bench.request(a_request("resume", "ping"))
    bench.run(MINUTE + SECOND)
    bench.request(a_request("delete", "ping"))
    assert discarded(bench, "delete") == 1
