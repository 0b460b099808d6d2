"""What the production parsers say of a record by themselves: beside whoever judges what the ingest made of it."""

from __future__ import annotations

from tests.fuzz.hostile_records import Hostile, Kind
from tests.support.builders import EVENTS, REQUESTS
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.ingest.source_mapping import events_of
from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.language.formats.parsing import parse_events, parse_request
from tidegate_core.language.requests.record_authorization import authorize_events, authorize_request
from tidegate_core.language.values.names import EVERY
from tidegate_core.language.values.problems import RefusedRecord

ANYWHERE = "topic/0/0"
"""Where a record lies changes the id of its event, and never whether it is one."""


def refusal_of(kind: Kind, record: Hostile, source: SourceSpec) -> RefusedRecord | None:
    """Returns why a record on a topic of this kind is refused, None where the parsers take it.

    Args:
        kind: Of the topic.
        record: The record.
        source: The only source of the topic, where it is a source's.
    """
    try:
        match kind:
            case "requests":
                authorize_request(parse_request(record.value, record.headers), EVERY, REQUESTS)
            case "events":
                authorize_events(parse_events(record.value, record.headers), EVERY, EVENTS)
            case "sources":
                events_of(source, LogRecord(0, 0, record.key, record.value, record.headers), ANYWHERE)
    except RefusedRecord as refused:
        return refused
    return None
