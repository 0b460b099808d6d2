"""Planned hand-overs while a predecessor's rows wait for the record of their create: none is sent again."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest

from tests.support.builders import SECOND, a_recurring, a_send, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit, a_produce
from tests.support.harness.sending_bench import an_inboxed, messages
from tidegate_core.engine.actor_inputs import Woken
from tidegate_core.messages.one_shot import inbox_messages
from tidegate_core.messages.wire import timer_window
from tidegate_core.rows.effects import Commit, Drained, Effect, NotProduced, Produce, Read, ReadRange
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.store_operations import Put


def test_given_inbox_rows_that_are_left_as_a_drain_begins_then_those_before_what_was_sent_are_dealt_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Seed 840164: a message's row stood before fires that had been sent, and waited for its inbox row, which waited for others."""
    monkeypatch.setattr(inbox_messages, "INBOXED_TOGETHER_MAX", 1)
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    rows = [
        an_inboxed(a_send("m-1", after="1h", receipt=True), bench.now),
        an_inboxed(a_send("m-2", after="3s", topic="elsewhere"), bench.now + 1),
    ]
    bench.lose(a_commit("inboxed"), times=1_000)
    bench.store.write([Put(row.key(0), to_item(row, row.key(0))) for row in rows[1:]])
    bench.give(Woken(0))
    assert len(messages(bench)) == 1
    bench._rules.clear()
    bench.store.write([Put(row.key(0), to_item(row, row.key(0))) for row in rows[:1]])
    bench.hold_back(lambda effect: isinstance(effect, Produce) and effect.topic.endswith("receipts"))
    bench.crash()
    bench.run(10 * SECOND)
    assert len(bench.on("out")) == 5
    assert bench.on("elsewhere") == []
    bench.drain()
    bench.run(SECOND)
    assert bench.all_asked(Drained) == []
    bench.release()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    assert len(bench.on("elsewhere")) == 1
    bench.crash()
    bench.run(10 * SECOND)
    sent = [each.headers["tidegate-id"] for each in bench.on("out")]
    assert len(sent) == len(set(sent)) > 8, "a planned hand-over repeats none"


def test_given_an_inbox_row_that_is_being_dealt_with_as_a_drain_begins_then_that_waits_for_it() -> None:
    bench = with_a_row_of("inbox", receipt=True)
    bench.hold_back(a_produce("tidegate.receipts"))
    bench.run(10 * SECOND)
    assert (len(bench.on("out")), len(bench.on("elsewhere"))) == (5, 0)
    bench.drain()
    bench.run(SECOND)
    assert bench.all_asked(Drained) == []
    bench.as_usual()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    assert repeats_of_a_successor(bench) == 0, "a planned hand-over repeats none"


def test_given_a_row_that_is_loaded_amid_a_drain_then_what_it_waits_for_is_dealt_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Read: nothing was held up as the request before it was through, so that no further one was begun, and the drain waited for good."""
    monkeypatch.setattr(inbox_messages, "INBOXED_TOGETHER_MAX", 1)
    monkeypatch.setattr(timer_window, "WINDOW_MS", 4 * SECOND)
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    rows = [
        an_inboxed(a_send("m-1", after="1h", receipt=True), bench.now),
        an_inboxed(a_send("m-2", after="7s", topic="elsewhere"), bench.now + 1),
    ]
    bench.lose(a_commit("inboxed"), times=1_000)
    bench.store.write([Put(row.key(0), to_item(row, row.key(0))) for row in rows[1:]])
    bench.give(Woken(0))
    bench.end_scripts()
    bench.store.write([Put(row.key(0), to_item(row, row.key(0))) for row in rows[:1]])
    bench.hold_back(a_produce("tidegate.receipts"))
    bench.crash()
    bench.run(SECOND)
    bench.hold_back(a_reading_of("D#"))
    bench.run(9 * SECOND)
    assert len(bench.on("out")) == 5
    bench.drain()
    receipt = bench._held.pop(0)
    receipt()
    bench.run(SECOND)
    assert bench.all_asked(Drained) == []
    bench.release()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    assert len(bench.on("elsewhere")) == 1
    bench.crash()
    bench.run(10 * SECOND)
    sent = [each.headers["tidegate-id"] for each in bench.on("out")]
    assert len(sent) == len(set(sent)) > 8


def a_reading_of(low: str, *, but_first: int = 0) -> Callable[[Effect], bool]:
    """Matches reads of the shard's rows from `low` on, but for the first ones."""
    reads = itertools.count(1)
    return lambda effect: isinstance(effect, ReadRange) and effect.range.low == low and next(reads) > but_first


def with_a_row_of(source: str, **more: bool) -> ActorHarness:
    """A successor of an owner that wrote a message's rows, for 3 s from then, and fell before that was durable: the message waits.

    Args:
        source: Of the message's create: `inbox`, where it lies still, or `log`, whose position has not passed it.
        more: What the create says beside that.
    """
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(an_apply(a_recurring(trigger=every("2s"))))
    send = a_send("m-1", after="3s", topic="elsewhere", **more)
    if source == "log":
        bench.lose(a_commit("cursor"), times=1_000)
        bench.request(send)
    else:
        bench.lose(a_commit("inboxed"), times=1_000)
        row = an_inboxed(send, bench.now)
        bench.store.write([Put(row.key(0), to_item(row, row.key(0)))])
        bench.give(Woken(0))
    assert len(messages(bench)) == 1
    bench.as_usual()
    bench.new_actor()
    return bench


def repeats_of_a_successor(bench: ActorHarness) -> int:
    bench.crash()
    bench.run(10 * SECOND)
    sent = [each.headers["tidegate-id"] for topic in ("out", "elsewhere") for each in bench.on(topic)]
    assert len(bench.on("elsewhere")) >= 1
    assert len(set(sent)) > 8
    return len(sent) - len(set(sent))


def test_given_an_inbox_whose_look_has_no_end_then_what_lay_there_at_the_recovery_goes_out_and_a_hand_over_repeats_nothing() -> (
    None
):
    """Seed 940095: a page of the inbox had no answer for 12 s, and a message's row that waited for it stood before two that had been
    sent.
    """
    bench = with_a_row_of("inbox")
    bench.hold_back(a_reading_of("I#", but_first=1), times=1_000)  # The first one is the delivery plane's.
    bench.run(10 * SECOND)
    assert bench.actor.is_serving
    assert (len(bench.on("out")), len(bench.on("elsewhere"))) == (5, 1)
    bench.drain()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    bench.as_usual()
    assert repeats_of_a_successor(bench) == 0, "a planned hand-over repeats none"


def test_given_a_hand_over_before_all_is_recovered_then_what_lay_in_the_inbox_was_dealt_with_and_nothing_repeats() -> (
    None
):
    bench = with_a_row_of("inbox")
    bench.hold_back(a_reading_of("J#"), times=1_000)
    bench.run(10 * SECOND)
    assert not bench.actor.is_serving
    assert (len(bench.on("out")), len(bench.on("elsewhere"))) == (5, 1)
    bench.drain()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    bench.as_usual()
    assert repeats_of_a_successor(bench) == 0, "a planned hand-over repeats none"


def test_given_a_hand_over_before_the_log_is_read_again_then_it_waits_for_what_stands_before_what_was_sent() -> None:
    """A predecessor's rows wait for the position of their create; nothing but the log says that they may go out."""
    bench = with_a_row_of("log")
    bench.hold_back(a_reading_of("J#"), times=1_000)
    bench.run(10 * SECOND)
    assert not bench.actor.is_serving
    assert (len(bench.on("out")), len(bench.on("elsewhere"))) == (5, 0)
    bench.drain()
    bench.run(SECOND)
    assert bench.all_asked(Drained) == []
    bench.as_usual()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    assert repeats_of_a_successor(bench) == 0, "a planned hand-over repeats none"


def test_given_such_a_row_that_is_loaded_amid_the_hand_over_then_it_waits_for_its_record_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Read: it was not there as the hand-over asked what it has to wait for, and what was sent behind it was sent again."""
    monkeypatch.setattr(timer_window, "WINDOW_MS", 2 * SECOND)
    bench = with_a_row_of("log")
    bench.hold_back(a_reading_of("J#"), times=1_000)
    bench.hold_back(a_reading_of("D#", but_first=1))
    bench.run(10 * SECOND)
    assert not bench.actor.is_serving
    assert (len(bench.on("out")), len(bench.on("elsewhere"))) == (5, 0)
    bench.drain()
    bench.run(SECOND)
    bench.release_last()
    bench.run(SECOND)
    assert bench.all_asked(Drained) == []
    bench.as_usual()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    assert repeats_of_a_successor(bench) == 0, "a planned hand-over repeats none"


def test_given_a_payload_that_is_being_read_as_a_hand_over_begins_then_its_message_is_the_next_owners() -> None:
    """Seed 20340626: nothing had been sent, so the hand-over waited for nothing, and what went out then stood behind a row that waited."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m-2", after="10s"))
    bench.run(SECOND)
    bench.lose(a_commit("cursor"), times=1_000)
    bench.request(a_send("m-1", after="5s", topic="elsewhere"))
    bench.crash()
    bench.hold_back(a_reading_of("J#"), times=1_000)
    bench.hold_back(lambda effect: isinstance(effect, Read) and effect.keys[0].sk.startswith("M#"), times=1_000)
    bench.run(10 * SECOND)
    assert not bench.actor.is_serving
    bench.drain()
    bench.run(SECOND)
    bench.as_usual()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    assert bench.on("out") == []
    bench.crash()
    bench.run(10 * SECOND)
    assert (len(bench.on("out")), len(bench.on("elsewhere"))) == (1, 1), "a planned hand-over repeats none"


def a_reading_of_a_definition(effect: Effect) -> bool:
    """Of a request that is about to hold its schedule: the last thing that it asks before."""
    return isinstance(effect, Read) and effect.keys[0].sk.startswith("DEF#")


def with_a_fire_that_stays() -> ActorHarness:
    """Of a schedule in front of a message that was delivered, and behind another one: it gets no acknowledgement any more."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    due = 20 * SECOND - bench.now % (20 * SECOND)
    bench.request(an_apply(a_recurring(trigger=every("20s"))))
    bench.request(a_send("m-1", after=f"{due // SECOND - 1}s", topic="elsewhere"))
    bench.request(a_send("m-2", after=f"{due // SECOND + 1}s", topic="elsewhere"))
    bench.answer_with(a_produce("out"), NotProduced("unavailable", "transport"), times=1_000)
    return bench


def test_given_a_request_that_holds_a_schedule_amid_a_hand_over_then_that_waits_for_it_and_nothing_repeats() -> None:
    """Seed 29003670: its fire stood before a message that had been sent, and was taken for done because it was held."""
    bench = with_a_fire_that_stays()
    bench.run(20 * SECOND)
    assert (len(bench.on("out")), len(bench.on("elsewhere"))) == (0, 2)
    bench.hold_back(a_reading_of_a_definition)
    bench.hold_back(a_commit("checkpoint"))
    bench.hold_back(a_commit("control"))
    bench.request(an_apply(a_recurring(trigger=every("1h")), "update-ping"))
    bench.drain()
    bench.run(SECOND)
    bench.release()  # The request goes on, and then the checkpoint, which covers the first message.
    bench.run(SECOND)
    assert bench.all_asked(Drained) == []
    bench.as_usual()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    bench.crash()
    bench.run(10 * SECOND)
    assert len(bench.on("elsewhere")) == 2, "a planned hand-over repeats none"


def test_given_a_hand_over_before_all_is_recovered_then_no_request_is_begun_behind_it() -> None:
    """Seed 29003670: the shard was recovered meanwhile, and took what lay in its inbox."""
    bench = with_a_fire_that_stays()
    bench.lose(a_commit("control"), times=1_000)
    bench.request(an_apply(a_recurring(trigger=every("1h")), "update-ping"))
    bench.new_actor()
    bench.hold_back(a_reading_of("J#"), times=1_000)
    bench.run(20 * SECOND)
    assert (len(bench.on("out")), len(bench.on("elsewhere"))) == (0, 2)
    bench.drain()
    bench.run(SECOND)
    before = len(bench.all_asked(Commit))
    bench.release()
    bench.run(SECOND)
    assert len(bench.all_asked(Commit)) == before
    assert not bench.actor.is_serving
    bench.as_usual()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    bench.crash()
    bench.run(10 * SECOND)
    assert len(bench.on("out")) == 1
    assert len(bench.on("elsewhere")) == 2, "a planned hand-over repeats none"
