"""One group of due messages: produced, expired, tried again, dead (SEMANTICS 14)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_core.decisions.delivery_plane.delivering import ATTEMPTS_MAX, RETRY_LAST_MS, retry_slot
from tidegate_core.effects import Effect, NotProduced, Produce
from tidegate_testkit.bench import Bench
from tidegate_testkit.builders import HOUR, MINUTE, NOW, SECOND, a_cancel, a_send


@pytest.fixture
def bench() -> Bench:
    made = Bench()
    made.run(SECOND)
    return made


def to_out(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic == "out"


def to_dead_letters(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic.endswith(".dlq")


def tries(bench: Bench) -> list[Produce]:
    return [effect for effect in bench.all_asked(Produce) if effect.topic == "out"]


def tally(bench: Bench, name: str) -> int:
    return sum(int(str(row[name])) for row in [*bench.rows("PROGRESS"), *bench.rows("Y#")])


@given(slot=st.integers(0, NOW), attempt=st.integers(1, ATTEMPTS_MAX))
def test_given_a_slot_and_an_attempt_then_the_next_slot_is_later_and_the_same_whoever_computes_it(
    slot: int, attempt: int
) -> None:
    assert 0 < retry_slot(slot, attempt) - slot <= RETRY_LAST_MS
    assert retry_slot(slot, attempt) - slot <= retry_slot(slot, attempt + 1) - slot


def test_given_a_delivery_then_it_is_guarded(bench: Bench) -> None:
    bench.request(a_send(after="1s"))
    bench.run(SECOND)
    assert [effect.guarded for effect in tries(bench)] == [True]


@pytest.mark.parametrize("kind", ["guard", "unavailable"])
def test_given_a_lapsed_guard_or_a_broker_that_is_away_then_it_is_tried_again_soon_under_the_same_id(
    bench: Bench, kind: str
) -> None:
    bench.answer_with(to_out, NotProduced(kind, "not now"), times=3)
    bench.request(a_send(after="1s"))
    bench.run(3 * SECOND)
    assert len(bench.on("out")) == 1
    assert len(tries(bench)) == 4
    assert len({effect.headers for effect in tries(bench)}) == 1


def test_given_a_refusal_then_later_attempts_have_slots_of_their_own_and_count_up(bench: Bench) -> None:
    bench.answer_with(to_out, NotProduced("refused", "unknown topic"), times=2)
    bench.request(a_send(after="1s"))
    bench.run(10 * SECOND)
    (sent,) = bench.on("out")
    assert sent.headers["tidegate-attempt"] == "3"
    assert sent.at == NOW + 2 * SECOND + 2 * SECOND + 4 * SECOND


def test_given_refusals_without_end_then_it_is_a_dead_letter_with_the_original_and_the_reason(bench: Bench) -> None:
    bench.answer_with(to_out, NotProduced("refused", "too large"), times=100)
    bench.request(a_send("m-1", after="1s", headers={"k": "v"}, message_key="17"))
    bench.run(HOUR)
    assert len(tries(bench)) == ATTEMPTS_MAX
    (letter,) = bench.on("tidegate.requests.dlq")
    assert (letter.key, letter.document) == (b"17", {"of": "m-1"})
    assert (letter.headers["k"], letter.headers["tidegate.error.topic"]) == ("v", "out")
    assert letter.headers["tidegate.error.message"] == "too large"
    assert tally(bench, "dead") == 1


def test_given_a_dead_letter_that_no_topic_takes_then_it_is_said_and_passed(bench: Bench) -> None:
    bench.answer_with(to_out, NotProduced("refused", "too large"), times=100)
    bench.answer_with(to_dead_letters, NotProduced("refused", "too large as well"), times=100_000)
    bench.request(a_send("m-1", after="1s"))
    bench.run(HOUR)
    assert len([effect for effect in bench.all_asked(Produce) if to_dead_letters(effect)]) < 10
    assert tally(bench, "dead") == 1


@pytest.mark.parametrize(
    ("away_for", "delivered"),
    [
        pytest.param(29 * SECOND, 1, id="within"),
        pytest.param(31 * SECOND, 0, id="beyond"),
    ],
)
def test_given_an_expiry_then_it_is_not_delivered_later_than_that(bench: Bench, away_for: int, delivered: int) -> None:
    bench.request(a_send(after="1s", expire_after="30s"))
    bench.now += SECOND + away_for
    bench.run(10 * SECOND)
    assert len(bench.on("out")) == delivered
    assert tally(bench, "expired") == 1 - delivered


def test_given_a_cancel_between_two_attempts_then_there_is_no_further_one(bench: Bench) -> None:
    bench.answer_with(to_out, NotProduced("refused", "unknown topic"), times=100)
    bench.request(a_send("m-1", after="1s"))
    bench.run(3 * SECOND)
    made = len(tries(bench))
    bench.request(a_cancel(message_id="m-1"))
    bench.run(HOUR)
    assert len(tries(bench)) == made
    assert bench.on("tidegate.requests.dlq") == []


def test_given_a_crash_between_attempts_then_the_successor_goes_on_with_the_next_one(bench: Bench) -> None:
    bench.answer_with(to_out, NotProduced("refused", "unknown topic"), times=2)
    bench.request(a_send("m-1", after="1s"))
    bench.run(3 * SECOND)
    bench.crash()
    bench.run(MINUTE)
    assert bench.on("out") != []
    assert len({each.headers["tidegate-id"] for each in bench.on("out")}) == 1


def test_given_a_delivery_by_the_successor_of_what_a_predecessor_had_moved_then_it_is_delivered_once() -> None:
    """The predecessor was refused and wrote the retry row; the successor succeeds with the first slot: no second delivery."""
    bench = Bench()
    bench.run(SECOND)
    bench.answer_with(to_out, NotProduced("refused", "unknown topic"))
    bench.request(a_send("m-1", after="1s"))
    bench.run(SECOND + 500)
    bench.crash()
    bench.run(MINUTE)
    assert len(bench.on("out")) == 1


def test_given_many_due_at_once_then_all_are_delivered_in_the_order_of_their_slots(bench: Bench) -> None:
    for number in range(60):
        bench.request(a_send(f"m-{number:03d}", after=f"{2_000 - number}ms"))
    bench.run(10 * SECOND)
    sent = bench.on("out")
    assert len(sent) == 60
    assert [each.at for each in sent] == sorted(each.at for each in sent)
    assert tally(bench, "delivered") == 60
