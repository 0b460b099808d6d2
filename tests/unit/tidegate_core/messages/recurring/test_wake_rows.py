"""Summons of far records that nobody can read for a while: they hold nothing up, and are found again (DESIGN 5)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.builders import HOUR, MINUTE, NOW, SECOND, Doc, a_recurring, a_send, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.effect_matchers import a_commit
from tests.support.harness.recurring_bench import shown
from tidegate_core.language.values.instants import format_instant, parse_instant
from tidegate_core.messages.wire.checkpoints import CHECKPOINT_AFTER_FIRES
from tidegate_core.rows.effects import Drained
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.recurring_message import Recurring
from tidegate_core.rows.store_operations import Key, Put

PING = b'"ping"'


def an_unreadable_one(trigger: Doc, **more: Any) -> tuple[ActorHarness, Put, list[int]]:
    """Returns a bench with a far record whose trigger nobody can read, the write by which it is readable again, and what is due."""
    bench = ActorHarness(shards=1, recurring_near_ms=61 * SECOND)
    bench.run(SECOND)
    bench.request(an_apply({**a_recurring(trigger=trigger), **more}))
    (far,) = bench.rows("CF#")
    record = from_item(Recurring, far)
    kind = str(trigger["type"])
    broken = replace(record, intervals=tuple(text.replace(kind, "tides") for text in record.intervals))
    key = Key(str(far["pk"]), str(far["sk"]))
    bench.store.write([Put(key, {**to_item(broken, key), "rev": far["rev"]})])
    return bench, Put(key, far), shown(bench, "apply-ping")


def pings(bench: ActorHarness) -> list[int]:
    return [parse_instant(each.headers["tidegate-nominal"]) for each in bench.on("out") if each.value == PING]


def test_given_a_far_record_that_cannot_be_brought_near_then_the_shards_other_messages_are_sent_in_time() -> None:
    """Found in review: its row held the position, and for 22 minutes nothing of the shard was sent."""
    bench, mended, due = an_unreadable_one({"type": "cron", "expression": "0 0 * * *"})
    bench.away(due[0] - bench.now - 3 * MINUTE)
    bench.request(an_apply(a_recurring("often", trigger=every("1s"), payload="often"), "apply-often"))
    bench.run(3 * MINUTE + (CHECKPOINT_AFTER_FIRES + 200) * SECOND)
    late = [each.at - parse_instant(each.headers["tidegate-nominal"]) for each in bench.on("out")]
    assert len(late) > CHECKPOINT_AFTER_FIRES + 200
    assert max(late) < SECOND
    assert "recurring" in {each.fields["name"] for each in bench.notices("decision_failed")}

    bench.store.write([mended])
    bench.run(20 * MINUTE)
    assert pings(bench) == due[:1], "the stored row stayed, the sweep found it, and what was missed was sent"
    bench.away(due[1] - bench.now - 2 * MINUTE)
    bench.run(3 * MINUTE)
    assert pings(bench) == due[:2]


@pytest.mark.parametrize("falls", [False, True])
@pytest.mark.parametrize("other", [False, True])
def test_given_a_far_record_that_can_be_read_again_then_a_shard_that_is_idle_or_stands_at_its_place_sends_it(
    other: bool, falls: bool
) -> None:
    """Found in review: where no message passed the row's place, or one stood right before it, the schedule was silent for good."""
    bench, mended, due = an_unreadable_one(every("2h"))
    bench.away(due[0] - bench.now - 90 * SECOND)
    bench.run(10 * SECOND)
    if other:
        bench.request(a_send("m-1", after=f"{(due[0] - bench.now) // SECOND - 3}s"))
    bench.run(3 * MINUTE)
    bench.store.write([mended])
    if falls:
        bench.crash()
    bench.run(100 * MINUTE)
    assert pings(bench) == due[:1]
    bench.run(30 * MINUTE)
    assert pings(bench) == due[:2]


@pytest.mark.parametrize(("mode", "missed"), [("last", 1), ("none", 2)])
def test_given_several_that_were_missed_then_the_last_is_sent_and_the_others_are_told(mode: str, missed: int) -> None:
    bench, mended, due = an_unreadable_one(every("2h"), catchup={"mode": mode})
    bench.away(due[0] - bench.now - 90 * SECOND)
    bench.request(an_apply(a_recurring("often", trigger=every("1m"), payload="often"), "apply-often"))
    bench.run(due[1] - bench.now + MINUTE)
    bench.store.write([mended])
    bench.run(20 * MINUTE)
    assert pings(bench) == ([due[1]] if mode == "last" else [])
    told = [each.fields for each in bench.notices("recurring_not_sent")]
    assert [(each["schedule"], each["occurrences"], each["first"]) for each in told] == [
        ("flights/ping", missed, due[0])
    ]
    bench.run(due[2] - bench.now + MINUTE)
    assert pings(bench)[-1] == due[2]


def test_given_a_trigger_that_has_ended_when_its_record_can_be_read_again_then_the_last_of_it_is_sent() -> None:
    """Its period's instant behind the end was taken for the last one: nothing was sent, and what was missed was told as not sent."""
    due = (NOW // (2 * HOUR) + 1) * 2 * HOUR
    bench, mended, shown_due = an_unreadable_one(every("2h", end=format_instant(due + HOUR)))
    assert shown_due == [due]
    bench.away(due - bench.now - 90 * SECOND)
    bench.request(an_apply(a_recurring("often", trigger=every("1m"), payload="often"), "apply-often"))
    bench.run(due - bench.now + 2 * HOUR + MINUTE)
    bench.store.write([mended])
    bench.run(20 * MINUTE)
    assert pings(bench) == [due]
    assert bench.notices("recurring_not_sent") == []


def test_given_a_hand_over_before_the_lane_came_to_an_unreadable_one_then_it_is_finished_all_the_same() -> None:
    """Found in review: the drain ended with an error, and what was sent since the last checkpoint was sent again."""
    bench, _, due = an_unreadable_one(every("2h"))
    bench.away(due[0] - bench.now - 90 * SECOND)
    bench.request(an_apply(a_recurring("often", trigger=every("1s"), payload="often"), "apply-often"))
    bench.run(10 * SECOND)
    bench.hold_back(a_commit("control"))
    bench.request(an_apply(a_recurring("third", trigger=every("7d"), payload="x"), "apply-third"))
    bench.run(due[0] - bench.now + 5 * SECOND)
    bench.drain()
    bench.release()
    bench.run(20 * SECOND)
    assert [each for each in bench.asked if isinstance(each, Drained)]
    sent = len(bench.on("out"))
    bench.new_actor()
    bench.run(30 * SECOND)
    ids = [each.headers["tidegate-id"] for each in bench.on("out")]
    assert len(ids) > sent
    assert len(set(ids)) == len(ids)
