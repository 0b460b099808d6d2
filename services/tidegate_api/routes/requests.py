"""Requests as they stand on the topic, and their receipts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse

from tidegate_api.dependencies import Services
from tidegate_api.http.problem_responses import not_found
from tidegate_api.http.request_bodies import read_object
from tidegate_api.openapi import body, ref
from tidegate_api.requests.receipt_decoding import ReceiptNotUnderstood
from tidegate_api.requests.receipt_responses import answer_with, view_of
from tidegate_api.requests.request_submission import Answer
from tidegate_api.routes.parameters import IdempotencyKey, ServicesOf, write
from tidegate_client.views import ReceiptView
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus
from tidegate_core.language.requests.requests import REQUEST_TYPES
from tidegate_core.language.values.instants import Instant
from tidegate_core.language.values.names import FREE_TEXT_PATTERN, MessageKey
from tidegate_core.rows.keys import NO_NAMESPACE

router = APIRouter(prefix="/api/v1", tags=["requests"])

PENDING_MS_MAX = 3_600_000
"""How long after it was sent a request without an answer is called pending: longer than any take-over or outage that
nobody notices. After that its receipt is simply not there."""

NamespaceOrDash = Annotated[
    str, Path(pattern=r"^(?:-|[a-z0-9][a-z0-9._-]{0,127})$", description="`-` where it has none")
]
RequestIdPath = Annotated[str, Path(pattern=FREE_TEXT_PATTERN, description="The request's id")]


@router.post(
    "/requests",
    response_model=ReceiptView,
    summary="Send any request",
    openapi_extra=body({"oneOf": [ref(model.__name__) for model in REQUEST_TYPES.values()]}),
)
async def send_request(request: Request, services: ServicesOf, idempotency_key: IdempotencyKey = None) -> JSONResponse:
    """The body is the record's value. Answers with the owner's receipt, 202 and a Location when it takes over 10 s."""
    return await write(services, await read_object(request), idempotency_key)


@router.get("/requests/{namespace}/{request_id:path}", response_model=ReceiptView, summary="Ask for a receipt")
async def get_receipt(
    namespace: NamespaceOrDash,
    request_id: RequestIdPath,
    services: ServicesOf,
    shard: Annotated[int | None, Query(ge=0, description="As the Location said; saves a search")] = None,
    sent: Annotated[int | None, Query(ge=0, description="As the Location said: when it was sent")] = None,
    key: Annotated[MessageKey | None, Query(description="As the Location said: of a message with a key")] = None,
) -> JSONResponse:
    """Receipts are kept 7 days, those of messages as long as the message. That of a message with a key is found by id and `key`."""
    known = None if namespace == NO_NAMESPACE else namespace
    now = services.clock.now_ms()
    try:
        receipt = await _found(services, known, request_id, shard, key)
    except ReceiptNotUnderstood as refusal:
        pending = _pending(request_id, known, key, now if sent is None else sent)
        told = pending.model_copy(update={"errors": (refusal.problem,)})
        return answer_with(Answer(told, refusal.shard, key))
    if receipt is not None:
        # Asking is no request: a refused one is shown, not repeated as an error.
        return JSONResponse(view_of(receipt).model_dump(mode="json"))
    # Another process may have sent it, whose clock is ahead of this one's.
    if shard is None or sent is None or abs(now - sent) > PENDING_MS_MAX:
        raise not_found(f"request {request_id}: no receipt of it is kept")
    return answer_with(Answer(_pending(request_id, known, key, sent), shard, key))


def _pending(request_id: str, namespace: str | None, key: str | None, sent: Instant) -> Receipt:
    return Receipt.model_construct(
        request_id=request_id, status=ReceiptStatus.PENDING, namespace=namespace, name=key, at=sent
    )


async def _found(
    services: Services, namespace: str | None, request_id: str, shard: int | None, key: str | None
) -> Receipt | None:
    shards = (await services.cluster.current()).shards
    if shard is None or shard >= shards:
        return await services.pools.read(lambda: services.answers.anywhere(namespace, request_id, key, shards))

    def look() -> Receipt | None:
        stored = services.answers.of_request(namespace, request_id, shard)
        if stored is not None or namespace is None:
            return stored
        return services.answers.of_message(namespace, key, request_id, shard)

    return await services.pools.read(look)
