"""Bugs in hand-overs: a shard is not asked to drain, takes new work, or does not wait for its last messages (docs/internals/protocol.md).

See "A message's life" there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, around, instead, operation_returning
from tidegate_core.engine.operations import Operation
from tidegate_core.ingest.request_ingest import RequestIngest
from tidegate_core.ingest.topic_cursor import TopicCursor
from tidegate_core.messages.message_scheduler import MessageScheduler
from tidegate_core.messages.wire.checkpoints import Checkpoints
from tidegate_core.ownership.inbox import Inbox
from tidegate_core.ownership.shard_actor import ShardActor
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.item_codec import from_item

STORIES = "simulation/stories/ownership/test_hand_overs.py"
TESTS_OF_SENDING_HAND_OVERS = "unit/tidegate_core/messages/one_shot/test_sending_hand_overs.py"


def forgetting_alone(cursor: TopicCursor) -> None:
    cursor._buffer.clear()


def from_the_first(init: Callable[..., None], cursor: TopicCursor, *args: Any, **named: Any) -> None:
    init(cursor, *args, **named)
    cursor._reads = True


def leaving_them_to_the_first_look(inbox: Inbox) -> Operation[None]:
    for item in (yield from inbox._writer.read_range("I#", "I#~")):
        row = from_item(InboxRow, item)
        if row.kind == "M":
            inbox._plane.messages.uncommitted.expect(row.origin)


def behind_the_batch(
    move_through: Callable[..., Operation[None]], ingest: RequestIngest, inboxed: Sequence[Any]
) -> Operation[None]:
    planes, ingest._planes = ingest._planes, {}
    yield from move_through(ingest, inboxed)
    ingest._planes = planes
    for plane in planes.values():
        plane.position_is(ingest.cursor.at.next)


def sending_what_was_taken(parted: Callable[..., Any], checkpoints: Checkpoints, wanted: Any) -> Any:
    """As far as the bound allows, hand-over or not."""
    closed, checkpoints.closed = checkpoints.closed, False
    parts = parted(checkpoints, wanted)
    checkpoints.closed = closed
    return parts


HAND_OVERS = (
    Mutant(
        "held in front of what was sent",
        "a fire that a request holds during a hand-over counts as done, and messages after it are sent again",
        breaks="I8",
        patches=(Patch(MessageScheduler, "_holds_fires_up", instead(lambda plane: plane.queue.late_fires_wait)),),
        killed_by=f"{TESTS_OF_SENDING_HAND_OVERS}::test_given_a_request_that_holds_a_schedule_amid_a_hand_over_then_that_waits_for_it_and_nothing_repeats",
    ),
    Mutant(
        "told to delivery planes alone",
        "a shard that is recovered during a hand-over begins the requests in its inbox",
        breaks="I8",
        patches=(Patch(ShardActor, "drain", operation_returning(None)),),
        killed_by=f"{TESTS_OF_SENDING_HAND_OVERS}::test_given_a_hand_over_before_all_is_recovered_then_no_request_is_begun_behind_it",
    ),
    Mutant(
        "told behind the batch",
        "a message waits for requests that were read with it, though the position is past its record",
        breaks="I8",
        patches=(Patch(RequestIngest, "_move_through", around(behind_the_batch)),),
        killed_by="unit/tidegate_core/ingest/test_request_ingest.py::test_given_a_batch_of_which_a_part_is_durable_then_its_messages_are_sent_however_long_the_rest_takes",
    ),
    Mutant(
        "sent amid a hand-over",
        "messages that were taken before a hand-over are sent after a predecessor's row, and again by the next owner",
        breaks="I8",
        patches=(Patch(Checkpoints, "split_at_bound", around(sending_what_was_taken)),),
        killed_by=f"{TESTS_OF_SENDING_HAND_OVERS}::test_given_a_payload_that_is_being_read_as_a_hand_over_begins_then_its_message_is_the_next_owners",
    ),
    Mutant(
        "records behind a drain",
        "a drain forgets unread records; a later record from a busy node's queue moves the position past them",
        breaks="I1",
        patches=(Patch(TopicCursor, "stop_accepting", instead(forgetting_alone)),),
        killed_by="unit/tidegate_core/ingest/test_topic_cursor.py::test_given_records_behind_a_drain_then_the_position_does_not_pass_those_before_them[tidegate.requests-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]",
    ),
    Mutant(
        "records before a reading",
        "a record from a busy node's queue moves the position past records before it while its reader starts again",
        breaks="I1",
        patches=(Patch(TopicCursor, "__init__", around(from_the_first)),),
        killed_by=f"{STORIES}::test_given_records_that_arrive_while_their_reader_recovers_then_all_messages_are_sent",
    ),
    Mutant(
        "inbox left to its first look",
        "a hand-over comes before the first reading of the inbox ends; messages after a predecessor's row are sent again",
        breaks="I8",
        patches=(Patch(Inbox, "hand_messages", instead(leaving_them_to_the_first_look)),),
        killed_by=f"{TESTS_OF_SENDING_HAND_OVERS}::test_given_a_hand_over_before_all_is_recovered_then_what_lay_in_the_inbox_was_dealt_with_and_nothing_repeats",
    ),
    Mutant(
        "log left before it is read again",
        "a hand-over comes in the middle of a take-over; messages after a predecessor's row are sent again",
        breaks="I8",
        patches=(Patch(MessageScheduler, "waits_for_the_log", instead(property(lambda plane: False))),),
        killed_by=f"{TESTS_OF_SENDING_HAND_OVERS}::test_given_a_hand_over_before_the_log_is_read_again_then_it_waits_for_what_stands_before_what_was_sent",
    ),
)
