"""`too_late` is a promise: the message is delivered, or becomes a dead letter. Else its cancel is answered `cancelled` (I7, I8)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, a_cancel, a_send
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.cancel_bench import WHICH, tally
from tests.support.harness.effect_matchers import a_commit, a_produce
from tidegate_core.messages.wire.delivery_retries import ATTEMPTS_MAX
from tidegate_core.rows.effects import NotProduced

DEAD_LETTERS = "tidegate.requests.dlq"
MISSING = NotProduced("refused", "UNKNOWN_TOPIC_OR_PART")
FORBIDDEN = NotProduced("refused", "TOPIC_AUTHORIZATION_FAILED")
TOO_LARGE = NotProduced("refused", "MSG_SIZE_TOO_LARGE")
NO_ANSWER = NotProduced("unavailable", "_MSG_TIMED_OUT")
LAPSED = NotProduced("guard", "lapsed")

FAILS = pytest.mark.parametrize(
    "failure",
    [
        pytest.param(MISSING, id="the topic does not exist"),
        pytest.param(FORBIDDEN, id="no right to write"),
        pytest.param(TOO_LARGE, id="too large"),
        pytest.param(NO_ANSWER, id="no answer in time"),
        pytest.param(LAPSED, id="membership not proven"),
    ],
)


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def cancelled_on_its_way(
    bench: ActorHarness, sent: dict[str, str], cancel: dict[str, str], failure: NotProduced
) -> None:
    """The message is with the broker's client when its cancel is answered; only then the broker says no."""
    bench.request(a_send("m-1", after="1s", **sent))
    bench.hold_back(a_produce("out"), told=failure)
    bench.run(2 * SECOND)
    assert bench.holds_something
    bench.request(a_cancel(**cancel))
    assert bench.status_of("c-1") == "too_late"


@WHICH
@FAILS
def test_given_a_send_that_fails_after_its_cancel_was_too_late_then_it_is_delivered_once_it_can_be(
    bench: ActorHarness, sent: dict[str, str], cancel: dict[str, str], failure: NotProduced
) -> None:
    cancelled_on_its_way(bench, sent, cancel, failure)
    bench.release()
    bench.answer_with(a_produce("out"), failure, times=3)
    bench.run(5 * MINUTE)
    assert len(bench.on("out")) == 1
    assert tally(bench) == (1, 0)


@WHICH
def test_given_a_topic_that_is_never_made_after_a_cancel_was_too_late_then_there_is_a_dead_letter(
    bench: ActorHarness, sent: dict[str, str], cancel: dict[str, str]
) -> None:
    cancelled_on_its_way(bench, sent, cancel, MISSING)
    bench.release()
    bench.answer_with(a_produce("out"), MISSING, times=ATTEMPTS_MAX)
    bench.run(HOUR)
    assert bench.on("out") == []
    assert len(bench.on(DEAD_LETTERS)) == 1


@WHICH
@FAILS
def test_given_a_send_that_fails_after_its_cancel_was_too_late_and_an_owner_that_falls_then_a_successor_delivers_it(
    bench: ActorHarness, sent: dict[str, str], cancel: dict[str, str], failure: NotProduced
) -> None:
    cancelled_on_its_way(bench, sent, cancel, failure)
    bench.answer_with(a_produce("out"), failure, times=2)
    bench.crash()
    bench.run(5 * MINUTE)
    assert len(bench.on("out")) == 1
    bench.request(a_cancel("c-2", **cancel))
    assert bench.status_of("c-2") == "too_late"


def falls_before_its_guard(bench: ActorHarness) -> None:
    bench.hold_back(a_commit("guard"))


def falls_behind_its_guard(bench: ActorHarness) -> None:
    bench.hold_back(a_commit("guard"), answer_only=True)


@WHICH
@pytest.mark.parametrize("falls", [falls_before_its_guard, falls_behind_its_guard])
@pytest.mark.parametrize("is_on_its_way", [True, False], ids=["on its way", "before its time"])
def test_given_an_owner_that_falls_as_it_decides_on_a_cancel_then_the_answer_says_what_becomes_of_the_message(
    bench: ActorHarness,
    sent: dict[str, str],
    cancel: dict[str, str],
    falls: Callable[[ActorHarness], None],
    is_on_its_way: bool,
) -> None:
    bench.request(a_send("m-1", after="1s" if is_on_its_way else "20s", **sent))
    bench.hold_back(a_produce("out"))
    bench.run(2 * SECOND)
    falls(bench)
    bench.request(a_cancel(**cancel))
    bench.run(2 * SECOND)
    bench.crash()
    bench.run(5 * MINUTE)
    assert bench.status_of("c-1") == ("too_late" if is_on_its_way else "cancelled")
    assert len(bench.on("out")) == is_on_its_way


@WHICH
def test_given_an_outage_over_its_time_then_a_cancel_is_too_late_and_the_message_is_delivered(
    bench: ActorHarness, sent: dict[str, str], cancel: dict[str, str]
) -> None:
    """Nobody knows whether the owner before has sent it."""
    bench.request(a_send("m-1", after="5s", **sent))
    bench.run(SECOND)
    bench.away(MINUTE)
    bench.hold_back(a_produce("out"))
    bench.run(SECOND)
    bench.request(a_cancel(**cancel))
    bench.as_usual()
    bench.run(MINUTE)
    assert bench.status_of("c-1") == "too_late"
    assert len(bench.on("out")) == 1


def test_given_a_key_whose_cancel_was_too_late_then_a_later_send_replaces_what_still_waits(bench: ActorHarness) -> None:
    cancelled_on_its_way(bench, {"key": "k"}, {"key": "k"}, MISSING)
    bench.as_usual()
    bench.request(a_send("m-2", after="1s", key="k", topic="elsewhere"))
    assert bench.status_of("m-2") == "accepted"
    bench.run(5 * MINUTE)
    assert bench.on("out") == []
    assert len(bench.on("elsewhere")) == 1
    bench.request(a_cancel("c-2", key="k"))
    assert bench.status_of("c-2") == "too_late"


def test_given_a_key_whose_cancel_was_too_late_then_another_cancel_takes_back_what_the_broker_has_refused_since(
    bench: ActorHarness,
) -> None:
    cancelled_on_its_way(bench, {"key": "k"}, {"key": "k"}, MISSING)
    bench.as_usual()
    bench.run(SECOND)
    bench.request(a_cancel("c-2", key="k"))
    assert bench.status_of("c-2") == "cancelled"
    bench.run(5 * MINUTE)
    assert bench.on("out") == []
    assert tally(bench) == (0, 1)


def test_given_a_repeat_of_a_send_whose_cancel_was_too_late_then_it_is_the_same_message(bench: ActorHarness) -> None:
    cancelled_on_its_way(bench, {}, {"message_id": "m-1"}, MISSING)
    bench.as_usual()
    bench.request(a_send("m-1", after="1s"))
    assert bench.status_of("m-1") == "unchanged"
    bench.run(5 * MINUTE)
    assert len(bench.on("out")) == 1
