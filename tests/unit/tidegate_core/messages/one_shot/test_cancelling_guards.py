"""Guards that cancels leave: how long they are kept, and the answer of a cancel that is done again (I7)."""

from __future__ import annotations

import json

import pytest

from tests.simulation.stories.stage import comes_through_the_inbox
from tests.support.builders import HOUR, MINUTE, SECOND, a_cancel, a_position, a_send
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.cancel_bench import WHICH
from tests.support.harness.effect_matchers import a_batch, a_commit
from tidegate_core.messages.one_shot.cancellation import CANCEL_MARK
from tidegate_core.rows.effects import Commit, Write
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.message import Message, MessageFence
from tidegate_core.rows.store_operations import Delete, Key, Put


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


@pytest.mark.parametrize("after", ["1s", "3650d"])
def test_given_a_guard_then_it_outlives_what_it_covers_and_is_not_for_ever(bench: ActorHarness, after: str) -> None:
    bench.request(a_send("m-1", after=after))
    bench.request(a_send("k-1", key="k", after=after))
    bench.request(a_send("k-2", key="k", after="1s"))
    bench.request(a_send("k-3", key="k", after="1s"))
    bench.request(a_cancel(message_id="m-1"))
    bench.request(a_cancel("c-2", message_id="never-there"))
    rows = {from_item(Message, row).request_id: int(str(row["expires_at"])) for row in bench.rows("M#")}
    guards = sorted(int(str(row["expires_at"])) for row in bench.rows("G#"))
    assert len(guards) == 3
    assert guards[0] > bench.now // 1000 + 30 * 86_400  # The requests topic's retention, and more.
    assert guards[1] > rows["m-1"]
    assert guards[2] > max(rows.values())


def a_cancel_that_knows_no_rows(sent: dict[str, str], cancel: dict[str, str], after: str) -> tuple[ActorHarness, Write]:
    """Returns a bench whose former owner fell while it wrote the rows of a create, and what it wrote. Its successor met the cancel, read from
    another topic partition, before that create.
    """
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.lose(a_batch("messages"), times=10**6)
    bench.request(a_send("m-1", after=after, **sent))
    bench.run(SECOND)
    comes_through_the_inbox(bench, a_cancel(**cancel), bench.now)
    bench.end_scripts()
    bench.crash()
    bench.run(5 * SECOND)
    assert (bench.status_of("c-1"), bench.status_of("m-1")) == ("not_found", "superseded" if sent else "cancelled")
    return bench, next(each for each in bench.all_asked(Write) if each.batch.name == "messages")


@WHICH
def test_given_a_guard_that_expires_before_late_rows_of_what_it_covers_are_due_then_these_are_not_sent(
    sent: dict[str, str], cancel: dict[str, str]
) -> None:
    """Review: it was kept for 35 days, as its cancel knew of no row, and `superseded` was delivered on the 61st."""
    bench, late = a_cancel_that_knows_no_rows(sent, cancel, after=f"{60 * 24 + 1}h")
    bench.store.write(late.batch.actions)
    bench.run(MINUTE)
    bench.months(2)
    bench.run(2 * HOUR)
    assert bench.on("out") == []


@pytest.mark.parametrize(("after", "writes"), [("4d", 1), ("6d", 2)])
def test_given_a_guard_that_outlives_what_may_come_late_then_it_is_written_once_and_expires(
    after: str, writes: int
) -> None:
    bench, _ = a_cancel_that_knows_no_rows({"key": "k"}, {"key": "k"}, after)
    assert len([each for each in bench.all_asked(Commit) if a_commit("guard")(each)]) == writes
    (guard,) = (from_item(MessageFence, row) for row in bench.rows("G#"))
    assert (guard.expires_at is None) == (writes > 1)
    bench.crash()
    bench.run(5 * SECOND)
    assert [from_item(MessageFence, row) for row in bench.rows("G#")] == [guard]


def test_given_a_crash_before_the_receipt_of_a_cancel_by_key_then_an_older_delivery_does_not_make_it_too_late(
    bench: ActorHarness,
) -> None:
    """What was delivered under the key before is not what this cancel was about, also when it is done again."""
    bench.request(a_send("m-1", after="1s", key="k"))
    bench.run(10 * SECOND)
    bench.request(a_send("m-2", after="5m", key="k"))
    bench.run(SECOND)
    bench.hold_back(lambda effect: isinstance(effect, Write) and effect.batch.name == "receipt")
    bench.request(a_cancel(key="k"))
    assert bench.status_of("c-1") is None
    bench.crash()
    bench.run(SECOND)
    assert bench.status_of("c-1") == "cancelled"
    bench.run(10 * MINUTE)
    assert len(bench.on("out")) == 1


@pytest.mark.parametrize(("after", "status"), [("5m", "cancelled"), ("1s", "too_late")])
def test_given_a_cancel_by_key_that_is_done_again_behind_a_younger_record_then_it_is_answered_as_before(
    bench: ActorHarness, after: str, status: str
) -> None:
    """The younger one came from another topic partition and raised the guard above it: what it took back is still what it took
    back, and what was delivered before it is too late.
    """
    bench.request(a_send("m-1", after=after, key="k"))
    bench.run(10 * SECOND)
    bench.hold_back(lambda effect: isinstance(effect, Write) and effect.batch.name == "receipt")
    bench.request(a_cancel(key="k"))
    assert bench.status_of("c-1") is None
    bench.crash()
    (item,) = bench.rows("G#")
    raised = from_item(MessageFence, item)
    younger = a_position(99, at=bench.now + 1).text()
    guard = MessageFence(id=raised.id, live_from=younger, request_id="m-2", before=raised.live_from)
    key = Key(str(item["pk"]), str(item["sk"]))
    bench.store.write([Put(key, to_item(guard, key))])
    bench.run(SECOND)
    assert bench.status_of("c-1") == status
    bench.run(10 * MINUTE)
    assert len(bench.on("out")) == (1 if after == "1s" else 0)


@WHICH
def test_given_create_and_cancel_that_are_both_done_again_after_a_crash_then_the_cancel_is_answered_as_before(
    bench: ActorHarness, sent: dict[str, str], cancel: dict[str, str]
) -> None:
    """The create is refused by the guard and its rows go: the cancel finds nothing, and yet it was the one that took it back."""
    bench.request(a_send("m-1", after="5m", **sent))
    bench.run(SECOND)
    bench.hold_back(lambda effect: isinstance(effect, Write) and effect.batch.name == "receipt")
    bench.request(a_cancel(**cancel))
    bench.crash()
    for item in bench.rows("M#"):
        bench.store.write([Delete(Key(str(item["pk"]), str(item["sk"])))])
    bench.run(SECOND)
    assert bench.status_of("c-1") == "cancelled"


def test_given_a_cancel_whose_later_record_was_begun_by_a_predecessor_then_the_earlier_one_is_answered_for_what_that_covered(
    bench: ActorHarness,
) -> None:
    """It was written twice; the guard is the later record's, and the message is still there (simulation, seed 131)."""
    bench.request(a_send("m-1", key="k", after="5m"))
    (item,) = bench.rows("M#")
    message = from_item(Message, item)
    later = a_position(99, at=bench.now + MINUTE).text()
    guard = MessageFence(id=message.id, live_from=later, request_id=f"{CANCEL_MARK}c-1", through=message.slot)
    shard = int(str(item["pk"])[3:])
    bench.store.write([Put(guard.key(shard), to_item(guard, guard.key(shard)))])
    bench.request(a_cancel(key="k"))
    assert bench.status_of("c-1") == "cancelled"
    assert bench.rows("D#") == []
    bench.run(10 * MINUTE)
    assert bench.on("out") == []


@pytest.mark.parametrize("waited", [0, MINUTE], ids=["before its time", "after it"])
def test_given_a_message_that_was_cancelled_then_another_cancel_says_so_too(bench: ActorHarness, waited: int) -> None:
    """Found in review: behind the message's time the second one was told `too_late` of what was never sent."""
    bench.request(a_send("m-1", after="10s"))
    bench.run(SECOND)
    bench.request(a_cancel("c-1", message_id="m-1"))
    bench.run(SECOND)
    assert bench.status_of("c-1") == "cancelled"
    bench.request(a_send("m-2", after="30s"))  # A checkpoint passes what it passes.
    bench.run(waited)
    bench.request(a_cancel("c-2", message_id="m-1"))
    bench.run(SECOND)
    assert bench.status_of("c-2") == "cancelled"
    assert [each.document["of"] for each in bench.on("out")] == ["m-2"] * (waited > 0)


def test_given_a_message_that_was_delivered_then_each_cancel_is_too_late(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", after="1s"))
    bench.run(10 * SECOND)
    for number in range(2):
        bench.request(a_cancel(f"c-{number}", message_id="m-1"))
        bench.run(SECOND)
        assert bench.status_of(f"c-{number}") == "too_late"


def test_given_another_namespaces_cancel_under_the_same_id_then_its_receipt_answers_nobody_else() -> None:
    """Found in review: who cancelled a printed id of somebody else's message was told `cancelled`."""
    bench = ActorHarness(shards=1)
    bench.run(SECOND)
    bench.request(a_send("m-1", after="10m"))
    bench.run(SECOND)
    (item,) = bench.rows("M#")
    message = from_item(Message, item)
    printed = f"0000-{message.id}"
    bench.request(a_cancel("c-1", message_id="m-1"))
    for request in (
        a_send("other", after="10m"),
        a_cancel("c-1", message_id="other"),
        a_cancel("c-9", message_id=printed),
    ):
        bench.request({**request, "namespace": "flights"})
        bench.run(SECOND)
    assert bench.status_of("c-9") == "not_found"


def test_given_the_same_namespace_then_a_second_cancel_gets_the_firsts_answer(bench: ActorHarness) -> None:
    bench.request(a_send("m-1", after="10m"))
    bench.request(a_cancel("c-1", message_id="m-1"))
    bench.run(HOUR)
    bench.request(a_cancel("c-2", message_id="m-1"))
    bench.run(SECOND)
    assert bench.status_of("c-2") == "cancelled"


def test_given_an_answer_that_a_newer_release_stored_then_a_repeat_is_told_it_as_it_is(bench: ActorHarness) -> None:
    """Behind a roll-back: an answer with more in it than this release knows ended the topic partition."""
    bench.request(a_send("m-1", after="5m"))
    bench.request(a_cancel(message_id="m-1"))
    (row,) = [each for each in bench.rows("RQ#") if each["request_id"] == "c-1"]
    newer = json.dumps({**json.loads(str(row["body"])), "came_by": "a newer release"})
    bench.store.write([Put(Key(str(row["pk"]), str(row["sk"])), {**row, "body": newer})])
    bench.request(a_cancel(message_id="m-1"))
    assert bench.on("tidegate.receipts")[-1].value == newer.encode()
    bench.request(a_cancel("c-2", message_id="m-1"))
    assert bench.status_of("c-2") == "cancelled"
