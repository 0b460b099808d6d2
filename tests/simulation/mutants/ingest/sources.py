"""Rules of sources (docs/protocol.md), each switched off in the interleaving that it is against."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import Stage, a_commit
from tests.simulation.mutants.sketch.protocol_sketch import ran
from tests.support.builders import MINUTE, SECOND, Doc, a_spec, all_of, an_apply, an_event, on_data
from tests.support.harness.actor_harness import Bench
from tidegate_core.decisions.event_index import Listener
from tidegate_core.decisions.event_reading import SourceEvents
from tidegate_core.decisions.inputs import LogRecord, RecordsArrived
from tidegate_core.decisions.partition_actor import PartitionActor
from tidegate_core.decisions.run_plane import deadlines, watermark
from tidegate_core.effects import Effect, Poke, ReadEndOffsets
from tidegate_core.records.sources import Source, Sources
from tidegate_core.sources import mapping

TOPIC = "lake.commits"
TOPIC_ID = "c" * 32
ENDS = ReadEndOffsets(TOPIC, may_be_missing=True)
Opened = list[tuple[Source, Mapping[str, int]]]

# -- bugs -----------------------------------------------------------------------------------------------------------------


def mapping_all_that_is_there(sources_of: Callable[..., Any]) -> Any:
    def mapped(*arguments: Any) -> Generator[Any, Any, Opened]:
        found = yield from sources_of(*arguments)
        return [(source, {}) for source, _ in found]

    return mapped


def knowing_of_none(_: Any) -> Any:
    def none(_: Any) -> Generator[Any, Any, Sources]:
        yield from ()
        return Sources()

    return none


def finding_none(_: Any) -> Any:
    def none(*_: Any) -> Generator[Any, Any, dict[str, tuple[int, int]]]:
        yield from ()
        return {}

    return none


def reading_the_list_once(sources_of: Callable[..., Any]) -> Any:
    known: dict[int, Opened] = {}

    def remembered(reading: SourceEvents, *arguments: Any) -> Generator[Any, Any, Opened]:
        if not known.get(id(reading)):
            known[id(reading)] = yield from sources_of(reading, *arguments)
        return known[id(reading)]

    return remembered


def naming_open_ones_only(_: Any) -> Any:
    return lambda sources, namespaces: tuple(sorted({each.spec.topic for each in sources.entries if each.is_open}))


def hearing_what_nobody_named(_: Any) -> Any:
    def hears(listener: Listener, topic_id: str, topic_partition: int, offset: int, append_time: int) -> bool:
        return offset >= listener.offsets.get(f"{topic_id}/{topic_partition}", 0)

    return hears


def taking_all_of_that_name(_: Any) -> Any:
    def take(actor: PartitionActor, arrived: RecordsArrived) -> None:
        cursor = actor._cursors.get((arrived.topic, arrived.topic_partition))
        if cursor is not None:
            cursor.offer(arrived.records)

    return take


def all_in_one(_: Any) -> Any:
    def together(those: Iterable[Any], _: Any) -> list[list[Any]]:
        return [found] if (found := list(those)) else []

    return together


def without_its_place(identity: Callable[..., str]) -> Any:
    return lambda mapped, asked, origin: identity(mapped, asked._replace(place=None), origin)


# -- scenarios --------------------------------------------------------------------------------------------------------------


def a_source(kind: str = "apply") -> Doc:
    event = {"dataset": "raw", "partition": {"pointer": "/day"}}
    spec = {"kind": "source", "namespace": "flights", "name": "landed", "topic": TOPIC, "event": event}
    request = {"id": kind, "type": f"source.{kind}", "namespace": "flights", "name": "landed"}
    return {**request, "spec": spec} if kind == "apply" else request


def with_a_topic(**holding: Any) -> Bench:
    bench = Stage(**holding).first
    bench.create_topic(TOPIC, topic_id=TOPIC_ID)
    return bench


def ran_none(bench: Bench) -> Iterable[str]:
    if bench.started:
        yield f"I3: {len(bench.started)} programs ran of what is no event"


def a_record_is_older_than_its_source() -> Iterable[str]:
    """The schedule was there before; only the source's first offset says that it is none of its events."""
    bench = with_a_topic()
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(2 * SECOND)
    bench.append(TOPIC, 0, {"day": "d1"})
    bench.request(a_source())
    bench.run(10 * SECOND)
    return ran_none(bench)


def a_record_comes_after_the_delete_of_its_source() -> Iterable[str]:
    """The poke is lost, so that the topic is still being read."""
    bench = with_a_topic()
    bench.request(an_apply(a_spec(trigger=on_data(count=2))))
    bench.request(a_source())
    bench.run(2 * SECOND)
    bench.append(TOPIC, 0, {"day": "d1"})
    bench.run(SECOND)
    bench.answer_with(_tells_of_controls, None, times=1_000)
    bench.request(a_source("delete"))
    bench.run(50)
    bench.append(TOPIC, 0, {"day": "d2"})
    bench.run(10 * SECOND)
    return ran_none(bench)


def _tells_of_controls(effect: Effect) -> bool:
    return isinstance(effect, Poke) and effect.controls


def a_schedule_is_activated_while_a_source_is_being_opened() -> Iterable[str]:
    """The ends of the topic are on their way; a record comes, then the schedule, then the ends."""
    bench = with_a_topic()
    bench.hold_back(lambda effect: effect == ENDS, answer_only=True)
    bench.request(a_source())
    bench.run(50)
    bench.append(TOPIC, 0, {"day": "d1"})
    bench.run(50)
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(300)  # Within the lane's patience: after that they would be asked for anew.
    bench.release()
    bench.run(10 * SECOND)
    return ran_none(bench)


def half_of_a_pair_lies_unread_in_a_source_topic() -> Iterable[str]:
    """It came in time."""
    bench = with_a_topic()
    bench.request(a_source())
    bench.request(an_apply(a_spec(trigger=all_of(on_data("raw"), on_data("other"), timeout="30s"))))
    bench.run(3 * SECOND)
    bench.event(an_event("d1", "other"))
    bench.run(5 * SECOND)
    bench.hold_back(lambda effect: a_commit("cursor")(effect) and TOPIC_ID in str(effect))
    bench.append(TOPIC, 0, {"day": "d1"})
    bench.run(40 * SECOND)
    bench.release()
    bench.run(10 * SECOND)
    return ran(bench, 1, "I3")


def a_topic_is_made_anew_and_longer_than_before() -> Iterable[str]:
    """The client reads on in it at its offset. Worlds make that too, one in some hundred (seed 237 was one)."""
    bench = with_a_topic()
    bench.request(a_source())
    bench.request(an_apply(a_spec(trigger=on_data(count=100))))
    bench.run(2 * SECOND)
    bench.append(TOPIC, 0, {"day": "d1"}, {"day": "d2"})
    bench.run(SECOND)
    bench.logs.pop((TOPIC, 0))
    bench.create_topic(TOPIC, topic_id="d" * 32)
    bench.log(TOPIC, 0).extend(
        LogRecord(offset, bench.now, None, f'{{"day": "e{offset}"}}'.encode()) for offset in range(4)
    )
    bench.hand_over(TOPIC, 0, 2)
    bench.run(70 * SECOND)
    for row in bench.rows("TP"):
        if TOPIC_ID in str(row["pk"]) and row["next"] != 2:
            yield f"I3: the position in the topic of before is {row['next']!s}, not 2"


def a_source_of_one_namespace_has_something_unread() -> Iterable[str]:
    """A pair waits in each of two namespaces until its time is over."""
    bench = with_a_topic(shards=1)
    pair = a_spec(trigger=all_of(on_data("a"), on_data("b"), timeout="20m"), overlap="allow")
    namespaces = ("flights", "trains")
    bench.request(a_source())
    for namespace in namespaces:
        bench.request(an_apply(pair | {"namespace": namespace}, namespace))
        bench.event(an_event("x", "a", namespace) | {"namespace": namespace})
    bench.run(19 * MINUTE)
    bench.log(TOPIC, 0).append(LogRecord(0, bench.now, None, json.dumps({"day": "d1"}).encode()))
    bench.run(MINUTE + 10 * SECOND)
    if not any(row["namespace"] == "trains" for row in bench.rows("L#")):
        yield "liveness: a time-out waits for a source of another namespace"


RULES_OF_SOURCES = (
    Mutant(
        "one wait for all namespaces",
        "time-outs of every namespace of a shard wait for five minutes for one source that nobody reads",
        breaks="liveness",
        patches=(Patch(deadlines, "_by_namespace", all_in_one),),
        scenario=a_source_of_one_namespace_has_something_unread,
    ),
    Mutant(
        "before the source",
        "a source maps what was produced before it was asked for",
        breaks="I3",
        patches=(Patch(SourceEvents, "sources_of", mapping_all_that_is_there),),
        scenario=a_record_is_older_than_its_source,
    ),
    Mutant(
        "one id for a list",
        "all elements of a record's list have the id of their record, so that one of them counts",
        breaks="I3",
        patches=(Patch(mapping, "_identity", without_its_place),),
        within=12,
        trap="sources",
    ),
    Mutant(
        "old list",
        "records are mapped by the sources that a holder knew before it fetched them",
        breaks="I3",
        patches=(Patch(SourceEvents, "sources_of", reading_the_list_once),),
        scenario=a_record_comes_after_the_delete_of_its_source,
    ),
    Mutant(
        "unlisted",
        "an activation does not name the topic of a source that is being opened",
        breaks="I3",
        patches=(Patch(Sources, "topics_of", naming_open_ones_only),),
        beside=(Patch(Listener, "hears", hearing_what_nobody_named),),
        scenario=a_schedule_is_activated_while_a_source_is_being_opened,
    ),
    Mutant(
        "watermark of sources",
        "a time-out does not wait for what lies unread in the topics of sources",
        breaks="I3",
        patches=(Patch(watermark, "present_sources", knowing_of_none),),
        scenario=half_of_a_pair_lies_unread_in_a_source_topic,
    ),
    Mutant(
        "a mark for sure",
        "what lies unread is taken for the mark of a transaction, without a look at it",
        breaks="I3",
        patches=(Patch(watermark, "_with_records", finding_none),),
        scenario=half_of_a_pair_lies_unread_in_a_source_topic,
    ),
    Mutant(
        "read on in another topic",
        "records of a topic that was made anew move the position of the old one, and are read again by their own",
        breaks="I3",
        patches=(Patch(PartitionActor, "_take_records", taking_all_of_that_name),),
        scenario=a_topic_is_made_anew_and_longer_than_before,
    ),
)
