"""Puts events on their topic and says what became of each, with the id to repeat it under."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tidegate_api.bus_clients import produced
from tidegate_api.dependencies import Services
from tidegate_api.http.problem_responses import ApiProblem, unless_taken
from tidegate_core.rows.effects import Produce


class Announcement(NamedTuple):
    """An event's record.

    Attributes:
        event_id: By which a repeat counts once.
        key: Of the record: what shares one is counted in order.
        value: The event as it is sent.
    """

    event_id: str
    key: str
    value: bytes


async def put_event(services: Services, event: Announcement) -> None:
    """Waits for the broker. Raises ApiProblem (503), which names the id to repeat it under."""
    (problem,) = await put_events(services, [event])
    if problem is not None:
        raise problem


async def put_events(services: Services, events: Sequence[Announcement]) -> list[ApiProblem | None]:
    """Hands all of them over together; of each, once the fate of all is known, what is to be said where the broker did not take it."""
    orders = [Produce(services.topics.events, event.key.encode(), event.value) for event in events]
    fates = await produced(services.bus.publisher, orders)
    return [unless_taken(fate, "event", event.event_id) for event, fate in zip(events, fates, strict=True)]
