"""Route of events: produces events about data partitions, and custom events, to their topic."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Request

from tidegate_api.event_publisher import Announcement, put_events
from tidegate_api.http.problem_responses import ApiProblem
from tidegate_api.http.request_bodies import read_json
from tidegate_api.openapi import body, ref
from tidegate_api.requests.request_submission import BATCH_MAX, check_batch_size
from tidegate_api.routes.parameters import IdempotencyKey, ServicesOf, identified, placed, refuse_key_of_list
from tidegate_client.views import EventView, Page
from tidegate_core.language.events.events import DataPartitionEvent, Event
from tidegate_core.language.formats.parsing import parse_events
from tidegate_core.language.requests.record_authorization import authorize_events
from tidegate_core.language.values.names import EVERY
from tidegate_core.language.values.problems import InvalidInput, Problem

router = APIRouter(prefix="/api/v1", tags=["events"])

_ONE = {"oneOf": [ref("DataPartitionEvent"), ref("CustomEvent")]}
_MANY = {"type": "array", "items": _ONE, "minItems": 1, "maxItems": BATCH_MAX}


@router.post(
    "/events",
    response_model=Page[EventView],
    summary="Send events",
    openapi_extra=body({"oneOf": [*_ONE["oneOf"], _MANY]}),
)
async def send_events(
    request: Request, services: ServicesOf, idempotency_key: IdempotencyKey = None
) -> Page[EventView]:
    """One event, or a list of up to 1,000. The answer comes when the broker has acknowledged all of them.

    An event without an `id` gets one, so that a repeat by the broker's client counts once. A 503 names the ids of events that the
    broker did not acknowledge. A repeat with these ids counts once, even if the first try arrived.
    """
    document = await read_json(request)
    documents = document if isinstance(document, list) else [document]
    check_batch_size(len(documents))
    if isinstance(document, list):
        refuse_key_of_list(idempotency_key, "give each event its own id")
    elif idempotency_key is not None:
        documents = [identified(each, idempotency_key) if isinstance(each, dict) else each for each in documents]
    # On a thread, like a batch of messages: parsing would delay starts of programs.
    events = await services.pools.read(lambda: _all_parsed(documents, services.topics.events))
    problems = await put_events(
        services, [Announcement(event.id or "", _key_of(event), value) for event, value in events]
    )
    _require_all([event for event, _ in events], problems)
    return Page(items=[EventView(id=event.id or "", type=event.type, namespace=event.namespace) for event, _ in events])


def _require_all(events: Sequence[Event], problems: Sequence[ApiProblem | None]) -> None:
    """Raises ApiProblem if the broker did not acknowledge an event. For a list it names all such ids and their places."""
    failed = [
        (number, event, problem)
        for number, (event, problem) in enumerate(zip(events, problems, strict=True))
        if problem is not None
    ]
    if not failed:
        return
    _, _, first = failed[0]
    if len(events) == 1:
        raise first
    raise ApiProblem(
        first.status,
        f"the broker acknowledged {len(events) - len(failed)} of {len(events)} events; repeat the others with the ids in `errors`",
        errors=[Problem(f"[{number}]", str(problem), f"id: {event.id}") for number, event, problem in failed],
        headers=first.headers,
    )


def _all_parsed(documents: list[Any], topic: str) -> list[tuple[Event, bytes]]:
    """Returns the events with their records' values. Raises InvalidInput."""
    found = (event for number, each in enumerate(documents) for event in _parsed(each, number, len(documents), topic))
    return [(event, event.canonical_json().encode()) for event in found]


def _parsed(document: Any, number: int, count: int, topic: str) -> list[Event]:
    try:
        events = parse_events(json.dumps(document).encode())
        # The allowed namespaces of the topic are a setting of the nodes. Only the reserved namespace `tidegate` is refused here.
        authorize_events(events, EVERY, topic)
    except InvalidInput as refusal:
        problems = refusal.problems if count == 1 else placed(number, refusal.problems)
        # 400, as for an owner's refusal; 403 is only for the Host and Origin checks.
        error_class = "invalid" if refusal.error_class == "forbidden" else refusal.error_class
        raise InvalidInput(problems, error_class) from refusal
    return [event if event.id is not None else event.model_copy(update={"id": str(uuid.uuid4())}) for event in events]


def _key_of(event: Event) -> str:
    """Returns the record's key. A dataset has one key, so its events are in one topic partition and are counted in order."""
    subject = event.dataset if isinstance(event, DataPartitionEvent) else event.subject or event.type
    return f"{event.namespace}/{subject}"
