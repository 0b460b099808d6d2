"""What a former owner still had under way reaches the store, or the world, after its successor has gone on (I5, I7, I8)."""

from __future__ import annotations

import pytest

from tests.support.builders import (
    MINUTE,
    RECEIPTS,
    SECOND,
    a_cancel,
    a_recurring,
    a_request,
    a_send,
    a_spec,
    an_apply,
    an_event,
    every,
    on_data,
)
from tests.support.harness.actor_harness import Behaviour
from tests.support.harness.effect_matchers import a_batch, a_commit, a_submit
from tests.support.harness.two_owners import BenchPair
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Effect, Read, Submit

AFTER = pytest.mark.parametrize("after", ["30s", "10m"], ids=["near", "beyond the window"])
"""A near row would be read by the next owner, a far one by this owner's next look at its window."""


def a_pair(behaviour: Behaviour | None = None) -> BenchPair:
    pair = BenchPair(shards=1, behaviour=behaviour)
    pair.run(SECOND)
    return pair


def a_look_up(effect: Effect) -> bool:
    """What a create with an id asks for, before its rows are made."""
    return isinstance(effect, Read) and any(key.sk.startswith("M#") for key in effect.keys)


def end_of(pair: BenchPair) -> None:
    """The late writes arrive; a third owner reads everything; time passes until all is due."""
    pair.first.release()
    pair.thaw(pair.first)
    pair.run(SECOND)
    pair.second.crash()
    pair.run(15 * MINUTE)


@AFTER
def test_given_a_batch_that_lands_after_its_message_was_replaced_then_only_the_newer_one_is_delivered(
    after: str,
) -> None:
    """DESIGN 5: a timer row is live when its version is not below its guard's, whoever wrote it and however late."""
    pair = a_pair()
    pair.first.hold_back(a_batch("messages"))
    pair.request(a_send("m-1", key="k", after=after))
    pair.take_over()
    pair.request(a_send("m-2", key="k", after=after))
    pair.run(SECOND)
    assert pair.status_of("m-2") == "accepted"
    assert len(pair.second.rows("D#")) == 1

    pair.first.release()
    assert len(pair.second.rows("D#")) == 2, "the batch brought the older row back"
    end_of(pair)
    assert pair.delivered() == ["m-2"]


@AFTER
@pytest.mark.parametrize(
    ("sent", "cancel"),
    [
        pytest.param({}, {"message_id": "m-1"}, id="by id"),
        pytest.param({"key": "k"}, {"key": "k"}, id="by key"),
    ],
)
def test_given_a_batch_that_lands_after_its_message_was_cancelled_then_it_is_not_delivered(
    sent: dict[str, str], cancel: dict[str, str], after: str
) -> None:
    """DESIGN 5, I7: the guard is raised before anything is deleted, so that what comes back is dead."""
    pair = a_pair()
    pair.first.hold_back(a_batch("messages"))
    pair.request(a_send("m-1", after=after, **sent))
    pair.take_over()
    pair.request(a_cancel(**cancel))
    pair.run(SECOND)
    assert pair.status_of("c-1") == "cancelled"
    assert pair.second.rows("D#") == []

    pair.first.release()
    assert len(pair.second.rows("D#")) == 1
    end_of(pair)
    assert pair.delivered() == []


def test_given_an_overdue_create_whose_rows_a_former_owner_puts_behind_it_later_then_its_cancel_is_too_late() -> None:
    """I8, seed 801136: the message row says another slot than that from which it was sent."""
    pair = a_pair()
    pair.request(a_send("m-0", after="8s"))
    pair.first.hold_back(a_look_up, answer_only=True)
    pair.request(a_send("m-1", deliver_at=format_instant(pair.first.now - MINUTE)))
    pair.take_over()
    pair.run(16 * SECOND)
    assert sorted(pair.delivered()) == ["m-0", "m-1"]
    before = pair.second.rows("M#")

    pair.thaw(pair.first)
    pair.first.release()
    assert pair.second.rows("M#") != before
    pair.request(a_cancel("c-1", message_id="m-1"))
    pair.run(2 * SECOND)
    assert pair.status_of("c-1") == "too_late"


def test_given_a_checkpoint_that_arrives_late_then_the_position_does_not_go_back() -> None:
    """I1, I8: it was decided under an older epoch, and from a place that is no longer the stored one."""
    pair = a_pair()
    pair.first.hold_back(a_commit("checkpoint"))
    pair.request(a_send("m-1", after="1s"))
    pair.run(7 * SECOND)
    assert pair.first.holds_something
    pair.take_over()
    pair.request(a_send("m-2", after="1s"))
    pair.run(10 * SECOND)
    before = pair.second.store.peek(keys.progress(0))

    end_of(pair)
    after = pair.second.store.peek(keys.progress(0))
    assert before is not None
    assert after is not None
    assert (after["fired_slot"], after["fired_id"]) == (before["fired_slot"], before["fired_id"])
    assert pair.delivered() == ["m-1", "m-1", "m-2"], "what the former one sent after its last checkpoint, once more"


def test_given_a_suspended_process_then_what_it_was_about_to_send_stays_where_it_is() -> None:
    """H17, DESIGN 3: no time-out fences it; the guard keeps it from sending, epochs from writing."""
    pair = a_pair()
    pair.request(a_send("m-1", after="5s"))
    pair.request(an_apply(a_spec(trigger=every("1m"))))
    pair.run(SECOND)
    pair.take_over()
    pair.run(30 * SECOND)
    before = pair.second.rows("")

    pair.thaw(pair.first)
    assert pair.second.rows("") == before
    pair.run(MINUTE)
    assert pair.delivered() == ["m-1"]
    assert pair.first.actor.has_ended
    assert len({order.run_id for order in pair.started}) == len(pair.started)


def test_given_an_acquire_that_arrives_late_then_the_rightful_owner_keeps_the_shard() -> None:
    """H7, DESIGN 3: an acquire records under which epoch of the topic partition it was made, and demands recorded ≤ mine."""
    pair = BenchPair(shards=1)
    pair.first.hold_back(a_commit("acquire"))
    pair.first.run()
    pair.take_over()
    pair.run(SECOND)
    lease = pair.second.store.peek(keys.lease(0))

    pair.first.is_member = False
    pair.first.release()
    pair.thaw(pair.first)
    assert pair.second.store.peek(keys.lease(0)) == lease
    pair.request(a_send("m-1", after="1s"))
    pair.run(MINUTE)
    assert pair.delivered() == ["m-1"]
    assert pair.second.notices("fenced") == []


def test_given_a_process_that_wakes_up_with_an_old_assignment_then_it_answers_nothing_while_the_rightful_owner_sends() -> (
    None
):
    """I7: its fence stops writes, and no message that the rightful owner has in memory: that one goes on until it meets it."""
    pair = a_pair()
    pair.request(an_apply(a_recurring(trigger=every("1s"))))
    pair.run(5 * SECOND)
    pair.freeze(pair.first)  # For less than a session: it stays the rightful one.
    pair.second.is_member = False
    pair.begin_second()
    pair.request(a_request("suspend", "ping"))
    pair.run(2 * SECOND)
    pair.join(pair.first)
    pair.run(20 * SECOND)
    assert pair.second.actor.has_ended
    (answered,) = [each.at for each in pair.on(RECEIPTS) if each.document["request_id"] == "suspend-ping"]
    assert max(each.at for each in pair.on("out")) <= answered


@pytest.mark.parametrize("identified", [True, False], ids=["with id", "by its content"])
def test_given_a_move_of_the_position_that_arrives_late_then_its_events_count_once(identified: bool) -> None:
    """H3, H5: the successor read the same records; each is handed out by the move that passes it, and that is one."""
    pair = a_pair(Behaviour(starts_after=None))
    pair.request(an_apply(a_spec(trigger=on_data(count=100))))
    pair.run(SECOND)
    pair.first.hold_back(a_commit("cursor"))
    event = an_event("d1")
    if not identified:
        del event["id"]
    pair.event(event)
    assert pair.first.holds_something
    pair.take_over()
    pair.run(SECOND)
    pair.first.release()
    pair.thaw(pair.first)
    pair.run(MINUTE)
    assert [row["counts"] for row in pair.second.rows("E#")] == [[1]]
    assert pair.second.rows("I#") == []


@pytest.mark.parametrize(("how", "why"), [("suspend", "suspended"), ("delete", "schedule_deleted")])
def test_given_a_submission_that_arrives_after_the_acknowledged_end_then_its_program_does_not_start(
    how: str, why: str
) -> None:
    """H11, I7: the end closes runs before the gate first, and the gate refuses what is closed."""
    pair = a_pair(Behaviour(runs_for=None))
    pair.request(an_apply(a_spec(trigger=every("1h"))))
    pair.first.hold_back(a_submit())
    pair.request(a_request("trigger"))
    pair.run(SECOND)
    assert pair.first.holds_something
    # The successor finds nothing of it on its own host, and its launcher is away.
    pair.second.hold_back(a_submit(), times=100)
    pair.take_over()
    pair.request(a_request(how))
    pair.run(SECOND)
    assert pair.status_of(f"{how}-nightly") == "accepted"

    pair.first.release()
    pair.thaw(pair.first)
    pair.second.release()
    pair.run(MINUTE)
    assert pair.started == []
    assert [entry[0] for entry in pair.second.ledger()] == [f"cancelled/{why}"]


@pytest.mark.parametrize(
    ("answered", "attempt"),
    [
        # Two processes of one attempt, on two hosts: nothing is known of the first, so it is submitted again.
        pytest.param(False, 1, id="unknown"),
        # It is known and cannot be found: closed, and the next attempt made, in one transaction.
        pytest.param(True, 2, id="known"),
    ],
)
def test_given_a_successor_that_cannot_find_what_was_submitted_then_one_program_passes_the_gate(
    answered: bool, attempt: int
) -> None:
    """H8, I2: names are an optimisation, here each host knows its own ones only; the gate lets one driver pass."""
    pair = a_pair(Behaviour(starts_after=20 * SECOND, runs_for=MINUTE))
    pair.request(an_apply(a_spec(trigger=every("1h"))))
    if not answered:
        pair.first.hold_back(a_submit(), answer_only=True)
    pair.request(a_request("trigger"))
    pair.run(SECOND)
    pair.take_over()
    pair.run(SECOND)
    pair.thaw(pair.first)
    pair.run(3 * MINUTE)
    assert len(pair.first.all_asked(Submit)) == 1
    assert len(pair.second.all_asked(Submit)) == 1
    assert [order.attempt for order in pair.started] == [attempt]
    assert [entry[3] for entry in pair.second.ledger()] == ["succeeded"]
