"""The window of a shard's messages: loading, checkpoints, take-over, drain (DESIGN 5, I1, I8)."""

from __future__ import annotations

import pytest

from tests.support.builders import MINUTE, REQUESTS, SECOND, a_cancel, a_send
from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.messages.one_shot.inbox_messages import INBOXED_TOGETHER_MAX
from tidegate_core.messages.wire.checkpoints import CHECKPOINT_AFTER_MS
from tidegate_core.messages.wire.timer_window import WINDOW_MS
from tidegate_core.rows.effects import Commit, Drained, Effect, ReadRange, Write


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def a_write_of_messages(effect: Effect) -> bool:
    return isinstance(effect, Write) and effect.batch.name == "messages"


def a_load(effect: Effect) -> bool:
    return isinstance(effect, ReadRange) and effect.range.low.startswith("D#")


def a_checkpoint(effect: Effect) -> bool:
    return isinstance(effect, Commit) and effect.transaction.name == "checkpoint"


def test_given_deliveries_then_one_checkpoint_follows_within_its_time(bench: ActorHarness) -> None:
    for number in range(5):
        bench.request(a_send(f"m-{number}", key=f"k-{number % 2}x", after=f"{number + 1}00ms"))
    bench.run(CHECKPOINT_AFTER_MS + SECOND)
    fired = [row for row in bench.rows("PROGRESS") if row["fired_slot"]]
    assert fired != []
    assert len(bench.commits("checkpoint")) == len(fired)


def test_given_nothing_delivered_then_nothing_is_written(bench: ActorHarness) -> None:
    bench.request(a_send(after="10m"))
    bench.run(5 * MINUTE)
    assert bench.commits("checkpoint") == []


@pytest.mark.parametrize("after_ms", [WINDOW_MS - 500, WINDOW_MS, WINDOW_MS + 500, 5 * WINDOW_MS + 123])
def test_given_a_message_at_or_beyond_the_window_then_it_is_delivered_at_its_time(
    bench: ActorHarness, after_ms: int
) -> None:
    bench.request(a_send(after=f"{after_ms}ms"))
    due = bench.now + after_ms
    bench.run(10 * MINUTE)
    assert [each.at for each in bench.on("out")] == [due]


def test_given_a_create_in_flight_while_the_window_is_extended_then_it_is_delivered(bench: ActorHarness) -> None:
    """The page was read before the write landed, and the write's place lay beyond the window when it was made."""
    bench.run(28 * SECOND)
    bench.hold_back(a_write_of_messages)
    bench.request(a_send(after="35s"))
    bench.run(5 * SECOND)
    bench.release()
    bench.run(5 * MINUTE)
    assert len(bench.on("out")) == 1


def test_given_a_cancel_while_its_page_is_on_its_way_then_it_is_not_delivered(bench: ActorHarness) -> None:
    """A load's answer is filtered by the cancels applied since it was asked."""
    bench.request(a_send("m-1", after="70s"))
    bench.hold_back(a_load, times=4, answer_only=True)
    bench.run(31 * SECOND)
    assert bench.holds_something
    bench.request(a_cancel(message_id="m-1"))
    assert bench.status_of("c-1") == "cancelled"
    bench.release()
    bench.run(5 * MINUTE)
    assert bench.on("out") == []


def test_given_a_replacement_while_its_page_is_on_its_way_then_only_the_newer_is_delivered(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", key="k", after="70s"))
    bench.hold_back(a_load, times=4, answer_only=True)
    bench.run(31 * SECOND)
    bench.request(a_send("m-2", key="k", after="80s"))
    bench.release()
    bench.run(5 * MINUTE)
    assert [each.document["of"] for each in bench.on("out")] == ["m-2"]


def test_given_a_crash_after_deliveries_then_only_what_is_not_checkpointed_repeats_under_the_same_id(
    bench: ActorHarness,
) -> None:
    bench.request(a_send("m-1", after="1s"))
    bench.run(10 * SECOND)
    bench.request(a_send("m-2", after="1s"))
    bench.run(2 * SECOND)
    bench.crash()
    bench.run(MINUTE)
    repeats = [each.document["of"] for each in bench.on("out")]
    assert repeats.count("m-1") == 1
    assert repeats.count("m-2") == 2
    assert len({each.headers["tidegate-id"] for each in bench.on("out")}) == 2


def test_given_a_planned_hand_over_then_nothing_repeats(bench: ActorHarness) -> None:
    """I8."""
    for number in range(20):
        bench.request(a_send(f"m-{number}", after=f"{number}00ms"))
    bench.run(SECOND)
    bench.drain()
    bench.run(SECOND)
    assert len(bench.all_asked(Drained)) == 1
    bench.crash()
    bench.run(MINUTE)
    assert len(bench.on("out")) == 20


def test_given_messages_that_fell_due_while_nobody_owned_the_shard_then_they_are_delivered(bench: ActorHarness) -> None:
    for number in range(3):
        bench.request(a_send(f"m-{number}", after=f"{number + 1}m"))
    bench.crash()
    bench.now += 10 * MINUTE
    bench.run(SECOND)
    assert len(bench.on("out")) == 3


def test_given_a_checkpoint_of_a_new_owner_then_the_former_one_ends(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", after="1s"))
    bench.hold_back(a_checkpoint)
    bench.run(10 * SECOND)
    assert bench.holds_something
    other = ActorHarness()
    other.store, other._logs, other.now = bench.store, bench._logs, bench.now
    other.new_actor("node-x")
    other.run()
    bench.is_member = False
    bench.release()
    bench.run(5 * SECOND)
    assert [notice.event for notice in bench.notices("fenced")] == ["fenced"]
    assert bench.actor.has_ended


def test_given_a_checkpoint_whose_answer_is_lost_then_the_position_goes_on_from_it(bench: ActorHarness) -> None:
    bench.lose_answer_of(a_checkpoint)
    bench.request(a_send("m-1", after="1s"))
    bench.run(10 * SECOND)
    bench.request(a_send("m-1b", after="1s"))
    bench.run(10 * SECOND)
    assert bench.notices("fenced") == []
    assert sum(int(str(row["delivered"])) for row in bench.rows("PROGRESS")) == 2


def test_given_minutes_of_deliveries_then_closed_tallies_and_the_stored_one_add_up(bench: ActorHarness) -> None:
    for number in range(30):
        bench.request(a_send(f"m-{number}", key="same-shard" if number % 2 else None, after=f"{number * 7}s") | {})
    bench.run(6 * MINUTE)
    delivered = len(bench.on("out"))
    counted = sum(int(str(row["delivered"])) for row in [*bench.rows("PROGRESS"), *bench.rows("Y#")])
    assert counted == delivered


def test_given_many_cancels_at_once_then_their_inbox_rows_are_removed_together(bench: ActorHarness) -> None:
    """What piled up in an outage: a transaction for each one would take minutes to catch up."""
    ids = [f"m-{number}" for number in range(200)]
    bench.append(REQUESTS, 0, *(a_send(each, after="30s") for each in ids))
    bench.append(REQUESTS, 0, *(a_cancel(f"c-{each}", message_id=each) for each in ids))
    bench.run(10 * SECOND)
    assert {bench.status_of(f"c-{each}") for each in ids} == {"cancelled"}
    assert len(bench.commits("inboxed")) < len(ids) / INBOXED_TOGETHER_MAX * bench.holding.shards
    bench.run(MINUTE)
    assert bench.on("out") == []
