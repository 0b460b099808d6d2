"""Sources: each request is answered as those before it demand, and what was produced while none was there is no event (I3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tests.simulation.checks.request_history import SKEW_MS
from tests.simulation.users.source_users import NAME
from tests.simulation.world.cluster import SOURCE_TOPIC
from tidegate_core.shard.events.end_offsets import ASK_AGAIN_MS, SILENT_AFTER_MS

if TYPE_CHECKING:
    from tests.simulation.checks.case import Case
    from tests.simulation.users.source_users import SourceStep

LAST_ASKED_MS: Final = ASK_AGAIN_MS + 500
"""A pause, and as long as the simulated broker that is away keeps who asks."""


def check_sources(case: Case) -> Iterator[str]:
    for user in case.world.sources:
        for step in user.steps:
            asked = step.asked
            if asked.receipt is not None and asked.status != step.status and not _was_silent(case, step):
                yield f"answers: {asked.document['type']} {asked.id} was answered {asked.status}, not {step.status}"
                break  # What follows is judged by a state that is not the real one.
        for name, found in case.entries_of.items():
            for entry in (entry for entries in found.values() for entry in entries):
                event_id = str(entry.get("event_id"))
                announced = case.world.producers.announced.get(event_id)
                if announced is None and event_id.startswith(f"{NAME}/"):
                    yield f"I3: {name} counted {event_id}, where no record of the source lies"
                if announced is None or not announced.by_source:
                    continue
                if not any(user.may_be_mapped(instant) for instant in announced.appended):
                    yield f"I3: {name} counted {announced.id}, which came when its source was not there"


def _was_silent(case: Case, step: SourceStep) -> bool:
    """Whether it was refused because its topic did not answer for 5 s (docs/events.md).

    The last question may come so much before their end, and who is frozen meanwhile asks no other.
    """
    begin, end = step.asked.appended[0], step.asked.acked_at
    away = case.world.cluster.broker.away_ms(SOURCE_TOPIC, begin, end)
    frozen = sum(max(0, min(end, goes_on) - max(begin, start)) for _, start, goes_on in case.record.pauses)
    refused = step.opens and step.asked.status == "rejected"
    return refused and away > 0 and away + frozen >= SILENT_AFTER_MS - LAST_ASKED_MS - SKEW_MS
