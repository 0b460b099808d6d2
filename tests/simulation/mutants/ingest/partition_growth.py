"""Rules of a map that grows, or whose topic is made anew, while nodes run (docs/protocol.md), each switched off in the interleaving that
it is against.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.simulation.mutants.clauses.clause_mutant import dropped
from tests.simulation.mutants.ingest.sources import taking_all_of_that_name
from tests.simulation.mutants.mutant import Mutant, Patch
from tidegate_core.decisions import former_maps, partition_actor
from tidegate_core.decisions.delivery_plane.read_elsewhere import ReadElsewhere
from tidegate_core.decisions.guard import MapGuard
from tidegate_core.decisions.host import Host
from tidegate_core.decisions.inputs import TopicFacts
from tidegate_core.decisions.partition_actor import PartitionActor
from tidegate_core.decisions.topic_cursor import TopicCursor
from tidegate_core.store import keys

TESTS = "simulation/stories/ingest/test_partition_growth.py"

# -- bugs -----------------------------------------------------------------------------------------------------------------


def at_once(_: Any) -> Any:
    def nothing_is_carried(*_: Any) -> Any:
        yield from ()
        return {}

    return nothing_is_carried


def named_by_the_first_topic(original: Any) -> Any:
    def begin(cursor: TopicCursor, host: Host, topic: TopicFacts, topic_partition: int, *more: Any) -> None:
        original(cursor, host, topic, topic_partition, *more)
        holding = host.holding
        if topic.name == holding.requests.name and holding.former_maps:
            first = holding.former_maps[0].topic_id
            cursor.key = keys.topic_position(holding.cluster_id, first, topic_partition)

    return begin


def whatever_is_written(_: Any) -> Any:
    return lambda rows, origin: False


def of_the_map_before_alone(original: Any) -> Any:
    def positions(host: Host) -> Any:
        before = host.holding.former_maps[-1:]
        return {
            key: former for key, former in original(host).items() if former.place[0] in {cut.topic_id for cut in before}
        }

    return positions


def whatever_was_read(_: Any) -> Any:
    return lambda rows, timer: False


def unproven(original: Any) -> Any:
    return lambda cursor, may_carry=None: original(cursor)


def at_any_time(_holds: Any) -> Any:
    return lambda self, version, now: True


RULES_OF_GROWTH = (
    Mutant(
        "requests of another topic",
        "a request of the topic that was made anew is read under the old id, and once more under its own",
        breaks="I6",
        patches=(Patch(PartitionActor, "_take_records", taking_all_of_that_name),),
        killed_by=f"{TESTS}::test_given_a_requests_topic_that_is_created_again_and_longer_then_each_record_is_read_once",
    ),
    Mutant(
        "map not carried",
        "a holder of the older map writes rows, and moves its position, for a shard whose new owner has loaded its window",
        breaks="I1",
        patches=(Patch(partition_actor, "carry_over", at_once),),
        killed_by=f"{TESTS}::test_given_a_grown_map_when_a_holder_of_the_old_one_reads_on_then_its_message_is_delivered",
    ),
    Mutant(
        "a position raised unproven",
        "who was put out by the group has a position carry the next map, beside its holder, who has not heard of that and sends what was cancelled",
        breaks="I7",
        patches=(Patch(TopicCursor, "raise_epoch", unproven),),
        killed_by="unit/tidegate_core/decisions/test_partition_actor.py::test_given_a_late_raise_under_the_next_map_then_nobody_takes_the_shards_of_the_rightful_one_who_goes_by_the_one_before",
    ),
    Mutant(
        "a map that is trusted for ever",
        "a holder that has not heard of the next map sends what the owner under that one has cancelled, or replaced",
        breaks="I7",
        patches=(Patch(MapGuard, "holds", at_any_time),),
        killed_by=f"{TESTS}::test_given_a_holder_that_has_not_read_the_map_for_long_then_it_sends_no_cancelled_message",
    ),
    Mutant(
        "rows of another map",
        "what a holder of the older map wrote is sent before its create is read again, and once more after that",
        breaks="I8",
        patches=(Patch(ReadElsewhere, "_is_unread", whatever_was_read),),
        killed_by=f"{TESTS}::test_given_rows_of_the_old_map_when_their_record_is_read_again_after_its_time_then_it_is_sent_once",
    ),
    Mutant(
        "one position for all topics",
        "a topic that was made anew is read from where the one before was left: what lies before that is read by nobody",
        breaks="I8",
        patches=(Patch(TopicCursor, "__init__", named_by_the_first_topic),),
        trap="requests_topic_made_anew",
        within=4,
    ),
    Mutant(
        "a gone record's rows",
        "a request that nobody has read before its topic was made anew is repeated, and its rows of before say that it is there",
        breaks="I8",
        patches=(Patch(ReadElsewhere, "is_gone", whatever_is_written),),
        killed_by=f"{TESTS}::test_given_an_unread_request_when_its_topic_is_created_again_then_its_repeat_is_delivered_once",
    ),
    Mutant(
        "topics of before forgotten",
        "what was not read of a topic is gone with it, and comes back once the topic that followed it is gone as well",
        breaks="I6",
        patches=(Patch(former_maps, "former_positions", of_the_map_before_alone),),
        killed_by=f"{TESTS}::test_given_an_unread_request_when_its_topic_is_created_again_twice_then_it_stays_gone",
    ),
    replace(
        dropped(
            "map_is",
            "#version = :version_seen",
            "two nodes that see different numbers write one version twice, and hold the same shards under both",
            breaks="I6",
        ),
        killed_by=f"{TESTS}::test_given_two_nodes_that_see_different_numbers_then_one_of_them_writes_the_second_map",
    ),
)
