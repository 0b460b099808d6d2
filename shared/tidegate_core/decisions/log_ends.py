"""Where the logs end that become events of a namespace: of the events topic, and of the topics of its sources.

Activations, wide resumes and time-outs ask. The list of sources is read before the ends: one that is not in it yet reads the
ends of its topic later (`sources_home`), and nothing below those is an event.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidegate_core.decisions.host import Host
from tidegate_core.decisions.operations import Operation
from tidegate_core.effects import EndOffsets, Items, Read, ReadEndOffsets
from tidegate_core.records.codec import from_item
from tidegate_core.records.sources import NO_SOURCES, Sources, StoredSources
from tidegate_core.store import keys


def present_sources(host: Host) -> Operation[Sources]:
    """Reads all sources as they are now."""
    found = yield from host.read_for_good(Read((keys.SOURCES_KEY,)))
    assert isinstance(found, Items)
    item = found.found.get(keys.SOURCES_KEY)
    return NO_SOURCES if item is None else from_item(StoredSources, item).sources


def log_ends(host: Host, namespaces: Iterable[str] | None) -> Operation[dict[str, dict[str, int]]]:
    """Returns the ends by topic, each by `<topic id>/<topic partition>`, all asked after this call.

    Args:
        host: Shared parts of the partition actor.
        namespaces: Whose sources count; None: all.
    """
    events = host.holding.events.name
    sources = yield from present_sources(host)
    ends: dict[str, dict[str, int]] = {}
    for topic in (events, *sources.topics_of(namespaces)):
        asked = yield from host.read_for_good(ReadEndOffsets(topic, may_be_missing=topic != events))
        assert isinstance(asked, EndOffsets)
        ends[topic] = dict(asked.offsets)
    return ends


def as_vector(ends: dict[str, dict[str, int]]) -> dict[str, int]:
    """Returns the ends of all topics as one vector: topic ids tell them apart."""
    return {place: offset for offsets in ends.values() for place, offset in offsets.items()}
