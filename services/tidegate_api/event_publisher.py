"""Produces events to their topic and returns the outcome of each. A failed event can be repeated with its id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidegate_api.bus_clients import produced
from tidegate_api.dependencies import Services
from tidegate_api.http.problem_responses import ApiProblem, unless_taken
from tidegate_core.rows.effects import Produce


class Announcement(NamedTuple):
    """Record of an event.

    Attributes:
        event_id: Id of the event; a repeat with the same id counts once.
        key: Key of the record; events with the same key are counted in order.
        value: Value of the record.
    """

    event_id: str
    key: str
    value: bytes


async def put_event(services: Services, event: Announcement) -> None:
    """Produces an event and waits for the broker. Raises ApiProblem (503) with the id for a repeat."""
    (problem,) = await put_events(services, [event])
    if problem is not None:
        raise problem


async def put_events(services: Services, events: Sequence[Announcement]) -> list[ApiProblem | None]:
    """Produces events together. Returns a problem for each event that the broker did not acknowledge, otherwise None."""
    orders = [Produce(services.topics.events, event.key.encode(), event.value) for event in events]
    fates = await produced(services.bus.publisher, orders)
    return [unless_taken(fate, "event", event.event_id) for event, fate in zip(events, fates, strict=True)]
