"""Bugs in how the events topic is read while it changes, or while its end offsets are not known (docs/internals/protocol.md)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, around, instead, returning
from tidegate_core.commands import timed_resume
from tidegate_core.commands.apply_request import ApplyRequest
from tidegate_core.commands.cluster_object import ApplyClusterObject
from tidegate_core.commands.timed_resume import ResumeWhenDue
from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.actor_inputs import TopicFacts
from tidegate_core.evidence import watermark
from tidegate_core.ingest.topic_follower import TopicFollower
from tidegate_core.rows.effects import ReadEndOffsets
from tidegate_core.shard.events import end_offsets

STORIES = "simulation/stories/ingest/test_events_topic.py"
TESTS_OF_REQUESTS_BEHIND_UNTIL = "unit/tidegate_core/commands/test_requests_behind_until.py"
TESTS_OF_EVENTS_WATCH = "unit/tidegate_core/ingest/test_topic_watch.py"
TESTS_OF_SILENT_EVENTS_TOPIC = "unit/tidegate_core/evidence/test_silent_events_topic.py"


def by_its_own_number(topics: TopicFollower, facts: TopicFacts) -> range:
    first = topics._host.holding.topic_partition % facts.topic_partitions
    return range(first, facts.topic_partitions, facts.topic_partitions)


def believing_that_it_holds(_: TopicFollower) -> Generator[Any, Any, None]:
    yield ()


def as_it_was(host: ActorContext, topic: str, ends: Mapping[str, int]) -> Generator[Any, Any, dict[str, int]]:
    yield from ()
    return dict(ends)


def waiting_in_the_lane(host: ActorContext, after: int) -> Generator[Any, Any, dict[str, dict[str, int]]]:
    answer: Any = yield from host.read_for_good(ReadEndOffsets(host.holding.events_topic))
    return {host.holding.events_topic: dict(answer.offsets)}


def by_what_was_read_before(resume_when_due: Callable[..., ResumeWhenDue]) -> Any:
    return lambda timer, memory, recurring, begun: resume_when_due(timer, memory, recurring, 0)


def asked_as_it_is_read(
    follow: Callable[..., Generator[Any, Any, None]],
    topics: TopicFollower,
    topic: str,
    asked: object,
    version: int = 0,
) -> Generator[Any, Any, None]:
    yield from follow(topics, topic, asked, version)
    if topic in topics._asked_at:
        topics._asked_at[topic] = topics._host.now


RULES_OF_EVENTS_TOPIC = (
    Mutant(
        "ends in the shard writer",
        "a request that needs the end offsets of the events topic holds up its whole shard until the broker answers",
        breaks="liveness",
        patches=(Patch(end_offsets, "_own_ends_at_once", instead(waiting_in_the_lane)),),
        killed_by=f"{TESTS_OF_SILENT_EVENTS_TOPIC}::test_given_one_that_waits_for_it_then_what_the_store_alone_decides_goes_on_and_so_does_a_stop[False-update]",
    ),
    Mutant(
        "stop behind a resume that waits",
        "an emergency stop waits for a wide resume that waits for the events topic",
        breaks="liveness",
        patches=(Patch(ApplyClusterObject, "ordering_key", instead(property(lambda request: "controls"))),),
        killed_by=f"{TESTS_OF_SILENT_EVENTS_TOPIC}::test_given_one_that_waits_for_it_then_what_the_store_alone_decides_goes_on_and_so_does_a_stop[False-wide resume]",
    ),
    Mutant(
        "passing what stands aside",
        "a request passes an earlier one on its schedule that waits for the events topic; the earlier one is superseded",
        breaks="answers",
        patches=(Patch(ApplyRequest, "ordering_key", instead(property(lambda request: None))),),
        killed_by=f"{TESTS_OF_SILENT_EVENTS_TOPIC}::test_given_requests_on_one_schedule_then_they_keep_their_order_and_those_on_others_do_not_wait",
    ),
    Mutant(
        "ends of before the end",
        "a suspension that a request ends, ends at end offsets that were read before; events in between count",
        breaks="I3",
        patches=(Patch(timed_resume, "resume_when_due", by_what_was_read_before),),
        killed_by=f"{TESTS_OF_REQUESTS_BEHIND_UNTIL}::test_given_ends_that_were_read_for_others_before_the_end_then_what_came_between_them_is_ignored",
    ),
    Mutant(
        "end as of its suspend",
        "without end offsets, a suspension that ends by itself counts from its record on, and not from its end",
        breaks="I3",
        patches=(Patch(ResumeWhenDue, "_asked_at", instead(property(lambda resume: None))),),
        killed_by=f"{TESTS_OF_REQUESTS_BEHIND_UNTIL}::test_given_a_topic_partition_that_no_broker_told_of_at_the_end_then_what_came_there_before_it_does_not_count[-1-0]",
    ),
    Mutant(
        "waiting for what is gone",
        "evidence after a deadline waits five minutes for unread records of a topic that is gone",
        breaks="liveness",
        patches=(Patch(watermark, "_present_ends", instead(as_it_was)),),
        killed_by=f"{STORIES}::test_given_an_unread_record_when_its_topic_is_created_again_then_no_deadline_waits_for_it",
    ),
    Mutant(
        "overlap of readers",
        "the owner of an events topic partition depends on how many the holder has seen; two holders fence each other",
        breaks="liveness",
        patches=(Patch(TopicFollower, "_mine", instead(by_its_own_number)),),
        killed_by=f"{TESTS_OF_EVENTS_WATCH}::test_given_one_of_two_holders_then_it_reads_those_that_the_maps_number_gives_it[0-new0]",
    ),
    Mutant(
        "growth unseen",
        "new topic partitions of the events topic are read only by nodes that start later",
        breaks="I3",
        patches=(Patch(TopicFollower, "is_due", instead(lambda topics, topic: topic not in topics._asked_at)),),
        killed_by=f"{TESTS_OF_EVENTS_WATCH}::test_given_a_topic_that_grows_then_what_is_new_is_found_within_a_minute_and_counts_whole",
    ),
    Mutant(
        "growth amid a take-over",
        "the minute until a holder asks about a topic again begins when it reads the topic, not when it asked",
        breaks="liveness",
        patches=(Patch(TopicFollower, "follow", around(asked_as_it_is_read)),),
        killed_by=f"{TESTS_OF_EVENTS_WATCH}::test_given_a_topic_that_grows_while_it_is_taken_over_then_what_is_new_is_found_a_minute_after_it_was_told_of",
    ),
    Mutant(
        "old topic goes on",
        "cursors of a deleted topic stay in the way of the topic that was created again",
        breaks="I3",
        patches=(Patch(TopicFollower, "_is_another", returning(False)),),
        killed_by=f"{TESTS_OF_EVENTS_WATCH}::test_given_a_topic_made_anew_then_what_waits_for_the_former_one_waits_until_the_next_is_read",
    ),
    Mutant(
        "growth seen by a former holder",
        "a former holder that notices growth late raises positions, and fences the present holder",
        breaks="liveness",
        patches=(Patch(TopicFollower, "_check_holding", instead(believing_that_it_holds)),),
        killed_by=f"{TESTS_OF_EVENTS_WATCH}::test_given_a_former_holder_that_learns_of_growth_late_then_it_raises_nothing",
    ),
)
