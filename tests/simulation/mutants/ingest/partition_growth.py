"""Bugs in a map that grows, or whose topic is created again, while nodes run (docs/internals/protocol.md)."""

from __future__ import annotations

from typing import Any

from tests.simulation.mutants.ingest.sources import taking_all_of_that_name
from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, around, instead, operation_returning, returning
from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.actor_inputs import TopicFacts
from tidegate_core.engine.membership_lease import MapLease
from tidegate_core.ingest.topic_cursor import TopicCursor
from tidegate_core.messages.wire.withheld_rows import FormerOwnerRows
from tidegate_core.ownership import partition_actor
from tidegate_core.ownership.partition_actor import PartitionActor
from tidegate_core.rows import keys
from tidegate_core.shard import map_transition

STORIES = "simulation/stories/ingest/test_partition_growth.py"


def named_by_the_first_topic(
    original: Any, cursor: TopicCursor, host: ActorContext, topic: TopicFacts, topic_partition: int, *more: Any
) -> None:
    original(cursor, host, topic, topic_partition, *more)
    holding = host.holding
    if topic.name == holding.requests.name and holding.former_maps:
        first = holding.former_maps[0].topic_id
        cursor.key = keys.topic_position(holding.cluster_id, first, topic_partition)


def of_the_map_before_alone(original: Any, host: ActorContext) -> Any:
    before = host.holding.former_maps[-1:]
    return {
        key: former for key, former in original(host).items() if former.place[0] in {cut.topic_id for cut in before}
    }


def unproven(original: Any) -> Any:
    return lambda cursor, may_carry=None: original(cursor)


RULES_OF_GROWTH = (
    Mutant(
        "requests of another topic",
        "a request of the topic that was created again is read under the old id, and once more under its own",
        breaks="I6",
        patches=(Patch(PartitionActor, "_take_records", instead(taking_all_of_that_name)),),
        killed_by=f"{STORIES}::test_given_a_requests_topic_that_is_created_again_and_longer_then_each_record_is_read_once",
    ),
    Mutant(
        "map not carried",
        "a holder of the older map writes rows, and moves its position, for a shard whose new owner has loaded its window",
        breaks="I1",
        patches=(Patch(partition_actor, "await_former_positions", operation_returning({})),),
        killed_by=f"{STORIES}::test_given_a_grown_map_when_a_holder_of_the_old_one_reads_on_then_its_message_is_delivered",
    ),
    Mutant(
        "a position raised unproven",
        "a node that the group expelled raises a position to the next map; its holder does not know that map, and sends cancelled messages",
        breaks="I7",
        patches=(Patch(TopicCursor, "raise_epoch", unproven),),
        killed_by="unit/tidegate_core/ownership/test_partition_actor.py::test_given_a_late_raise_under_the_next_map_then_nobody_takes_the_shards_of_the_rightful_one_who_goes_by_the_one_before",
    ),
    Mutant(
        "a map that is trusted for ever",
        "a holder that has not read the next map sends messages that the owner under that map has cancelled or replaced",
        breaks="I7",
        patches=(Patch(MapLease, "holds", returning(True)),),
        killed_by=f"{STORIES}::test_given_a_holder_that_has_not_read_the_map_for_long_then_it_sends_no_cancelled_message",
    ),
    Mutant(
        "rows of another map",
        "rows that a holder of the older map wrote are sent before their create is read again, and once more after that",
        breaks="I8",
        patches=(Patch(FormerOwnerRows, "_is_unread", returning(False)),),
        killed_by=f"{STORIES}::test_given_rows_of_the_old_map_when_their_record_is_read_again_after_its_time_then_it_is_sent_once",
    ),
    Mutant(
        "one position for all topics",
        "a topic that was created again is read from the position in the old one, and the records before it are never read",
        breaks="I8",
        patches=(Patch(TopicCursor, "__init__", around(named_by_the_first_topic)),),
        killed_by=Seeds(within=4, trap="requests_topic_made_anew"),
    ),
    Mutant(
        "a gone record's rows",
        "an unread request is repeated after its topic was created again, and its old rows say that it exists",
        breaks="I8",
        patches=(Patch(FormerOwnerRows, "is_gone", returning(False)),),
        killed_by=f"{STORIES}::test_given_an_unread_request_when_its_topic_is_created_again_then_its_repeat_is_delivered_once",
    ),
    Mutant(
        "topics of before forgotten",
        "unread records of a topic are gone with it, and come back once the topic that followed is gone too",
        breaks="I6",
        patches=(Patch(map_transition, "former_positions", around(of_the_map_before_alone)),),
        killed_by=f"{STORIES}::test_given_an_unread_request_when_its_topic_is_created_again_twice_then_it_stays_gone",
    ),
)
