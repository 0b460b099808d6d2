"""Where the logs end that become events of a namespace: of the events topic, and of the topics of its sources.

Activations, wide resumes and time-outs ask. The list of sources is read after the request has arrived: one that is not in it
yet reads the ends of its topic later (`sources_home`), and nothing below those is an event. The ends may have been read for
another request, once this one had arrived (`readings`). A user's topic that does not answer holds up nobody: it is left out,
beside the events topic, without which no request can be.

A lane asks for half a second. What is not told by then raises `TopicsUnanswered`: the request lets the lane's decisions go on while it
finds out, for seconds, and begins anew with what that has told. That a topic is silent or missing is kept for a minute, in which
it costs nobody anything. Where it is the events topic the request stands aside until that tells, however long it takes: what the store alone
decides goes on, and so do other requests, an emergency stop among them.
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
"""So long a lane stands still for topics that do not answer at once; a broker that is well needs milliseconds."""
SILENT_AFTER_MS: Final = 5_000
"""A request waits for it: longer than a change of leaders takes."""
ASK_AGAIN_MS: Final = 250
EVENTS_AGAIN_MS: Final = 1_000
"""The same for the events topic, while requests stand aside: it may be without a leader for hours."""
GIVE_WAY_MS: Final = 20


class TopicsUnanswered(Exception):
    """These users' topics have not answered at once."""

    def __init__(self, topics: Sequence[str]) -> None:
        super().__init__(f"no ends of {', '.join(topics)}")
        self.topics = tuple(topics)


def present_sources(host: ActorContext) -> Operation[Sources]:
    """Reads all sources as they are now."""
    found = yield from host.read_for_good(Read((keys.SOURCES_KEY,)))
    assert isinstance(found, Items)
    item = found.found.get(keys.SOURCES_KEY)
    return NO_SOURCES if item is None else from_item(StoredSources, item).sources


def read_end_offsets(
    host: ActorContext, namespaces: Iterable[str] | None, arrived: int
) -> Operation[dict[str, dict[str, int]]]:
    """Returns the ends by topic, each by `<topic id>/<topic partition>`, all asked after a request had arrived.

    A source's topic that is known not to answer is left out: of its records the append time tells, as of those of a topic
    partition that is new.

    Args:
        host: Shared parts of the partition actor.
        namespaces: Whose sources count; None: all.
        arrived: Number of the last reading that had begun by then.

    Raises:
        Deferred: The events topic did not answer at once.
        Untold: Some topics did not answer at once: find out (`find_out`), and begin anew.
    """
    sources = yield from present_sources(host)
    ends = yield from _own_ends_at_once(host, arrived)
    topics = {topic: arrived for topic in sources.topics_of(namespaces) if topic not in ends}
    ends |= yield from ends_at_once(host, topics)
    return ends


def _own_ends_at_once(host: ActorContext, after: int) -> Operation[dict[str, dict[str, int]]]:
    """Returns the ends of the events topic as a reading found them that began later than that one. Raises Deferred where they are not told
    within half a second.
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
    """Returns the ends of users' topics; empty ones of a topic that is not there, none of one that is known not to answer.

    Args:
        host: Shared parts of the partition actor.
        topics: Their names, each with the number of the last reading that began too early.
        about: The one of them that the request is about: what was found out of it before that does not count.

    Raises:
        Untold: Some did not answer within half a second, which nobody knew of them.
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
    """Asks topics for 5 s at most, and keeps in mind what they tell, or that they do not.

    Args:
        host: Shared parts of the partition actor.
        topics: That have not answered at once.
        meanwhile: What goes on while they are asked.
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
    """Asks topics side by side, and returns the ends of those that answer so soon."""
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
    """Asks once, and again until then while there is no answer."""
    while True:
        number = host.readings.begin()
        # The events topic is missing for a moment at most, while it is made anew.
        answer = yield ReadEndOffsets(topic, may_be_missing=topic != host.holding.events_topic)
        if isinstance(answer, EndOffsets):
            told[topic] = dict(answer.offsets)
            host.readings.store(topic, number, answer.offsets)
        if topic in told or host.now >= give_up:
            answered()
            return
        yield from host.sleep(ASK_AGAIN_MS)


def as_vector(ends: dict[str, dict[str, int]]) -> dict[str, int]:
    """Returns the ends of all topics as one vector: topic ids tell them apart."""
    return {place: offset for offsets in ends.values() for place, offset in offsets.items()}
