"""Routes of raw requests, as on their topic, and of their receipts."""

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
"""Milliseconds after its sending for which a request without a receipt counts as pending: longer than any take-over or unnoticed outage.
Later the answer is 404."""

NamespaceOrDash = Annotated[
    str,
    Path(pattern=r"^(?:-|[a-z0-9][a-z0-9._-]{0,127})$", description="Namespace of the request, or `-` if it has none"),
]
RequestIdPath = Annotated[str, Path(pattern=FREE_TEXT_PATTERN, description="Id of the request")]


@router.post(
    "/requests",
    response_model=ReceiptView,
    summary="Send any request",
    openapi_extra=body({"oneOf": [ref(model.__name__) for model in REQUEST_TYPES.values()]}),
)
async def send_request(request: Request, services: ServicesOf, idempotency_key: IdempotencyKey = None) -> JSONResponse:
    """The body is the value of the record. The answer is the owner's receipt, or after 10 s a 202 with a Location."""
    return await write(services, await read_object(request), idempotency_key)


@router.get("/requests/{namespace}/{request_id:path}", response_model=ReceiptView, summary="Show a receipt")
async def get_receipt(
    namespace: NamespaceOrDash,
    request_id: RequestIdPath,
    services: ServicesOf,
    shard: Annotated[int | None, Query(ge=0, description="As in the Location; saves a search over all shards")] = None,
    sent: Annotated[
        int | None, Query(ge=0, description="As in the Location: time at which the request was sent")
    ] = None,
    key: Annotated[MessageKey | None, Query(description="As in the Location: key of a message")] = None,
) -> JSONResponse:
    """Receipts are kept 7 days, receipts of messages as long as the message. The receipt of a message with a key needs `key`."""
    known = None if namespace == NO_NAMESPACE else namespace
    now = services.clock.now_ms()
    try:
        receipt = await _found(services, known, request_id, shard, key)
    except ReceiptNotUnderstood as refusal:
        pending = _pending(request_id, known, key, now if sent is None else sent)
        told = pending.model_copy(update={"errors": (refusal.problem,)})
        return answer_with(Answer(told, refusal.shard, key))
    if receipt is not None:
        # The receipt of a refused request is shown with 200: reading it was successful.
        return JSONResponse(view_of(receipt).model_dump(mode="json"))
    # `abs`, because another process with a clock ahead of this one may have sent it.
    if shard is None or sent is None or abs(now - sent) > PENDING_MS_MAX:
        raise not_found(f"request {request_id}: has no receipt; check the id, receipts are kept 7 days")
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
