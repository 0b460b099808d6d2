"""Turns records of topics into the input of the audit: deliveries by id, and times before which records may be gone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from tidegate_core.explain.audit.delivered_records import OnTopics, Seen
from tidegate_core.explain.audit.shard_snapshot import Window
from tidegate_core.language.values.instants import parse_instant
from tidegate_ports.topic_snapshot import Landed

ID, NOMINAL = "tidegate-id", "tidegate-nominal"
COVERED: Final = ("tidegate-covered-from", "tidegate-covered-to")


def on_topics_of(records: Iterable[Landed], dead_letters: str, window: Window) -> OnTopics:
    """Returns the deliveries on these topics.

    Args:
        records: Records of all topics, each once.
        dead_letters: Name of the dead-letter topic.
        window: Window of nominal times; outside of it only messages that stand for several fires are kept.
    """
    seen: dict[str, Seen] = {}
    gone_before: dict[str, int] = {}
    for record in records:
        if record.is_cut:
            gone_before[record.topic] = max(gone_before.get(record.topic, 0), record.append_time)
        headers = {name: value.decode(errors="replace") for name, value in record.headers}
        known = seen.get(headers.get(ID, ""))
        if known is None:
            known = _seen(headers)
            if known is None or not (window.has(known.nominal) or known.covered_from is not None):
                continue
            seen[headers[ID]] = known
        # A dead letter is not a delivery. Its replay is, and does not count as a repeat.
        known.count += record.topic != dead_letters
    return OnTopics(seen, gone_before, dead_letters)


def _seen(headers: Mapping[str, str]) -> Seen | None:
    """Returns None for foreign records: users' topics may hold records with any headers."""
    first, last = (headers.get(name) for name in COVERED)
    try:
        return Seen(
            parse_instant(headers[NOMINAL]),
            covered_from=None if first is None else parse_instant(first),
            covered_to=None if last is None else parse_instant(last),
            count=0,
        )
    except (KeyError, ValueError):
        return None
