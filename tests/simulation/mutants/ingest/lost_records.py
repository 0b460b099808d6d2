"""Bugs in requests of which one record goes with its topic and another one outlives it in the inbox (docs/internals/protocol.md)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, around, operation_returning, returning
from tidegate_core.messages.one_shot import create_lookup, create_writer
from tidegate_core.messages.one_shot.create_lookup import Create
from tidegate_core.messages.one_shot.inbox_messages import InboxMessages

STORIES = "simulation/stories/ingest/test_lost_records.py"


def refused_at_once(original: Any, inboxed: InboxMessages, repeat: Create) -> bool:
    original(inboxed, repeat)
    return False


def on_rows_alone(original: Callable[[Create], None], create: Create) -> None:
    original(create)
    if create.is_answered_elsewhere:
        create.leans_on = None


RULES_OF_GONE_RECORDS = (
    Mutant(
        "repeats gone at once",
        "a repeat leaves the inbox before the record that it repeats is passed, and that record goes with its topic",
        breaks="I1",
        patches=(Patch(InboxMessages, "depends_on_log", returning(False)),),
        killed_by=f"{STORIES}::test_given_repeats_in_the_inbox_when_the_first_record_goes_with_its_topic_then_the_message_is_sent_once[1]",
    ),
    Mutant(
        "repeats refused at once",
        "a guard refuses a repeat for good that becomes the first record of its request; the next repeat does not see it",
        breaks="I8",
        patches=(Patch(InboxMessages, "depends_on_log", around(refused_at_once)),),
        killed_by=f"{STORIES}::test_given_repeats_in_the_inbox_when_the_first_record_goes_with_its_topic_then_the_message_is_sent_once[2]",
    ),
    Mutant(
        "nobody stands in",
        "a guard outlives the replacement that raised it and went with its topic, and covers the record that stayed",
        breaks="I1",
        patches=(Patch(create_lookup, "_stand_in", operation_returning(None)),),
        killed_by=f"{STORIES}::test_given_a_record_in_the_inbox_when_the_repeat_that_replaced_goes_with_its_topic_then_the_record_is_sent_in_its_place[unseen]",
    ),
    Mutant(
        "leaning on rows alone",
        "a record leaves the inbox for a repeat that has a guard and no rows yet, and that repeat goes with its topic",
        breaks="I1",
        patches=(Patch(create_writer, "classify", around(on_rows_alone)),),
        killed_by=f"{STORIES}::test_given_a_record_in_the_inbox_when_the_repeat_that_replaced_goes_with_its_topic_then_the_record_is_sent_in_its_place[seen by an owner in between]",
    ),
)
