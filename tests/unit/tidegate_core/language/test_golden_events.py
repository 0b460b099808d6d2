"""Golden JSON of each event and fact: what is on topics and in rows is a contract (row CD-007)."""

from __future__ import annotations

import json

import pytest

from tidegate_core.language.events.events import CustomEvent, DataPartitionEvent
from tidegate_core.language.events.trigger_facts import RunFact, ScheduleGone
from tidegate_core.language.formats.parsing import parse_events

DATA = (
    '{"bytes":1048576,"dataset":"flights.raw","event_time":"2026-11-20T22:00:00Z","id":"01JD0M2T9V3E8R7Q5K1N4B6C2A",'
    '"kind":"created","namespace":"flights","partition":"2013-01-01","rows":842,"type":"data.partition","version":"1"}'
)
CUSTOM = (
    '{"data":{"pallets":12},"id":"delivery-4711","namespace":"orders","subject":"gate-3","type":"custom.truck-arrived"}'
)
RUN = (
    '{"admitted_at":"2026-11-20T22:00:00.250Z","args":["--day","2013-01-01"],"attempt":1,"correlation":"2013-01-01",'
    '"ended_at":"2026-11-20T22:01:10Z","job":"0042-mfrggzdfmztwq2lkn5wg63tqoe","namespace":"flights",'
    '"nominal":"2026-11-20T22:00:00Z","outputs":{"rows":842},"run_id":"0042-mfrggzdfmztwq2lkn5wg63tqoe",'
    '"schedule":"join-day","state":"succeeded","type":"run"}'
)
GONE = (
    '{"at":"2026-11-20T22:00:00.250Z","incarnation":"01K9XFT8F8QVR2MZ123DW6Y1VD","namespace":"flights",'
    '"schedule":"join-day","type":"schedule_gone"}'
)
NOTIFICATION = {
    "timestamp": 1_763_676_000_000,
    "eventType": "PARTITION",
    "payload": {"datasetId": "dataset:flights.raw", "partitionKeys": [{"day": "2013-01-01"}, {"day": "2013-01-02"}]},
}


@pytest.mark.parametrize(
    ("model", "golden"),
    [(DataPartitionEvent, DATA), (CustomEvent, CUSTOM), (RunFact, RUN), (ScheduleGone, GONE)],
    ids=["data partition", "custom", "run", "schedule gone"],
)
def test_given_each_kind_then_its_json_is_this_and_no_other(
    model: type[DataPartitionEvent | CustomEvent | RunFact | ScheduleGone], golden: str
) -> None:
    """CD-007: a field that changes its name or form strands what is on topics and in rows."""
    fact = model.model_validate(json.loads(golden))
    assert fact.canonical_json() == golden
    assert model.model_validate_json(golden) == fact


def test_given_cdaps_own_notification_then_it_is_these_events() -> None:
    """CD-007: their producers need not change."""
    day = (
        '{{"dataset":"raw","event_time":"2025-11-20T22:00:00Z","kind":"created","namespace":"flights",'
        '"partition":"day=2013-01-0{}","type":"data.partition"}}'
    )
    events = parse_events(json.dumps(NOTIFICATION).encode())
    assert [event.canonical_json() for event in events] == [day.format(1), day.format(2)]
