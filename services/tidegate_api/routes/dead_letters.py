"""Routes of dead letters: list, show, replay, drop."""

from __future__ import annotations

import base64
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse

from tidegate_api.http.page_tokens import place_of
from tidegate_api.http.request_bodies import read_object
from tidegate_api.openapi import body, fields, with_fields
from tidegate_api.reads.dead_letters import Filters, detail_of
from tidegate_api.routes.operator_orders import asked
from tidegate_api.routes.parameters import PAGE_SIZE, NamespaceFilter, PageSize, PageToken, ServicesOf, Time, instant_of
from tidegate_client.views import DeadLetterAnswer, DeadLetterDetail, DeadLetterView, Page
from tidegate_core.rows.dead_letter import LETTER_ID_PATTERN, QUEUES, LetterId, Queue, is_wanted

router = APIRouter(prefix="/api/v1", tags=["dead letters"])

Letter = Annotated[str, Path(pattern=LETTER_ID_PATTERN, description="Id of the dead letter")]
QueueFilter = Annotated[Queue | None, Query(description="Only of this dead-letter topic")]
TopicFilter = Annotated[
    str | None,
    Query(max_length=249, description="Only records that came from this topic, or were to be delivered to it"),
]
ErrorClass = Annotated[str | None, Query(max_length=64, description="Only errors of this class, such as invalid")]
Handled = Annotated[bool, Query(alias="all", description="Also dead letters that were replayed or dropped")]
_ACTION = body(with_fields(fields("actor", "reason"), again={"type": "boolean"}), required=False)


@router.get("/dlq", response_model=Page[DeadLetterView], summary="List dead letters")
async def list_letters(
    services: ServicesOf,
    queue: QueueFilter = None,
    topic: TopicFilter = None,
    error_class: ErrorClass = None,
    namespace: NamespaceFilter = None,
    since: Time = None,
    handled: Handled = False,
    page_token: PageToken = None,
    page_size: PageSize = PAGE_SIZE,
) -> Page[DeadLetterView]:
    """Oldest first in each topic partition. A page reads at most 1,000 dead letters, so with filters it may be short or empty
    before the end of the list. Continue while there is a `next_page_token`.
    """
    begin = instant_of("since", since)
    namespaces = () if namespace is None else (namespace,)
    filters = Filters(
        queues=QUEUES if queue is None else (queue,),
        keep=lambda letter: is_wanted(letter, topic=topic, error_class=error_class, since=begin, namespaces=namespaces),
        since=begin,
        handled=handled,
    )
    return await services.letters.page(filters, place_of(page_token), page_size, services.clock.now_ms())


@router.get("/dlq/{letter}", response_model=DeadLetterDetail, summary="Show a dead letter")
async def get_letter(letter: Letter, services: ServicesOf) -> DeadLetterDetail:
    """With key, value and headers of the record: as text if all of it is printable, otherwise as base64; at most 64 KiB each."""
    return detail_of(*await services.letters.one(LetterId.parse(letter)))


@router.get("/dlq/{letter}/value", summary="Show the whole value of a dead letter", response_model=dict[str, str])
async def get_value(letter: Letter, services: ServicesOf) -> JSONResponse:
    """As base64, so that no browser shows it as a page."""
    found, _ = await services.letters.one(LetterId.parse(letter))
    return JSONResponse({"base64": base64.b64encode(found.value).decode()})


@router.post(
    "/dlq/{letter}/replay", response_model=DeadLetterAnswer, summary="Replay a dead letter", openapi_extra=_ACTION
)
async def replay(letter: Letter, request: Request, services: ServicesOf) -> DeadLetterAnswer:
    """Produces the record to its original topic, with the same bytes, key and headers, and a header `tidegate-replay` with the id of the
    dead letter. It is produced once for all copies; a repeat answers `unchanged`.
    """
    actor, reason, again = asked(await read_object(request), "again")
    return await services.dead_letter_service.replay(LetterId.parse(letter), actor, reason, again=again)


@router.post("/dlq/{letter}/drop", response_model=DeadLetterAnswer, summary="Drop a dead letter", openapi_extra=_ACTION)
async def drop(letter: Letter, request: Request, services: ServicesOf) -> DeadLetterAnswer:
    """Marks it as dropped: it is no longer listed by default. It stays on its topic until retention removes it."""
    actor, reason, again = asked(await read_object(request), "again")
    return await services.dead_letter_service.drop(LetterId.parse(letter), actor, reason, again=again)
