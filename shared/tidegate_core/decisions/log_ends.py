"""Where the logs end that become events of a namespace: of the events topic, and of the topics of its sources.

Activations, wide resumes and time-outs ask. The list of sources is read before the ends: one that is not in it yet reads the
ends of its topic later (`sources_home`), and nothing below those is an event. A user's topic that does not answer holds up nobody:
it is left out, beside the events topic, without which nothing goes on anyway.

A lane asks for half a second. What is not told by then raises `Untold`: the request lets the lane's decisions go on while it
finds out, for seconds, and begins anew; what was found out is kept for a minute, in which such a topic costs nobody anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from tidegate_core.decisions.host import Host
from tidegate_core.decisions.operations import Operation, Signal
from tidegate_core.effects import EndOffsets, Items, Read, ReadEndOffsets
from tidegate_core.records.codec import from_item
from tidegate_core.records.sources import NO_SOURCES, Sources, StoredSources
from tidegate_core.store import keys

LANE_PATIENCE_MS: Final = 500
"""So long a lane stands still for topics that do not answer at once; a broker that is well needs milliseconds."""
SILENT_AFTER_MS: Final = 5_000
"""A request waits for it: longer than a change of leaders takes."""
SILENT, MISSING, SLOW = "silent", "missing", "slow"
"""What is found out about a topic that does not answer at once. A slow one is waited for."""
SILENT_FOR_MS: Final = 60_000
"""So long that is remembered."""
PATIENT_ROUNDS: Final = 3
"""So often a request begins anew for topics that are slow; after that one that does not tell at once counts as silent."""
ASK_AGAIN_MS: Final = 250
GIVE_WAY_MS: Final = 20


class Untold(Exception):
    """These users' topics have not answered at once."""

    def __init__(self, topics: Sequence[str]) -> None:
        super().__init__(f"no ends of {', '.join(topics)}")
        self.topics = tuple(topics)


def present_sources(host: Host) -> Operation[Sources]:
    """Reads all sources as they are now."""
    found = yield from host.read_for_good(Read((keys.SOURCES_KEY,)))
    assert isinstance(found, Items)
    item = found.found.get(keys.SOURCES_KEY)
    return NO_SOURCES if item is None else from_item(StoredSources, item).sources


def log_ends(host: Host, namespaces: Iterable[str] | None) -> Operation[dict[str, dict[str, int]]]:
    """Returns the ends by topic, each by `<topic id>/<topic partition>`, all asked after this call.

    A source's topic that is known not to answer is left out: of its records the append time tells, as of those of a topic
    partition that is new.

    Args:
        host: Shared parts of the partition actor.
        namespaces: Whose sources count; None: all.

    Raises:
        Untold: Some topics did not answer at once: find out (`find_out`), and begin anew.
    """
    sources = yield from present_sources(host)
    ends = yield from own_ends(host)
    ends |= yield from ends_at_once(host, [each for each in sources.topics_of(namespaces) if each not in ends])
    return ends


def own_ends(host: Host) -> Operation[dict[str, dict[str, int]]]:
    """Returns the ends of the events topic, however long that takes."""
    events = host.holding.events_topic
    own = yield from host.read_for_good(ReadEndOffsets(events))
    assert isinstance(own, EndOffsets)
    return {events: dict(own.offsets)}


def ends_at_once(
    host: Host, topics: Sequence[str], about: str | None = None, begun_at: int = 0
) -> Operation[dict[str, dict[str, int]]]:
    """Returns the ends of users' topics; empty ones of a topic that is not there, none of one that is known not to answer.

    Args:
        host: Shared parts of the partition actor.
        topics: Their names.
        about: The one of them that the request is about: what was found out of it before the request began does not count.
        begun_at: When that was, ms since the epoch. An instant and no age: how long its reads take is up to the store.

    Raises:
        Untold: Some did not answer within half a second, which nobody knew of them.
    """
    known: dict[str, dict[str, int]] = {}
    wanted: list[str] = []
    patience_ms = LANE_PATIENCE_MS
    for topic in topics:
        since, what = host.untold_topics.get(topic, (0, ""))
        if since < begun_at if topic == about else host.now - since >= SILENT_FOR_MS:
            wanted.append(topic)
        elif what == SLOW:
            wanted.append(topic)
            patience_ms = SILENT_AFTER_MS
        elif what == MISSING:
            known[topic] = {}
    known |= yield from ends_within(host, wanted, patience_ms)
    untold = [topic for topic in wanted if topic not in known]
    if untold:
        raise Untold(untold)
    return known


def find_out(
    host: Host, topics: Sequence[str], meanwhile: Callable[[], Operation[None]], patient: bool = True
) -> Operation[None]:
    """Asks topics for 5 s at most, and keeps in mind what it finds out of them.

    Args:
        host: Shared parts of the partition actor.
        topics: That have not answered at once.
        meanwhile: What goes on while they are asked.
        patient: Whether a slow one is waited for; else it counts as silent.
    """
    give_up = host.now + SILENT_AFTER_MS
    told: dict[str, dict[str, int]] = {}
    asking = [_ask(host, topic, give_up, told, lambda: None) for topic in topics]
    for each in asking:
        host.operations.start(each)
    while len(told) < len(topics) and host.now < give_up:
        yield from meanwhile()
        yield from host.sleep(GIVE_WAY_MS)
    for topic in topics:
        what = SILENT if topic not in told else SLOW if told[topic] else MISSING
        if what == SLOW and not patient:
            what = SILENT
        if what == SILENT:
            host.note("source_topic_silent", topic=topic)
        host.untold_topics[topic] = (host.now, what)


def ends_within(host: Host, topics: Sequence[str], patience_ms: int) -> Operation[dict[str, dict[str, int]]]:
    """Asks users' topics side by side, and returns the ends of those that answer so soon."""
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
    host: Host, topic: str, give_up: int, told: dict[str, dict[str, int]], answered: Callable[[], None]
) -> Operation[None]:
    """Asks once, and again until then while there is no answer."""
    while True:
        answer = yield ReadEndOffsets(topic, may_be_missing=True)
        if isinstance(answer, EndOffsets):
            told[topic] = dict(answer.offsets)
        if topic in told or host.now >= give_up:
            answered()
            return
        yield from host.sleep(ASK_AGAIN_MS)


def as_vector(ends: dict[str, dict[str, int]]) -> dict[str, int]:
    """Returns the ends of all topics as one vector: topic ids tell them apart."""
    return {place: offset for offsets in ends.values() for place, offset in offsets.items()}
