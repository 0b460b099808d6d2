"""Sources: each request is answered as those before it demand, and what was produced while none was there is no event (I3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tidegate_testkit.simulation.sources import NAME

if TYPE_CHECKING:
    from tidegate_testkit.simulation.checks.case import Case


def check_sources(case: Case) -> Iterator[str]:
    for user in case.world.sources:
        for asked, status in user.steps:
            if asked.receipt is not None and asked.status != status:
                yield f"answers: {asked.document['type']} {asked.id} was answered {asked.status}, not {status}"
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
