"""Cancelled messages in the tally, where each message ends once, and the position of an owner that cancels (I1)."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, SECOND, a_cancel, a_send
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.cancel_bench import WHICH, tally
from tests.support.harness.effect_matchers import a_commit, a_produce
from tidegate_core.messages.wire import shard_messages
from tidegate_core.messages.wire.withheld_rows import MessageFences
from tidegate_core.rows.effects import Effect, NotProduced, Produce, ReadRange
from tidegate_core.rows.message import MessageFence


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def reads_timer_rows(effect: Effect) -> bool:
    return isinstance(effect, ReadRange) and effect.range.low == "D#"


@WHICH
@pytest.mark.parametrize("after", ["10s", "5h"], ids=["loaded", "far ahead"])
def test_given_a_message_that_is_cancelled_again_and_again_then_it_is_counted_once(
    bench: ActorHarness, sent: dict[str, str], cancel: dict[str, str], after: str
) -> None:
    bench.request(a_send("m-1", after=after, **sent))
    for number in range(3):
        bench.request(a_cancel(f"c-{number}", **cancel))
    bench.run(10 * SECOND)
    assert tally(bench) == (0, 1)


@pytest.mark.parametrize("after", ["10s", "5h"], ids=["loaded", "far ahead"])
def test_given_a_replaced_message_then_it_is_counted_as_cancelled(bench: ActorHarness, after: str) -> None:
    for number in range(4):
        bench.request(a_send(f"m-{number}", key="k", after=after))
    bench.run(MINUTE)
    bench.request(a_send("m-last", key="k", after="1s"))
    bench.run(MINUTE)
    assert tally(bench) == ((2, 3) if after == "10s" else (1, 4))


@WHICH
@pytest.mark.parametrize("is_sent", [False, True], ids=["unsent", "sent"])
def test_given_a_refused_message_that_is_loaded_at_its_next_slot_before_its_move_is_answered_then_it_is_counted_once(
    bench: ActorHarness, sent: dict[str, str], cancel: dict[str, str], is_sent: bool
) -> None:
    """Read: cancelled at both of its places, or delivered at one and cancelled at the other."""
    bench.answer_with(a_produce("out"), NotProduced("refused", "unknown topic"), times=5)
    bench.request(a_send("m-1", after="1s", **sent))
    bench.run(MINUTE)
    bench.hold_back(a_commit("retry"), answer_only=True)
    bench.run(MINUTE + (MINUTE if is_sent else 0))
    assert bench.holds_something
    bench.request(a_cancel(**cancel))
    bench.as_usual()
    bench.run(10 * MINUTE)
    assert bench.status_of("c-1") == ("too_late" if is_sent else "cancelled")
    assert tally(bench) == ((1, 0) if is_sent else (0, 1))


@WHICH
@pytest.mark.parametrize("later", [1, 10], ids=["not passed yet", "passed"])
def test_given_a_refused_message_whose_next_attempt_has_no_room_in_memory_then_its_cancel_is_counted(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch, sent: dict[str, str], cancel: dict[str, str], later: int
) -> None:
    """Read: it was answered `cancelled`, or, behind a checkpoint, `too_late`, and counted as nothing."""
    monkeypatch.setattr(shard_messages, "ROWS_MAX", 0)
    bench.answer_with(a_produce("out"), NotProduced("refused", "unknown topic"), times=5)
    bench.request(a_send("m-1", after="1s", **sent))
    bench.run((76 + later) * SECOND)
    bench.request(a_cancel(**cancel))
    bench.run(10 * MINUTE)
    assert (bench.status_of("c-1"), tally(bench)) == ("cancelled", (0, 1))


@WHICH
def test_given_a_refused_message_that_an_earlier_owner_may_have_sent_and_whose_next_attempt_has_no_room_then_its_cancel_is_too_late(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch, sent: dict[str, str], cancel: dict[str, str]
) -> None:
    monkeypatch.setattr(shard_messages, "ROWS_MAX", 0)
    bench.request(a_send("m-1", after="1s", **sent))
    bench.hold_back(a_produce("out"))
    bench.run(2 * SECOND)
    bench.answer_with(a_produce("out"), NotProduced("refused", "unknown topic"), times=5)
    bench.crash()
    bench.run(77 * SECOND)
    bench.request(a_cancel(**cancel))
    bench.run(10 * MINUTE)
    assert (bench.status_of("c-1"), tally(bench)) == ("too_late", (1, 0))


@WHICH
@pytest.mark.parametrize("successor", [False, True])
def test_given_a_next_attempt_that_was_beyond_memory_and_is_sent_then_a_cancel_is_too_late(
    bench: ActorHarness, monkeypatch: pytest.MonkeyPatch, sent: dict[str, str], cancel: dict[str, str], successor: bool
) -> None:
    monkeypatch.setattr(shard_messages, "ROWS_MAX", 0)
    bench.answer_with(a_produce("out"), NotProduced("refused", "unknown topic"), times=5)
    bench.request(a_send("m-1", after="1s", **sent))
    bench.request(a_send("m-2", after="1s", topic="elsewhere"))
    bench.run(90 * SECOND)
    if successor:
        bench.crash()
        bench.run(SECOND)
        bench.request(a_cancel("c-0", message_id="m-2"))  # From here on all next attempts are known.
    bench.run(3 * MINUTE)
    assert len(bench.on("out")) == 1
    bench.request(a_cancel(**cancel))
    bench.run(10 * SECOND)
    assert (bench.status_of("c-1"), tally(bench)) == ("too_late", (2, 0))


@WHICH
@pytest.mark.parametrize("is_there", [False, True], ids=["refused", "without an answer before"])
def test_given_a_refused_message_whose_next_attempt_is_far_then_a_successor_cancels_what_nobody_has_sent(
    bench: ActorHarness, sent: dict[str, str], cancel: dict[str, str], is_there: bool
) -> None:
    """Its time was over, and memory knew nothing of it: `too_late`, delivered by nobody, and counted as nothing."""
    bench.answer_with(a_produce("out"), NotProduced("unavailable", "no answer"), times=int(is_there))
    bench.answer_with(a_produce("out"), NotProduced("refused", "unknown topic"), times=5)
    bench.request(a_send("m-1", after="1s", **sent))
    bench.request(a_send("m-2", after="1s", topic="elsewhere"))
    bench.run(90 * SECOND)
    bench.drain()
    bench.run(SECOND)
    bench.new_actor()
    bench.run(SECOND)
    bench.request(a_cancel("c-0", message_id="m-2"))
    bench.request(a_cancel(**cancel))
    bench.run(10 * MINUTE)
    assert bench.status_of("c-0") == "too_late"
    assert bench.status_of("c-1") == ("too_late" if is_there else "cancelled")
    assert len(bench.on("out")) == is_there
    assert tally(bench) == (1 + is_there, 1 - is_there)


def test_given_a_refused_message_whose_next_attempt_is_far_then_what_a_successor_replaces_is_counted(
    bench: ActorHarness,
) -> None:
    bench.answer_with(a_produce("out"), NotProduced("refused", "unknown topic"), times=5)
    bench.request(a_send("m-1", after="1s", key="k"))
    bench.run(90 * SECOND)
    bench.drain()
    bench.run(SECOND)
    bench.new_actor()
    bench.run(SECOND)
    bench.request(a_send("m-2", after="1s", key="k"))
    bench.run(10 * MINUTE)
    assert len(bench.on("out")) == 1
    assert tally(bench) == (1, 1)


def test_given_next_attempts_of_a_predecessor_then_they_are_read_once_and_not_when_all_are_in_memory() -> None:
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    for number in range(3):
        bench.request(a_send(f"m-{number}", after="1s"))
    bench.run(10 * SECOND)
    bench.drain()
    bench.run(SECOND)
    bench.new_actor()
    bench.run(SECOND)
    before = len(bench.asked)
    for number in range(2):
        bench.request(a_cancel(f"c-{number}", message_id=f"m-{number}"))
    assert sum(reads_timer_rows(each) for each in bench.asked[before:]) == 1
    bench.new_actor()
    bench.run(6 * MINUTE)
    before = len(bench.asked)
    bench.request(a_cancel("c-2", message_id="m-2"))
    assert not any(reads_timer_rows(each) for each in bench.asked[before:])
    assert [bench.status_of(f"c-{number}") for number in range(3)] == ["too_late"] * 3


def test_given_cancels_and_nothing_else_then_a_drain_stores_them(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", after="5h"))
    bench.request(a_cancel(message_id="m-1"))
    bench.drain()
    bench.run(SECOND)
    assert tally(bench) == (0, 1)


def test_given_an_open_message_in_front_then_a_drain_stores_what_was_cancelled_where_the_position_stands() -> None:
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    away = NotProduced("unavailable", "transport")
    bench.answer_with(lambda effect: isinstance(effect, Produce) and effect.topic == "out", away, times=1_000)
    bench.request(a_send("m-1", after="0s"))
    bench.request(a_send("m-2", after="5h"))
    bench.request(a_cancel(message_id="m-2"))
    bench.drain()
    bench.run(SECOND)
    (progress,) = bench.rows("PROGRESS")
    assert (progress["fired_slot"], tally(bench)) == (0, (0, 1))


def test_given_cancels_of_what_is_ahead_then_the_position_stays_behind_the_present(bench: ActorHarness) -> None:
    """Else a message that comes later and is due earlier would get a later slot."""
    bench.request(a_send("m-1", key="k", after="50s"))
    bench.request(a_cancel(key="k"))
    bench.request(a_send("m-2", key="k", after="1s"))
    bench.run(10 * SECOND)
    bench.request(a_send("m-3", key="k", after="5s"))
    due = bench.now + 5 * SECOND
    bench.run(20 * SECOND)
    assert [sent.at for sent in bench.on("out")][-1] == due


@pytest.mark.parametrize("waited", [65, 80], ids=["before its time", "behind its time"])
@WHICH
def test_given_a_message_that_is_loaded_while_its_guard_is_raised_then_its_cancel_says_what_becomes_of_it(
    bench: ActorHarness, sent: dict[str, str], cancel: dict[str, str], waited: int
) -> None:
    """The guard was in the store and kept the row out, its answer hung: what was passed then, and had never been sent, was too late.
    Now nothing is sent while its cancel is being decided.
    """
    bench.request(a_send("m-1", after="70s", **sent))
    bench.request(a_send("m-2", after="70s"))
    bench.hold_back(a_commit("guard"), answer_only=True)
    bench.request(a_cancel(**cancel))
    bench.run(waited * SECOND)
    bench.as_usual()
    bench.run(30 * SECOND)
    assert bench.status_of("c-1") == "cancelled"
    assert tally(bench) == (1, 1)
    assert len(bench.on("out")) == 1


def test_given_a_guard_that_is_being_raised_then_it_keeps_out_what_it_covered_before_and_what_it_refuses() -> None:
    guards, found = MessageFences(), MessageFence(id="m", live_from="4", refused=frozenset({"3"}))

    def kept_out() -> str:
        return "".join(version for version in "12345" if guards.keep_out(found, version))

    guards.begin(MessageFence(id="m", live_from="4"), MessageFence(id="m", live_from="2"))
    assert kept_out() == "13"
    guards.begin(MessageFence(id="another", live_from="4"), None)
    assert kept_out() == "123"
    guards.begin(MessageFence(id="m", live_from="4"), None)
    assert kept_out() == "3"
    guards.end()
    assert kept_out() == "123"
