"""Routes of messages: send, show, cancel."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from tidegate_api.dependencies import Services
from tidegate_api.http.request_bodies import read_json
from tidegate_api.openapi import body, ref
from tidegate_api.requests.receipt_responses import location_of, view_of
from tidegate_api.requests.request_submission import BATCH_MAX, check_batch_size
from tidegate_api.routes.parameters import (
    Actor,
    IdempotencyKey,
    Reason,
    ServicesOf,
    known,
    placed,
    refuse_key_of_list,
    request_of,
    write,
)
from tidegate_client.views import MessageView, Page, ReceiptView
from tidegate_core.language.requests.requests import MessageCancel, MessageSend
from tidegate_core.language.requests.requests import Request as WriteRequest
from tidegate_core.language.values.names import FREE_TEXT_PATTERN, NAME_PATTERN
from tidegate_core.language.values.problems import MAX_PROBLEMS, InvalidInput, Problem

router = APIRouter(prefix="/api/v1", tags=["messages"])

Namespace = Annotated[str, Query(pattern=NAME_PATTERN, description="Namespace of the message")]
Key = Annotated[str | None, Query(pattern=FREE_TEXT_PATTERN, description="Key of the message; or message_id")]
MessageId = Annotated[
    str | None, Query(pattern=FREE_TEXT_PATTERN, description="Id of the request, or from its receipt; or key")
]
_BATCH = {"type": "array", "items": ref("MessageSend"), "minItems": 1, "maxItems": BATCH_MAX}


@router.post(
    "/messages",
    response_model=ReceiptView | Page[ReceiptView],
    summary="Send messages",
    openapi_extra=body({"oneOf": [ref("MessageSend"), _BATCH]}),
)
async def send_messages(request: Request, services: ServicesOf, idempotency_key: IdempotencyKey = None) -> JSONResponse:
    """One message, or a list of up to 1,000.

    A list is checked as a whole before anything is sent. Each item then has a receipt: 200 with all receipts, 202 while some are
    pending. A pending receipt with `errors` was not acknowledged by the broker, and says how to repeat it.
    """
    document = await read_json(request)
    if isinstance(document, list):
        return await _send_all(services, document, idempotency_key)
    return await write(services, _as_send(document), idempotency_key)


@router.get("/messages", response_model=MessageView, summary="Show a message")
async def get_message(
    services: ServicesOf, namespace: Namespace, key: Key = None, message_id: MessageId = None
) -> MessageView:
    return await services.messages.one(_cancel(namespace, key, message_id))


@router.delete("/messages", response_model=ReceiptView, summary="Cancel a message")
async def cancel_message(
    services: ServicesOf,
    namespace: Namespace,
    key: Key = None,
    message_id: MessageId = None,
    actor: Actor = None,
    reason: Reason = None,
    idempotency_key: IdempotencyKey = None,
) -> JSONResponse:
    """200 `cancelled`: it will not be delivered. 404: it does not exist. 409 `too_late`: it was delivered, or its delivery is under way.

    A delivery that is under way ends as without the cancel: the message is delivered, expires by its `expire_after`, or becomes a dead
    letter.
    """
    wanted = known(namespace=namespace, key=key, message_id=message_id, actor=actor, reason=reason)
    return await write(services, {"type": "message.cancel", **wanted}, idempotency_key)


async def _send_all(services: Services, documents: list[Any], idempotency_key: str | None) -> JSONResponse:
    check_batch_size(len(documents))
    refuse_key_of_list(idempotency_key, "give each message its own id")
    # On a thread: parsing 1,000 messages of 15 KB takes more than a second, and would delay starts of programs.
    requests = await services.pools.read(lambda: _parsed(documents))
    answers = await services.submission.submit_all(requests)
    pending = [answer for answer in answers if answer.is_pending]
    page = Page[ReceiptView](items=[view_of(answer.receipt) for answer in answers])
    headers = {"Location": location_of(pending[0])} if pending else {}
    return JSONResponse(page.model_dump(mode="json"), 202 if pending else 200, headers)


def _parsed(documents: list[Any]) -> list[WriteRequest]:
    """Returns the messages of a batch. Raises InvalidInput with the first problems of the batch, each with its place."""
    requests: list[WriteRequest] = []
    problems: list[Problem] = []
    seen: set[tuple[str | None, str]] = set()
    for number, document in enumerate(documents):
        try:
            message = request_of(_as_send(document), None)
        except InvalidInput as refusal:
            problems += placed(number, refusal.problems)
            if len(problems) >= MAX_PROBLEMS:
                break
            continue
        if message.id is not None:
            name = message.namespace, message.id
            if name in seen:
                problems.append(
                    Problem(f"[{number}].id", "is also the id of another message of the list", "give each its own id")
                )
            seen.add(name)
        requests.append(message)
    if problems:
        raise InvalidInput(problems)
    return requests


def _as_send(document: Any) -> dict[str, Any]:
    if not isinstance(document, dict):
        raise InvalidInput([Problem("", "is not a JSON object")])
    if document.get("type", MessageSend.EXAMPLE["type"]) != MessageSend.EXAMPLE["type"]:
        raise InvalidInput([Problem("type", "is not message.send", "other requests go to /api/v1/requests")])
    return {**document, "type": MessageSend.EXAMPLE["type"]}


def _cancel(namespace: str, key: str | None, message_id: str | None) -> MessageCancel:
    wanted = known(namespace=namespace, key=key, message_id=message_id)
    request = request_of({"type": "message.cancel", **wanted}, None)
    assert isinstance(request, MessageCancel)
    return request
