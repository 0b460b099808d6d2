"""Taking messages back: what is not on its way is never sent, what may have been sent is too late (I7)."""

from __future__ import annotations

import pytest

from tidegate_core.effects import Produce
from tidegate_core.records.codec import from_item
from tidegate_core.records.messages import FOR_EVER, Guard
from tidegate_testkit.bench import Bench
from tidegate_testkit.builders import MINUTE, REQUESTS, SECOND, a_cancel, a_send


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.run(SECOND)
    return made


WHICH = pytest.mark.parametrize(
    ("sent", "cancel"),
    [
        pytest.param({}, {"message_id": "m-1"}, id="by id"),
        pytest.param({"key": "k"}, {"key": "k"}, id="by key"),
    ],
)


@WHICH
@pytest.mark.parametrize("after", ["10s", "5m"], ids=["loaded", "far ahead"])
def test_given_a_message_that_waits_then_its_cancel_takes_it_back(
    bench: Bench, sent: dict[str, str], cancel: dict[str, str], after: str
) -> None:
    bench.request(a_send("m-1", after=after, **sent))
    bench.run(SECOND)
    bench.request(a_cancel(**cancel))
    assert bench.status_of("c-1") == "cancelled"
    assert bench.rows("D#") == []
    bench.run(10 * MINUTE)
    assert bench.on("out") == []


@WHICH
@pytest.mark.parametrize("waited", [2 * SECOND, 10 * SECOND], ids=["before its checkpoint", "after it"])
def test_given_a_message_that_was_delivered_then_its_cancel_is_too_late(
    bench: Bench, sent: dict[str, str], cancel: dict[str, str], waited: int
) -> None:
    bench.request(a_send("m-1", after="1s", **sent))
    bench.run(waited)
    bench.request(a_cancel(**cancel))
    assert bench.status_of("c-1") == "too_late"
    assert len(bench.on("out")) == 1


@WHICH
def test_given_no_such_message_then_its_cancel_finds_nothing(
    bench: Bench, sent: dict[str, str], cancel: dict[str, str]
) -> None:
    bench.request(a_cancel(**cancel))
    assert bench.status_of("c-1") == "not_found"


def test_given_a_message_on_its_way_then_its_cancel_is_too_late(bench: Bench) -> None:
    bench.request(a_send("m-1", after="1s"))
    bench.hold_back(lambda effect: isinstance(effect, Produce) and effect.topic == "out")
    bench.run(2 * SECOND)
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "too_late"


def test_given_the_printed_id_then_it_names_the_message_too(bench: Bench) -> None:
    bench.request(a_send("m-1", after="5m", receipt=True))
    bench.request(a_cancel(message_id=str(bench.receipts()["m-1"]["id"])))
    assert bench.status_of("c-1") == "cancelled"
    bench.run(10 * MINUTE)
    assert bench.on("out") == []


@WHICH
def test_given_the_same_cancel_again_then_its_answer_is_the_same(
    bench: Bench, sent: dict[str, str], cancel: dict[str, str]
) -> None:
    bench.request(a_send("m-1", after="5m", **sent))
    bench.request(a_cancel(**cancel))
    bench.run(SECOND)
    bench.request(a_cancel(**cancel))
    assert bench.status_of("c-1") == "cancelled"


def test_given_a_cancel_of_an_id_then_its_guard_is_for_ever_and_of_a_key_it_is_the_cancels_position(
    bench: Bench,
) -> None:
    bench.request(a_cancel(message_id="m-1"))
    bench.request(a_cancel("c-2", key="k"))
    guards = {from_item(Guard, row).live_from for row in bench.rows("G#")}
    assert FOR_EVER in guards
    assert len(guards) == 2


def test_given_another_namespaces_cancel_then_the_message_is_delivered(bench: Bench) -> None:
    bench.request(a_send("m-1", key="k", after="2s"))
    bench.request({**a_cancel(key="k"), "namespace": "others"})
    assert bench.status_of("c-1") == "not_found"
    bench.run(5 * SECOND)
    assert len(bench.on("out")) == 1


def test_given_send_and_cancel_in_one_batch_then_it_is_taken_back(bench: Bench) -> None:
    bench.append(REQUESTS, 0, a_send("m-1", after="5s"), a_cancel(message_id="m-1"))
    bench.run(10 * SECOND)
    assert bench.status_of("c-1") == "cancelled"
    assert bench.on("out") == []


def test_given_cancel_and_later_send_of_one_key_in_one_batch_then_the_send_lives(bench: Bench) -> None:
    bench.request(a_send("m-1", key="k", after="5s"))
    bench.append(REQUESTS, 0, a_cancel(key="k"), a_send("m-2", key="k", after="6s"))
    bench.run(10 * SECOND)
    assert [each.document["of"] for each in bench.on("out")] == ["m-2"]


def test_given_a_message_that_a_predecessor_may_have_sent_then_its_cancel_is_too_late() -> None:
    """Due between the checkpoint and the fence: nobody knows."""
    bench = Bench()
    bench.run(SECOND)
    bench.request(a_send("m-1", after="1s"))
    bench.hold_back(lambda effect: isinstance(effect, Produce) and effect.topic == "out", times=2)
    bench.run(2 * SECOND)
    bench.crash()
    bench.run(10)
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "too_late"


def test_given_cancelled_messages_then_the_tally_counts_those_in_memory_at_the_next_checkpoint(bench: Bench) -> None:
    bench.request(a_send("m-1", key="k", after="10s"))
    bench.request(a_cancel(key="k"))
    bench.request(a_send("m-2", key="k", after="1s"))
    bench.run(30 * SECOND)
    tallies = [(row["delivered"], row["cancelled"]) for row in bench.rows("PROGRESS") if row["delivered"]]
    assert tallies == [(1, 1)]


@pytest.mark.parametrize(
    "waited",
    [
        pytest.param(SECOND, id="before its checkpoint"),
        pytest.param(20 * SECOND, id="after it"),
    ],
)
def test_given_a_message_that_expired_then_its_cancel_is_too_late(bench: Bench, waited: int) -> None:
    bench.request(a_send("m-1", after="1s", expire_after="1s"))
    bench.now += 5 * SECOND  # Away.
    bench.run(waited)
    assert bench.on("out") == []
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "too_late"


def test_given_a_cancel_of_one_far_ahead_then_the_tally_counts_it_too(bench: Bench) -> None:
    """I1: each message ends as delivered, expired, dead or cancelled, and the audit adds them up."""
    bench.request(a_send("m-1", key="k", after="10m"))
    bench.request(a_cancel(key="k"))
    bench.request(a_send("m-2", key="k", after="1s"))
    bench.run(30 * SECOND)
    tallies = [(row["delivered"], row["cancelled"]) for row in bench.rows("PROGRESS") if row["delivered"]]
    assert tallies == [(1, 1)]
