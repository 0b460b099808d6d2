"""Taking messages back: what is not on its way is never sent, what may have been sent is too late (I7)."""

from __future__ import annotations

import pytest

from tests.simulation.stories.stage import comes_through_the_inbox
from tests.support.builders import HOUR, MINUTE, REQUESTS, SECOND, a_cancel, a_recurring, a_send, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.cancel_bench import WHICH, tally
from tests.support.harness.effect_matchers import a_commit
from tidegate_core.engine.actor_inputs import Woken
from tidegate_core.language.values.instants import format_instant
from tidegate_core.messages.message_scheduler import CLOCKS_APART_MS
from tidegate_core.messages.wire.delivery import PAUSE_MS
from tidegate_core.messages.wire.delivery_retries import ATTEMPTS_MAX
from tidegate_core.rows.effects import NotProduced, Produce, Read, ReadRange
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.message import FOR_EVER, MessageFence


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


@WHICH
@pytest.mark.parametrize("after", ["10s", "5m"], ids=["loaded", "far ahead"])
def test_given_a_message_that_waits_then_its_cancel_takes_it_back(
    bench: ActorHarness, sent: dict[str, str], cancel: dict[str, str], after: str
) -> None:
    bench.request(a_send("m-1", after=after, **sent))
    bench.run(SECOND)
    bench.request(a_cancel(**cancel))
    assert bench.status_of("c-1") == "cancelled"
    assert bench.rows("D#") == []
    bench.run(10 * MINUTE)
    assert bench.on("out") == []


@WHICH
def test_given_a_cancel_under_the_id_of_the_send_then_it_is_refused_as_a_reused_one(
    bench: ActorHarness, sent: dict[str, str], cancel: dict[str, str]
) -> None:
    """It was carried out: who repeats a send in good faith and has mixed up two ids lost the message."""
    bench.request(a_send("m-1", after="10s", **sent))
    bench.run(SECOND)
    for _ in range(2):
        bench.request(a_cancel("m-1", **cancel))
        assert bench.status_of("m-1") == "rejected"
    bench.run(MINUTE)
    assert len(bench.on("out")) == 1


@WHICH
@pytest.mark.parametrize("waited", [2 * SECOND, 10 * SECOND], ids=["before its checkpoint", "after it"])
def test_given_a_message_that_was_delivered_then_its_cancel_is_too_late(
    bench: ActorHarness, sent: dict[str, str], cancel: dict[str, str], waited: int
) -> None:
    bench.request(a_send("m-1", after="1s", **sent))
    bench.run(waited)
    bench.request(a_cancel(**cancel))
    assert bench.status_of("c-1") == "too_late"
    assert len(bench.on("out")) == 1


@WHICH
def test_given_no_such_message_then_its_cancel_finds_nothing(
    bench: ActorHarness, sent: dict[str, str], cancel: dict[str, str]
) -> None:
    bench.request(a_cancel(**cancel))
    assert bench.status_of("c-1") == "not_found"


def test_given_a_message_on_its_way_then_its_cancel_is_too_late(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", after="1s"))
    bench.hold_back(lambda effect: isinstance(effect, Produce) and effect.topic == "out")
    bench.run(2 * SECOND)
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "too_late"


def test_given_a_message_of_the_past_beyond_what_is_loaded_then_its_cancel_takes_it_back() -> None:
    """Seed 21005092: loads had got no answer for a minute, and what fires without rows had gone on behind them."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring(trigger=every("10s"))))
    begun = bench.now
    bench.run(28 * SECOND)
    bench.lose(lambda effect: isinstance(effect, ReadRange) and effect.range.low.startswith("D#"), times=10**9)
    bench.run(100 * SECOND)
    bench.request(a_send("m-1", deliver_at=format_instant(begun + 30 * SECOND)))
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "cancelled"
    bench.run(MINUTE)
    assert all(each.document != {"of": "m-1"} for each in bench.on("out"))


def test_given_a_message_that_is_due_while_its_payload_is_read_then_its_cancel_takes_it_back(
    bench: ActorHarness,
) -> None:
    """It was taken to be sent, and not handed over: it never will be, and nobody may be told that it was."""
    bench.request(a_send("m-1", after="8s"))
    bench.crash()
    bench.hold_back(
        lambda effect: isinstance(effect, Read) and effect.keys[0].sk.startswith("M#"), times=2, answer_only=True
    )
    bench.run(9 * SECOND)
    bench.request(a_cancel(message_id="m-1"))
    bench.run(SECOND)
    bench.release()
    bench.run(10 * SECOND)
    assert bench.status_of("c-1") == "cancelled"
    assert bench.on("out") == []
    assert tally(bench) == (0, 1)


@pytest.mark.parametrize(
    ("answer", "status", "counted"),
    [
        pytest.param(NotProduced("guard", "lapsed"), "cancelled", (0, 1), id="was not sent"),
        pytest.param(NotProduced("unavailable", "transport"), "too_late", (1, 0), id="may have been sent"),
    ],
)
def test_given_a_cancel_in_the_pause_after_a_produce_then_it_is_too_late_only_if_it_may_be_there(
    bench: ActorHarness, answer: NotProduced, status: str, counted: tuple[int, int]
) -> None:
    bench.answer_with(lambda effect: isinstance(effect, Produce) and effect.topic == "out", answer, times=5)
    bench.request(a_send("m-1", after="1s"))
    bench.run(SECOND + PAUSE_MS // 2)
    bench.request(a_cancel(message_id="m-1"))
    bench.run(10 * SECOND)
    assert bench.status_of("c-1") == status
    assert tally(bench) == counted
    assert len(bench.on("out")) == counted[0]


def test_given_a_cancel_while_what_the_broker_refused_moves_then_it_is_taken_back(bench: ActorHarness) -> None:
    refused = NotProduced("refused", "unknown topic")
    bench.answer_with(lambda effect: isinstance(effect, Produce) and effect.topic == "out", refused)
    bench.hold_back(a_commit("retry"), answer_only=True)
    bench.request(a_send("m-1", after="1s"))
    bench.run(2 * SECOND)
    assert bench.holds_something
    bench.request(a_cancel(message_id="m-1"))
    bench.run(SECOND)
    bench.release()
    bench.run(MINUTE)
    assert bench.status_of("c-1") == "cancelled"
    assert bench.on("out") == []
    assert tally(bench) == (0, 1)


def test_given_a_cancel_while_its_dead_letter_is_on_its_way_then_it_is_too_late(bench: ActorHarness) -> None:
    refused = NotProduced("refused", "too large")
    bench.answer_with(lambda effect: isinstance(effect, Produce) and effect.topic == "out", refused, times=ATTEMPTS_MAX)
    bench.hold_back(lambda effect: isinstance(effect, Produce) and effect.topic == "tidegate.requests.dlq")
    bench.request(a_send("m-1", after="1s"))
    bench.run(HOUR)
    assert bench.holds_something
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "too_late"


def test_given_the_printed_id_then_it_names_the_message_too(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", after="5m", receipt=True))
    bench.request(a_cancel(message_id=str(bench.receipts()["m-1"]["id"])))
    assert bench.status_of("c-1") == "cancelled"
    bench.run(10 * MINUTE)
    assert bench.on("out") == []


@WHICH
def test_given_the_same_cancel_again_then_its_answer_is_the_same(
    bench: ActorHarness, sent: dict[str, str], cancel: dict[str, str]
) -> None:
    bench.request(a_send("m-1", after="5m", **sent))
    bench.request(a_cancel(**cancel))
    bench.run(SECOND)
    bench.request(a_cancel(**cancel))
    assert bench.status_of("c-1") == "cancelled"


def test_given_a_cancel_of_an_id_then_its_guard_is_for_ever_and_of_a_key_it_is_the_cancels_position(
    bench: ActorHarness,
) -> None:
    bench.request(a_cancel(message_id="m-1"))
    bench.request(a_cancel("c-2", key="k"))
    guards = {from_item(MessageFence, row).live_from for row in bench.rows("G#")}
    assert FOR_EVER in guards
    assert len(guards) == 2


def test_given_another_namespaces_cancel_then_the_message_is_delivered(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", key="k", after="2s"))
    bench.request({**a_cancel(key="k"), "namespace": "others"})
    assert bench.status_of("c-1") == "not_found"
    bench.run(5 * SECOND)
    assert len(bench.on("out")) == 1


def test_given_send_and_cancel_in_one_batch_then_it_is_taken_back(bench: ActorHarness) -> None:
    bench.append(REQUESTS, 0, a_send("m-1", after="5s"), a_cancel(message_id="m-1"))
    bench.run(10 * SECOND)
    assert bench.status_of("c-1") == "cancelled"
    assert bench.on("out") == []


def test_given_cancel_and_later_send_of_one_key_in_one_batch_then_the_send_lives(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", key="k", after="5s"))
    bench.append(REQUESTS, 0, a_cancel(key="k"), a_send("m-2", key="k", after="6s"))
    bench.run(10 * SECOND)
    assert [each.document["of"] for each in bench.on("out")] == ["m-2"]


@pytest.mark.parametrize("behind_ms", [0, CLOCKS_APART_MS // 2], ids=["", "the successor's clock is behind"])
def test_given_a_message_that_a_predecessor_may_have_sent_then_its_cancel_is_too_late(behind_ms: int) -> None:
    """Due between the checkpoint and the fence: nobody knows. By a clock that is behind, its time is still to come."""
    bench = ActorHarness()
    bench.run(SECOND)
    bench.request(a_send("m-1", after="1s"))
    bench.hold_back(lambda effect: isinstance(effect, Produce) and effect.topic == "out", times=2)
    bench.run(SECOND)
    assert bench.holds_something
    bench.crash()
    bench.now -= behind_ms
    bench.run(10)
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "too_late", "I7: a message that may be delivered was acknowledged as cancelled"


@pytest.mark.parametrize(
    "waited",
    [
        pytest.param(SECOND, id="before its checkpoint"),
        pytest.param(20 * SECOND, id="after it"),
    ],
)
def test_given_a_message_that_expired_then_its_cancel_is_too_late(bench: ActorHarness, waited: int) -> None:
    bench.request(a_send("m-1", after="1s", expire_after="1s"))
    bench.now += 5 * SECOND  # Away.
    bench.run(waited)
    assert bench.on("out") == []
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "too_late"


RUN_ID = "0000-mfrggzdfmztwq2lkn5wg63tqoe"


@pytest.mark.parametrize("own", [RUN_ID, RUN_ID.replace("0000", "9999")], ids=["of a shard", "of another cluster"])
@pytest.mark.parametrize("shards", [1, 2, 32])
def test_given_a_message_under_the_id_of_a_run_then_the_id_of_its_request_takes_it_back(shards: int, own: str) -> None:
    """Review: who sends under the id of its own run, so that a retry sends once, had it taken for one that was printed."""
    bench = ActorHarness(shards=shards)
    bench.run(SECOND)
    for status in ("accepted", "unchanged"):
        bench.request(a_send(own, after="1h", receipt=True))
        bench.run(SECOND)
        assert bench.status_of(own) == status
    for number in range(2):
        bench.request(a_cancel(f"c-{number}", message_id=own))
        assert bench.status_of(f"c-{number}") == "cancelled"
    bench.passes_over_routine = True
    bench.run(2 * HOUR)
    assert bench.on("out") == []


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_given_a_message_under_the_id_that_another_one_was_delivered_with_then_its_cancel_means_the_later_one(
    bench: ActorHarness, is_cancelled: bool
) -> None:
    bench.request(a_send("m-1", after="1s"))
    bench.run(10 * SECOND)
    (delivered,) = bench.on("out")
    told_by = str(delivered.headers["tidegate-id"])
    bench.request(a_send(told_by, after="1h"))
    if is_cancelled:
        bench.request(a_cancel(message_id=told_by))
        assert bench.status_of("c-1") == "cancelled"
    bench.run(2 * HOUR)
    assert [each.document["of"] for each in bench.on("out")] == ["m-1", told_by][: 1 if is_cancelled else 2]


def test_given_a_printed_id_that_a_later_send_has_too_then_a_cancel_between_them_means_the_earlier_one() -> None:
    """It is read from another topic partition, behind both."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m-1", after="1h", receipt=True))
    printed = str(bench.receipts()["m-1"]["id"])
    bench.run(SECOND)
    appended = bench.now
    bench.run(SECOND)
    bench.request(a_send(printed, after="1h"))
    comes_through_the_inbox(bench, a_cancel(message_id=printed), appended)
    bench.give(Woken(0))
    bench.run(2 * HOUR)
    assert bench.status_of("c-1") == "cancelled"
    assert [each.document["of"] for each in bench.on("out")] == [printed]


def test_given_a_printed_id_and_another_namespace_then_the_message_is_delivered(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", after="2s", receipt=True))
    printed = str(bench.receipts()["m-1"]["id"])
    bench.request({**a_cancel(message_id=printed), "namespace": "others"})
    assert bench.status_of("c-1") == "not_found"
    assert bench.rows("G#") == []
    bench.run(5 * SECOND)
    assert len(bench.on("out")) == 1


def test_given_the_printed_id_of_a_message_under_a_key_then_the_answer_says_how_to_cancel_it(
    bench: ActorHarness,
) -> None:
    bench.request(a_send("m-1", key="k", after="5m", receipt=True))
    bench.request(a_cancel(message_id=str(bench.receipts()["m-1"]["id"])))
    receipt = bench.receipts()["c-1"]
    assert (receipt["status"], receipt["errors"][0]["field"]) == ("not_found", "message_id")
    assert "by its key" in receipt["errors"][0]["hint"]
    assert bench.rows("G#") == []


def test_given_one_request_id_in_two_namespaces_then_each_has_its_own_answer() -> None:
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m-1", after="5m"))
    bench.request(a_send("m-2", after="5m", namespace="others"))
    bench.request(a_cancel("c-1", message_id="m-1"))
    bench.request({**a_cancel("c-1", message_id="m-2"), "namespace": "others"})
    receipt = bench.receipts()["c-1"]
    assert (receipt["status"], receipt["namespace"], receipt["id"]) == ("cancelled", "others", "m-2")
    bench.run(10 * MINUTE)
    assert bench.on("out") == []


def test_given_a_request_id_that_was_used_for_another_cancel_then_it_is_rejected() -> None:
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m-1", after="5m"))
    bench.request(a_send("m-2", after="5m"))
    bench.request(a_cancel("c-1", message_id="m-1"))
    bench.request(a_cancel("c-1", message_id="m-2"))
    receipt = bench.receipts()["c-1"]
    assert (receipt["status"], receipt["errors"][0]["field"]) == ("rejected", "id")
    bench.run(10 * MINUTE)
    assert [sent.document["of"] for sent in bench.on("out")] == ["m-2"]
