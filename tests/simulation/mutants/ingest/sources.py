"""Bugs in sources: which records count, and what waits for them (docs/internals/protocol.md)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, around, instead, operation_returning, returning
from tidegate_core.engine.actor_inputs import RecordsArrived
from tidegate_core.evidence import watermark
from tidegate_core.ingest import event_decoding, source_mapping
from tidegate_core.ingest.event_decoding import SourceEvents
from tidegate_core.ownership import evidence_deadlines
from tidegate_core.ownership.partition_actor import PartitionActor
from tidegate_core.rows.source_list import Source, Sources
from tidegate_core.shard.events.subscription_index import Subscription

Opened = list[tuple[Source, Mapping[str, int]]]

STORIES = "simulation/stories/ingest/test_sources.py"
TESTS_OF_SOURCE_SILENCE = "unit/tidegate_core/ingest/test_source_silence.py"


def mapping_all_that_is_there(sources_of: Callable[..., Any], *arguments: Any) -> Generator[Any, Any, Opened]:
    found = yield from sources_of(*arguments)
    return [(source, {}) for source, _ in found]


def reading_the_list_once(sources_of: Callable[..., Any]) -> Any:
    known: dict[int, Opened] = {}

    def remembered(reading: SourceEvents, *arguments: Any) -> Generator[Any, Any, Opened]:
        if not known.get(id(reading)):
            known[id(reading)] = yield from sources_of(reading, *arguments)
        return known[id(reading)]

    return remembered


def naming_open_ones_only(sources: Sources, namespaces: object) -> tuple[str, ...]:
    return tuple(sorted({each.spec.topic for each in sources.entries if each.is_open}))


def hearing_what_nobody_named(
    listener: Subscription, topic_id: str, topic_partition: int, offset: int, append_time: int
) -> bool:
    return offset >= listener.offsets.get(f"{topic_id}/{topic_partition}", 0)


def taking_all_of_that_name(actor: PartitionActor, arrived: RecordsArrived) -> None:
    cursor = actor._cursors.get((arrived.topic, arrived.topic_partition))
    if cursor is not None:
        cursor.offer(arrived.records)


def all_in_one(those: Iterable[Any], _: Any) -> list[list[Any]]:
    return [found] if (found := list(those)) else []


def without_its_place(identity: Callable[..., str]) -> Any:
    return lambda mapped, asked, origin: identity(mapped, asked._replace(place=None), origin)


RULES_OF_SOURCES = (
    Mutant(
        "one wait for all namespaces",
        "time-outs of every namespace of a shard wait five minutes for one source that nobody reads",
        breaks="liveness",
        patches=(Patch(evidence_deadlines, "_by_namespace", instead(all_in_one)),),
        killed_by=f"{STORIES}::test_given_an_unread_source_when_a_time_out_of_another_namespace_passes_then_it_does_not_wait",
    ),
    Mutant(
        "before the source",
        "a source maps records that are older than the source",
        breaks="I3",
        patches=(Patch(SourceEvents, "sources_of", around(mapping_all_that_is_there)),),
        killed_by=f"{STORIES}::test_given_a_record_that_is_older_than_its_source_then_no_schedule_runs",
    ),
    Mutant(
        "one id for a list",
        "all elements of a record's list have the id of their record, so that one of them counts",
        breaks="I3",
        patches=(Patch(source_mapping, "_identity", without_its_place),),
        killed_by=Seeds(within=12, trap="sources"),
    ),
    Mutant(
        "one place for a list",
        "all elements of a record's list have one tag in the page, so that who takes over takes them for one event",
        breaks="I3",
        patches=(Patch(event_decoding, "_place_tag", returning("0000")),),
        killed_by="unit/tidegate_core/commands/test_source_lists.py::test_given_a_crash_after_each_effect_then_each_element_counts_once[ids by place]",
    ),
    Mutant(
        "old list",
        "records are mapped by the sources that a holder knew before it fetched them",
        breaks="I3",
        patches=(Patch(SourceEvents, "sources_of", reading_the_list_once),),
        killed_by="unit/tidegate_core/ingest/test_source_topics.py::test_given_a_source_made_anew_and_a_reader_of_the_topic_of_before_it_then_what_it_still_finds_is_no_event[the topic too]",
    ),
    Mutant(
        "unlisted",
        "an activation does not name the topic of a source that is being opened",
        breaks="I3",
        patches=(Patch(Sources, "topics_of", instead(naming_open_ones_only)),),
        beside=(Patch(Subscription, "accepts", instead(hearing_what_nobody_named)),),
        killed_by=f"{STORIES}::test_given_a_source_that_is_being_opened_when_a_schedule_is_activated_then_earlier_records_do_not_count",
    ),
    Mutant(
        "watermark of sources",
        "a time-out does not wait for unread records in the topics of sources",
        breaks="I3",
        patches=(Patch(watermark, "present_sources", operation_returning(Sources())),),
        killed_by=f"{TESTS_OF_SOURCE_SILENCE}::test_given_a_time_out_and_records_that_are_not_read_then_it_waits_for_them",
    ),
    Mutant(
        "a mark for sure",
        "unread offsets are taken for marks of a transaction, without a check",
        breaks="I3",
        patches=(Patch(watermark, "_with_records", operation_returning({})),),
        killed_by=f"{TESTS_OF_SOURCE_SILENCE}::test_given_a_time_out_and_records_that_are_not_read_then_it_waits_for_them",
    ),
    Mutant(
        "read on in another topic",
        "records of a topic that was created again move the position of the old one, and are read again under their own",
        breaks="I3",
        patches=(Patch(PartitionActor, "_take_records", instead(taking_all_of_that_name)),),
        killed_by="unit/tidegate_core/ingest/test_topic_watch.py::test_given_a_topic_made_anew_and_longer_than_before_then_none_of_it_moves_the_old_position_and_it_counts_once[known]",
    ),
)
