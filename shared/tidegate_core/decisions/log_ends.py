"""Where the logs end that become events of a namespace: of the events topic, and of the topics of its sources.

Activations, wide resumes and time-outs ask. The list of sources is read before the ends: one that is not in it yet reads the
ends of its topic later (`sources_home`), and nothing below those is an event. A user's topic that does not answer holds up nobody:
it is asked for seconds and then left out, beside the events topic, without which nothing goes on anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from tidegate_core.decisions.host import Host
from tidegate_core.decisions.operations import Operation
from tidegate_core.effects import EndOffsets, Items, Read, ReadEndOffsets
from tidegate_core.records.codec import from_item
from tidegate_core.records.sources import NO_SOURCES, Sources, StoredSources
from tidegate_core.store import keys

SILENT_AFTER_MS: Final = 5_000
"""A lane waits for it: longer than a change of leaders takes, and much shorter than what a user notices of other schedules."""
ASK_AGAIN_MS: Final = 250


def present_sources(host: Host) -> Operation[Sources]:
    """Reads all sources as they are now."""
    found = yield from host.read_for_good(Read((keys.SOURCES_KEY,)))
    assert isinstance(found, Items)
    item = found.found.get(keys.SOURCES_KEY)
    return NO_SOURCES if item is None else from_item(StoredSources, item).sources


def log_ends(host: Host, namespaces: Iterable[str] | None) -> Operation[dict[str, dict[str, int]]]:
    """Returns the ends by topic, each by `<topic id>/<topic partition>`, all asked after this call.

    A source's topic that does not answer for 5 s is left out: of its records the append time tells, as of those of a topic
    partition that is new.

    Args:
        host: Shared parts of the partition actor.
        namespaces: Whose sources count; None: all.
    """
    events = host.holding.events.name
    sources = yield from present_sources(host)
    own = yield from host.read_for_good(ReadEndOffsets(events))
    assert isinstance(own, EndOffsets)
    ends = {events: dict(own.offsets)}
    ends |= yield from ends_in_time(host, [topic for topic in sources.topics_of(namespaces) if topic != events])
    return ends


def ends_in_time(host: Host, topics: Sequence[str]) -> Operation[dict[str, dict[str, int]]]:
    """Returns the ends of those users' topics that answer within 5 s; of one that is not there an empty vector."""
    give_up = host.now + SILENT_AFTER_MS
    found = yield from ends_now(host, topics)
    while len(found) < len(topics) and host.now < give_up:
        yield from host.sleep(ASK_AGAIN_MS)
        found |= yield from ends_now(host, [topic for topic in topics if topic not in found])
    for topic in topics:
        if topic not in found:
            host.note("source_topic_silent", topic=topic)
    return found


def ends_now(host: Host, topics: Sequence[str]) -> Operation[dict[str, dict[str, int]]]:
    """Asks users' topics once, side by side, and returns the ends of those that answer."""
    if not topics:
        return {}
    answers = yield tuple(ReadEndOffsets(topic, may_be_missing=True) for topic in topics)
    both = zip(topics, answers, strict=True)
    return {topic: dict(answer.offsets) for topic, answer in both if isinstance(answer, EndOffsets)}


def as_vector(ends: dict[str, dict[str, int]]) -> dict[str, int]:
    """Returns the ends of all topics as one vector: topic ids tell them apart."""
    return {place: offset for offsets in ends.values() for place, offset in offsets.items()}
