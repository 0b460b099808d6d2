"""Messages that the broker refuses: tried again at slots of their own, by a successor as well, dead in the end."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, a_cancel, a_send
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit
from tidegate_core.language.values.instants import format_instant
from tidegate_core.messages.wire import delivery
from tidegate_core.messages.wire.delivery_retries import ATTEMPTS_MAX, RETRY_FIRST_MS, pause_after
from tidegate_core.messages.wire.timer_window import RETRY_LAST_MS
from tidegate_core.rows.effects import Commit, Committed, Effect, NotProduced, Produce, Refused, Unavailable, Write
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.message import MessageTimer
from tidegate_core.rows.store_operations import Key, Put, Transaction
from tidegate_memory.store import MemoryStore

UNKNOWN = NotProduced("refused", "unknown topic")


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def to_out(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic == "out"


def to_dead_letters(effect: Effect) -> bool:
    return isinstance(effect, Produce) and effect.topic.endswith(".dlq")


def tries(bench: ActorHarness) -> list[Produce]:
    return [effect for effect in bench.all_asked(Produce) if effect.topic == "out"]


def tally(bench: ActorHarness, name: str) -> int:
    return sum(int(str(row[name])) for row in [*bench.rows("PROGRESS"), *bench.rows("Y#")])


def test_given_attempts_then_pauses_double_up_to_five_minutes() -> None:
    """SEMANTICS 8: 5 s, x2, cap 5 min, 10 tries."""
    pauses = [pause_after(attempt) for attempt in range(1, ATTEMPTS_MAX)]
    assert pauses[:3] == [RETRY_FIRST_MS, 2 * RETRY_FIRST_MS, 4 * RETRY_FIRST_MS]
    assert max(pauses) == RETRY_LAST_MS
    assert 15 * MINUTE < sum(pauses) < HOUR


def test_given_a_refusal_then_later_attempts_have_slots_of_their_own_and_count_up(bench: ActorHarness) -> None:
    bench.answer_with(to_out, NotProduced("refused", "unknown topic"), times=2)
    bench.request(a_send(after="1s"))
    due = bench.now + SECOND
    bench.run(MINUTE)
    (sent,) = bench.on("out")
    assert sent.headers["tidegate-attempt"] == "3"
    assert sent.at == due + pause_after(1) + pause_after(2)


def test_given_refusals_without_end_then_it_is_a_dead_letter_with_the_original_and_the_reason(
    bench: ActorHarness,
) -> None:
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
    (told,) = bench.notices("record_dead_lettered")
    assert told.fields == {
        "topic": "tidegate.requests",
        "topic_partition": 0,
        "offset": 0,
        "error_class": "undeliverable",
        "problem": "too large",
        "destination": "out",
    }


def test_given_a_dead_letter_that_no_topic_takes_then_it_is_said_and_passed(bench: ActorHarness) -> None:
    bench.answer_with(to_out, NotProduced("refused", "too large"), times=100)
    bench.answer_with(to_dead_letters, NotProduced("refused", "too large as well"), times=100_000)
    bench.request(a_send("m-1", after="1s"))
    bench.run(HOUR)
    assert len([effect for effect in bench.all_asked(Produce) if to_dead_letters(effect)]) < 10
    assert tally(bench, "dead") == 1
    assert (len(bench.notices("dead_letter_refused")), bench.notices("record_dead_lettered")) == (1, [])


def test_given_a_cancel_between_two_attempts_then_there_is_no_further_one(bench: ActorHarness) -> None:
    bench.answer_with(to_out, NotProduced("refused", "unknown topic"), times=100)
    bench.request(a_send("m-1", after="1s"))
    bench.run(3 * SECOND)
    made = len(tries(bench))
    bench.request(a_cancel(message_id="m-1"))
    bench.run(HOUR)
    assert len(tries(bench)) == made
    assert bench.on("tidegate.requests.dlq") == []


def test_given_a_crash_between_attempts_then_the_successor_goes_on_with_the_next_one(bench: ActorHarness) -> None:
    bench.answer_with(to_out, NotProduced("refused", "unknown topic"), times=2)
    bench.request(a_send("m-1", after="1s"))
    bench.run(3 * SECOND)
    bench.crash()
    bench.run(MINUTE)
    assert bench.on("out") != []
    assert len({each.headers["tidegate-id"] for each in bench.on("out")}) == 1


def test_given_a_delivery_by_the_successor_of_what_a_predecessor_had_moved_then_it_is_delivered_once() -> None:
    """The predecessor was refused and wrote the retry row; the successor succeeds with the first slot: no second delivery."""
    bench = ActorHarness()
    bench.run(SECOND)
    bench.answer_with(to_out, NotProduced("refused", "unknown topic"))
    bench.request(a_send("m-1", after="1s"))
    bench.run(SECOND + 500)
    bench.crash()
    bench.run(MINUTE)
    assert len(bench.on("out")) == 1


def test_given_a_late_message_that_is_refused_then_its_attempts_are_as_far_apart_as_those_of_a_timely_one(
    bench: ActorHarness,
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
    bench = ActorHarness(shards=1)
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


@pytest.mark.parametrize(("is_there", "attempt"), [(False, "1"), (True, "2")])
def test_given_a_crash_while_a_message_moves_then_one_attempt_follows(is_there: bool, attempt: str) -> None:
    """The one that was refused, or the next one: of the two rows there is one, at each moment."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    a_refusal_on_its_way(bench, answer_only=is_there)
    bench.crash()
    bench.run(MINUTE)
    assert [sent.headers["tidegate-attempt"] for sent in bench.on("out")] == [attempt]


def a_refusal_on_its_way(bench: ActorHarness, *, answer_only: bool = False) -> Transaction:
    """A message was refused, and the transaction that moves it hangs, or its answer does; returns that."""
    bench.answer_with(to_out, UNKNOWN)
    bench.request(a_send("m-1", after="1s"))
    bench.hold_back(a_commit("retry"), answer_only=answer_only)
    bench.run(SECOND)
    (late,) = bench.commits("retry")
    return late


def test_given_two_take_overs_within_the_pause_then_what_the_first_owner_had_sent_does_not_bring_the_message_again() -> (
    None
):
    """The second owner has sent it from its place and handed over in order; only then the row of the next attempt would come."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    late = a_refusal_on_its_way(bench)
    bench.crash()
    bench.run(SECOND)
    assert len(bench.on("out")) == 1
    bench.drain()
    bench.run(SECOND)
    assert isinstance(bench.transact(late), Refused)
    bench.crash()
    bench.run(MINUTE)
    assert len(bench.on("out")) == 1


def test_given_a_pause_beyond_the_window_then_what_a_former_owner_had_sent_does_not_bring_the_message_again() -> None:
    """One take-over is enough there: the present owner has not read the place of the next attempt yet."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.answer_with(to_out, UNKNOWN, times=5)
    bench.request(a_send("m-1", after="1s"))
    bench.run(SECOND + sum(map(pause_after, range(1, 5))) - 100)
    bench.hold_back(a_commit("retry"))
    bench.run(200)
    assert len(tries(bench)) == 5
    late = bench.commits("retry")[-1]
    bench.crash()
    bench.run(SECOND)
    assert len(bench.on("out")) == 1
    assert isinstance(bench.transact(late), Refused)
    bench.run(10 * MINUTE)
    assert len(bench.on("out")) == 1


def test_given_a_former_owner_that_is_refused_then_it_ends_and_moves_nothing() -> None:
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    a_refusal_on_its_way(bench)
    before = bench.rows("D#")
    successor = ActorHarness(beside=bench, owner="node-b")
    successor.run(SECOND)
    assert len(successor.on("out")) == 1
    bench.release()
    assert bench.notices("fenced")
    assert successor.rows("D#") == before


def test_given_rows_of_the_first_attempt_that_come_once_more_then_the_next_attempt_stands() -> None:
    """Their batch was sent twice; the second one arrives when the message has moved, and its owner has fallen."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.answer_with(to_out, UNKNOWN, times=2)
    bench.request(a_send("m-1", after="1s"))
    rows = [batch.actions for batch in (each.batch for each in bench.all_asked(Write)) if batch.name == "messages"]
    bench.run(SECOND + pause_after(1))
    assert len(tries(bench)) == 2
    bench.store.write([action for actions in rows for action in actions])
    bench.crash()
    bench.run(MINUTE)
    assert [sent.headers["tidegate-attempt"] for sent in bench.on("out")] == ["3"]


def test_given_a_move_that_comes_once_more_after_the_next_one_then_the_next_one_stands() -> None:
    """Ten minutes later the store knows no tokens any more; the same owner's epoch still holds."""
    bench = ActorHarness(shards=1)
    bench.store = MemoryStore(remembers_tokens=False)
    bench.run(SECOND)
    bench.answer_with(to_out, UNKNOWN, times=2)
    bench.request(a_send("m-1", after="1s"))
    bench.run(SECOND + pause_after(1))
    first, _second = bench.commits("retry")
    assert isinstance(bench.transact(first), Committed)
    bench.crash()
    bench.run(MINUTE)
    assert [sent.headers["tidegate-attempt"] for sent in bench.on("out")] == ["3"]


@pytest.mark.parametrize("has_moved", [False, True])
def test_given_a_row_of_an_older_build_that_says_where_it_was_to_move_then_one_attempt_follows(has_moved: bool) -> None:
    """It wrote that down first, and the row of the next attempt after it; it fell before or after that."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m-1", after="1s"))
    (row,) = bench.rows("D#")
    timer, key = from_item(MessageTimer, row), Key(str(row["pk"]), str(row["sk"]))
    after = replace(timer, slot=timer.slot + RETRY_FIRST_MS, attempt=2)
    bench.store.write([Put(key, {**row, "moved_to": after.slot})])
    if has_moved:
        bench.store.write([Put(after.key(0), to_item(after, after.key(0)))])
    bench.crash()
    bench.now = timer.slot
    bench.run(MINUTE)
    assert [sent.headers["tidegate-attempt"] for sent in bench.on("out")] == ["2" if has_moved else "1"]


def test_given_a_store_that_answers_nothing_then_the_message_keeps_its_place_and_no_checkpoint_passes_it() -> None:
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.answer_with(to_out, UNKNOWN)
    bench.answer_with(a_commit("retry"), Unavailable("throttled"), times=20)
    bench.request(a_send("m-1", after="1s"))
    due = bench.now + SECOND
    bench.run(2 * SECOND)
    bench.request(a_send("m-2", after="1s"))
    bench.run(8 * SECOND)
    assert [sent.document["of"] for sent in bench.on("out")] == ["m-2"]
    assert all(int(str(row["fired_slot"])) < due for row in bench.rows("PROGRESS"))
    bench.run(MINUTE)
    assert [sent.document["of"] for sent in bench.on("out")] == ["m-2", "m-1"]


def test_given_a_row_that_was_moved_twice_then_the_successor_finds_the_last_one() -> None:
    bench = ActorHarness(shards=1)
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


def test_given_a_crash_when_a_message_has_moved_beyond_the_window_then_the_successor_waits_for_its_time() -> None:
    """No checkpoint has passed its former place, and nothing is there any more."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.answer_with(to_out, UNKNOWN, times=5)
    bench.request(a_send("m-1", after="1s"))
    bench.run(SECOND + sum(map(pause_after, range(1, 5))) + 100)
    assert len(tries(bench)) == 5
    due = bench.now - 100 + pause_after(5)
    bench.crash()
    bench.run(5 * MINUTE)
    assert [(sent.at, sent.headers["tidegate-attempt"]) for sent in bench.on("out")] == [(due, "6")]


def test_given_a_message_that_waits_for_a_far_attempt_then_its_cancel_takes_it_back(bench: ActorHarness) -> None:
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


def test_given_many_refused_together_then_few_transactions_move_them_one_after_the_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two at once would meet at the position's item, of which each demands the epoch."""
    monkeypatch.setattr(delivery, "FIRED_TOGETHER", 60)
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.answer_with(to_out, UNKNOWN, times=150)
    for number in range(150):
        bench.request(a_send(f"m-{number}", after=f"{5_000 - number}ms"))
    bench.asked.clear()
    bench.store_answers_after = 20
    bench.now += 10 * SECOND
    bench.run(SECOND)
    assert [len(each.actions) - 1 for each in bench.commits("retry")] == [80, 40, 80, 40, 60]
    assert bench.all_asked(Write) == []
    bench.run(pause_after(1))
    assert len(bench.on("out")) == len({each.headers["tidegate-id"] for each in bench.on("out")}) == 150
