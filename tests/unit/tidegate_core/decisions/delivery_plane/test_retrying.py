"""Messages that the broker refuses: tried again at slots of their own, followed by a successor, dead in the end."""

from __future__ import annotations

import pytest

from tidegate_core.decisions.delivery_plane.retrying import ATTEMPTS_MAX, RETRY_FIRST_MS, RETRY_LAST_MS, pause_after
from tidegate_core.effects import Commit, Effect, NotProduced, Produce, Write
from tidegate_core.model.instants import format_instant
from tidegate_testkit.bench import Bench
from tidegate_testkit.builders import HOUR, MINUTE, SECOND, a_cancel, a_send

UNKNOWN = NotProduced("refused", "unknown topic")


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


def test_given_attempts_then_pauses_double_up_to_five_minutes() -> None:
    """SEMANTICS 8: 5 s, x2, cap 5 min, 10 tries."""
    pauses = [pause_after(attempt) for attempt in range(1, ATTEMPTS_MAX)]
    assert pauses[:3] == [RETRY_FIRST_MS, 2 * RETRY_FIRST_MS, 4 * RETRY_FIRST_MS]
    assert max(pauses) == RETRY_LAST_MS
    assert 15 * MINUTE < sum(pauses) < HOUR


def test_given_a_refusal_then_later_attempts_have_slots_of_their_own_and_count_up(bench: Bench) -> None:
    bench.answer_with(to_out, NotProduced("refused", "unknown topic"), times=2)
    bench.request(a_send(after="1s"))
    due = bench.now + SECOND
    bench.run(MINUTE)
    (sent,) = bench.on("out")
    assert sent.headers["tidegate-attempt"] == "3"
    assert sent.at == due + pause_after(1) + pause_after(2)


def test_given_refusals_without_end_then_it_is_a_dead_letter_with_the_original_and_the_reason(bench: Bench) -> None:
    bench.answer_with(to_out, NotProduced("refused", "too large"), times=100)
    bench.request(a_send("m-1", after="1s", headers={"k": "v"}, message_key="17"))
    bench.run(HOUR)
    assert len(tries(bench)) == ATTEMPTS_MAX
    (letter,) = bench.on("tidegate.requests.dlq")
    assert (letter.key, letter.document) == (b"17", {"of": "m-1"})
    assert (letter.headers["k"], letter.headers["tidegate.error.topic"]) == ("v", "out")
    assert letter.headers["tidegate.error.message"] == "too large"
    assert (letter.headers["tidegate.error.partition"], letter.headers["tidegate.error.offset"]) == ("0", "0")
    assert tally(bench, "dead") == 1


def test_given_a_dead_letter_that_no_topic_takes_then_it_is_said_and_passed(bench: Bench) -> None:
    bench.answer_with(to_out, NotProduced("refused", "too large"), times=100)
    bench.answer_with(to_dead_letters, NotProduced("refused", "too large as well"), times=100_000)
    bench.request(a_send("m-1", after="1s"))
    bench.run(HOUR)
    assert len([effect for effect in bench.all_asked(Produce) if to_dead_letters(effect)]) < 10
    assert tally(bench, "dead") == 1


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


def test_given_a_late_message_that_is_refused_then_its_attempts_are_as_far_apart_as_those_of_a_timely_one(
    bench: Bench,
) -> None:
    """A topic that is not known yet after an outage must not send the whole backlog to the dead letters."""
    bench.answer_with(to_out, UNKNOWN, times=3)
    bench.request(a_send("m-1", deliver_at=format_instant(bench.now - HOUR)))
    first = bench.now
    bench.run(SECOND)
    assert len(tries(bench)) == 1
    bench.run(MINUTE)
    assert [sent.at for sent in bench.on("out")] == [first + pause_after(1) + pause_after(2) + pause_after(3)]
    assert bench.on("tidegate.requests.dlq") == []


def test_given_a_refused_message_then_what_was_sent_behind_it_is_passed_all_the_same() -> None:
    """Its new slot lies ahead: one topic that is missing holds up no checkpoint."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.answer_with(to_out, UNKNOWN, times=3)
    bench.request(a_send("late", deliver_at=format_instant(bench.now - HOUR)))
    bench.run(SECOND)
    sent_at = bench.now
    bench._rules.clear()
    bench.request(a_send("m-1", after="0s"))
    bench.run(3 * SECOND)
    bench.drain()
    bench.run(SECOND)
    assert [row["fired_slot"] for row in bench.rows("PROGRESS")] == [sent_at]


@pytest.mark.parametrize("crash_at", ["moved", "retry"])
def test_given_a_crash_while_a_message_moves_then_one_attempt_follows(crash_at: str) -> None:
    """Whether the new row is there or not: whoever finds the old one follows it."""
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.answer_with(to_out, UNKNOWN)
    bench.request(a_send("m-1", after="1s"))
    bench.hold_back(lambda effect: isinstance(effect, Write) and effect.batch.name == crash_at, answer_only=True)
    bench.run(SECOND)
    assert bench.holds_something
    bench.crash()
    bench.run(MINUTE)
    assert [sent.headers["tidegate-attempt"] for sent in bench.on("out")] == ["2"]


def test_given_a_row_that_was_moved_twice_then_the_successor_finds_the_last_one() -> None:
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.lose(lambda effect: isinstance(effect, Commit) and effect.transaction.name == "checkpoint", times=100)
    bench.answer_with(to_out, UNKNOWN, times=5)
    bench.request(a_send("m-1", after="1s"))
    bench.run(2 * MINUTE)
    assert len(tries(bench)) == 5
    bench._rules.clear()
    bench.crash()
    bench.run(SECOND)
    assert bench.on("out") == []
    bench.run(5 * MINUTE)
    assert [sent.headers["tidegate-attempt"] for sent in bench.on("out")] == ["6"]


def test_given_a_message_that_waits_for_a_far_attempt_then_its_cancel_takes_it_back(bench: Bench) -> None:
    """Its new slot lies beyond the window: it is kept in memory all the same."""
    bench.answer_with(to_out, UNKNOWN, times=6)
    bench.request(a_send("m-1", after="1s"))
    bench.run(3 * MINUTE)
    assert len(tries(bench)) == 6
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "cancelled"
    bench.run(HOUR)
    assert len(tries(bench)) == 6
    assert tally(bench, "cancelled") == 1


def test_given_many_refused_together_then_their_rows_are_written_together() -> None:
    bench = Bench(shards=1)
    bench.run(SECOND)
    bench.answer_with(to_out, UNKNOWN, times=50)
    for number in range(50):
        bench.request(a_send(f"m-{number}", after=f"{5_000 - number}ms"))
    bench.asked.clear()
    bench.now += 10 * SECOND
    bench.run(SECOND)
    assert [(each.batch.name, len(each.batch.actions)) for each in bench.all_asked(Write)] == [
        ("moved", 50),
        ("retry", 50),
    ]
