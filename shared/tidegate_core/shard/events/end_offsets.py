"""Reads the end offsets of the topics whose records become events of a namespace: events topic and topics of its
sources.

Activations, scope resumes and time-outs call it. The list of sources is read after the request arrived. A source that
is missing from it reads the end offsets of its topic later, and nothing below those is an event. A reading may have
been made for another request, if it started after this one arrived.

A user's topic that does not answer is left out, so that it delays no request. The events topic is never left out.

The shard writer waits half a second. Missing answers then raise `TopicsUnanswered`: the request yields to other
decisions while it asks for some seconds more, then starts again with the result. For a minute, the finding that a
topic is silent or missing also serves later requests. If the events topic is silent, the request is deferred until
the topic answers. Work that needs only the store continues, and so do other requests, such as a system-wide suspend.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.decision import Deferred
from tidegate_core.engine.end_offset_cache import MISSING, SILENT
from tidegate_core.engine.operations import Operation, Signal
from tidegate_core.rows import keys
from tidegate_core.rows.effects import EndOffsets, Items, Read, ReadEndOffsets
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.source_list import NO_SOURCES, Sources, StoredSources

WRITER_PATIENCE_MS: Final = 500
"""Time for which the shard writer waits for topics; a healthy broker needs milliseconds."""
SILENT_AFTER_MS: Final = 5_000
"""Time for which a request waits for a topic: longer than a change of leaders."""
ASK_AGAIN_MS: Final = 250
EVENTS_AGAIN_MS: Final = 1_000
"""Retry interval for the events topic while requests are deferred: it may lack a leader for hours."""
GIVE_WAY_MS: Final = 20


class TopicsUnanswered(Exception):
    """Topics of users did not answer at once."""

    def __init__(self, topics: Sequence[str]) -> None:
        super().__init__(f"no ends of {', '.join(topics)}")
        self.topics = tuple(topics)


def present_sources(host: ActorContext) -> Operation[Sources]:
    """Reads the present list of sources."""
    found = yield from host.read_for_good(Read((keys.SOURCES_KEY,)))
    assert isinstance(found, Items)
    item = found.found.get(keys.SOURCES_KEY)
    return NO_SOURCES if item is None else from_item(StoredSources, item).sources


def read_end_offsets(
    host: ActorContext, namespaces: Iterable[str] | None, arrived: int
) -> Operation[dict[str, dict[str, int]]]:
    """Returns end offsets by topic, each by `<topic id>/<topic partition>`, from readings that started after a request
    arrived.

    A source's topic that is known to be silent is left out. Append times then decide about its records, as for new
    topic partitions.

    Args:
        host: Shared parts of the partition actor.
        namespaces: Namespaces whose sources count; None: all.
        arrived: Number of the last reading that had started when the request arrived.

    Raises:
        Deferred: The events topic did not answer at once.
        TopicsUnanswered: Topics did not answer at once: call `find_out`, then start again.
    """
    sources = yield from present_sources(host)
    ends = yield from _own_ends_at_once(host, arrived)
    topics = {topic: arrived for topic in sources.topics_of(namespaces) if topic not in ends}
    ends |= yield from ends_at_once(host, topics)
    return ends


def _own_ends_at_once(host: ActorContext, after: int) -> Operation[dict[str, dict[str, int]]]:
    """Returns the end offsets of the events topic from a reading with a higher number than `after`.

    Raises Deferred when it does not answer within half a second.
    """
    events = host.holding.events_topic
    known = host.readings.ends(events, after)
    if known is None and host.readings.fallback(events, after, host.now) is None:
        known = (yield from ends_within(host, [events], WRITER_PATIENCE_MS)).get(events)
        if known is None:
            host.readings.found_out(events, host.readings.begin(), host.now, SILENT)
    if known is None:
        raise Deferred(f"no ends of {events}", partial(_until_told, host, events))
    return {events: known}


def _until_told(host: ActorContext, events: str) -> Operation[None]:
    while events not in (yield from ends_within(host, [events], SILENT_AFTER_MS)):
        yield from host.sleep(EVENTS_AGAIN_MS)


def ends_at_once(
    host: ActorContext, topics: Mapping[str, int], about: str | None = None
) -> Operation[dict[str, dict[str, int]]]:
    """Returns the end offsets of users' topics: empty for a missing topic, absent for a topic that is known to be
    silent.

    Args:
        host: Shared parts of the partition actor.
        topics: Names, each with the number of the last reading that started too early.
        about: Topic that the request concerns; an earlier finding about it does not count.

    Raises:
        TopicsUnanswered: Topics did not answer within half a second, and no finding about them exists.
    """
    known: dict[str, dict[str, int]] = {}
    wanted: list[str] = []
    for topic, after in topics.items():
        ends = host.readings.ends(topic, after)
        what = host.readings.fallback(topic, after, None if topic == about else host.now)
        if ends is not None:
            known[topic] = ends
        elif what == MISSING:
            known[topic] = {}
        elif what is None:
            wanted.append(topic)
    known |= yield from ends_within(host, wanted, WRITER_PATIENCE_MS)
    untold = [topic for topic in wanted if topic not in known]
    if untold:
        raise TopicsUnanswered(untold)
    return known


def find_out(host: ActorContext, topics: Sequence[str], meanwhile: Callable[[], Operation[None]]) -> Operation[None]:
    """Asks topics for 5 s at most, and stores their end offsets or the finding that they are silent.

    Args:
        host: Shared parts of the partition actor.
        topics: Topics that did not answer at once.
        meanwhile: Operation to run between checks.
    """
    give_up, number = host.now + SILENT_AFTER_MS, host.readings.begin()
    told: dict[str, dict[str, int]] = {}
    asking = [_ask(host, topic, give_up, told, lambda: None) for topic in topics]
    for each in asking:
        host.operations.start(each)
    while len(told) < len(topics) and host.now < give_up:
        yield from meanwhile()
        yield from host.sleep(GIVE_WAY_MS)
    for topic in topics:
        if topic not in told:
            host.note("source_topic_silent", topic=topic)
            host.readings.found_out(topic, number, host.now, SILENT)
        elif not told[topic]:
            host.readings.found_out(topic, number, host.now, MISSING)


def ends_within(host: ActorContext, topics: Sequence[str], patience_ms: int) -> Operation[dict[str, dict[str, int]]]:
    """Asks topics concurrently. Returns the end offsets of those that answer in time."""
    told: dict[str, dict[str, int]] = {}
    if not topics:
        return told
    give_up, left, done = host.now + patience_ms, list(topics), Signal("ends")

    def answered() -> None:
        left.pop()
        if not left:
            host.operations.raise_(done)

    for topic in topics:
        host.operations.start(_ask(host, topic, host.now, told, answered))
    host.call_at(give_up, lambda: host.operations.raise_(done))
    while left and host.now < give_up:
        yield done
    return dict(told)


def _ask(
    host: ActorContext, topic: str, give_up: int, told: dict[str, dict[str, int]], answered: Callable[[], None]
) -> Operation[None]:
    """Asks once, then repeats without an answer until `give_up`."""
    while True:
        number = host.readings.begin()
        # The events topic can be missing only for the moment of its recreation.
        answer = yield ReadEndOffsets(topic, may_be_missing=topic != host.holding.events_topic)
        if isinstance(answer, EndOffsets):
            told[topic] = dict(answer.offsets)
            host.readings.store(topic, number, answer.offsets)
        if topic in told or host.now >= give_up:
            answered()
            return
        yield from host.sleep(ASK_AGAIN_MS)


def as_vector(ends: dict[str, dict[str, int]]) -> dict[str, int]:
    """Returns the end offsets of all topics as one vector, keyed by topic ids."""
    return {place: offset for offsets in ends.values() for place, offset in offsets.items()}
