"""Planted bugs in messages without a key whose request has a record in a deleted requests topic and one in the topic that
replaced it (docs/internals/protocol.md).
"""

from __future__ import annotations

from tests.simulation.mutants.mutant import Mutant, Patch, instead, returning
from tidegate_core.messages.one_shot import create_lookup
from tidegate_core.messages.one_shot.create_lookup import Create
from tidegate_core.messages.wire import shard_messages
from tidegate_core.rows.message import FIRST_VERSION

TESTS = "unit/tidegate_core/messages/wire/test_withheld_rows.py"


RULES_OF_LATE_COPIES = (
    Mutant(
        "one version for all topics",
        "rows of a record that went with its topic come late, and replace those of its repeat",
        breaks="I1",
        patches=(Patch(shard_messages, "version_without_key", returning(FIRST_VERSION)),),
        killed_by=f"{TESTS}::test_given_late_rows_of_a_record_that_is_gone_then_they_replace_nothing_of_its_repeat[it is sent-both rows]",
    ),
    Mutant(
        "versions of its own topic",
        "a repeat in the topic that followed does not see the message that the topic before has made",
        breaks="I8",
        patches=(Patch(create_lookup, "_versions_looked_up", instead(lambda plane, create: [create.version])),),
        killed_by=f"{TESTS}::test_given_three_topics_then_each_repeat_meets_the_first_record_that_was_read[False]",
    ),
    Mutant(
        "refused under a key alone",
        "late rows of a repeat without a key, of the topic before, are sent beside the message that it repeats",
        breaks="I8",
        patches=(Patch(Create, "has_its_own_version", instead(property(lambda create: create.name.keyed))),),
        killed_by=f"{TESTS}::test_given_late_rows_of_a_repeat_in_the_inbox_that_another_topic_had_overtaken_then_they_are_not_sent",
    ),
    Mutant(
        "one version with what is gone",
        "late rows of a record that went with its topic replace those of its repeat, of that very topic, which was passed",
        breaks="I1",
        patches=(Patch(create_lookup, "_outlives_its_topic", returning(False)),),
        killed_by=f"{TESTS}::test_given_late_rows_of_a_record_that_is_gone_then_they_replace_nothing_of_its_repeat_in_the_inbox[it is sent-both rows]",
    ),
)
