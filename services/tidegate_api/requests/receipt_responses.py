"""Turns a receipt into an HTTP answer: status, headers, body."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, urlencode

from fastapi.responses import JSONResponse

from tidegate_api.http.problem_responses import ApiProblem
from tidegate_api.requests.request_submission import Answer
from tidegate_client.views import ReceiptView
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus

STATUS = {
    ReceiptStatus.ACCEPTED: 200,
    ReceiptStatus.UNCHANGED: 200,
    ReceiptStatus.CANCELLED: 200,
    ReceiptStatus.PENDING: 202,
    ReceiptStatus.REJECTED: 400,
    ReceiptStatus.NOT_FOUND: 404,
    ReceiptStatus.CONFLICT: 409,
    ReceiptStatus.SUPERSEDED: 409,
    ReceiptStatus.TOO_LATE: 409,
}

_WORDS = {
    ReceiptStatus.UNCHANGED: "asks for the present state",
    ReceiptStatus.REJECTED: "was rejected; correct it and send it with a new id",
    ReceiptStatus.NOT_FOUND: "names an object that does not exist",
    ReceiptStatus.CONFLICT: "expected another version; read the present version and decide again",
    ReceiptStatus.SUPERSEDED: "was replaced by a later request",
    ReceiptStatus.TOO_LATE: "came too late: the named object can no longer be changed",
}


def view_of(receipt: Receipt, warnings: Sequence[str] = ()) -> ReceiptView:
    """Returns the view of a receipt. Warnings are only added if the apply changed something."""
    view = ReceiptView.model_validate_json(receipt.to_json())
    told = list(warnings) if receipt.status is ReceiptStatus.ACCEPTED else []
    return view.model_copy(update={"warnings": told})


def location_of(answer: Answer) -> str:
    """Returns the URL of the receipt. Shard and key in it save a search over all shards."""
    receipt = answer.receipt
    path = f"/api/v1/requests/{quote(receipt.namespace or '-', safe='')}/{quote(receipt.request_id, safe='')}"
    query = {"shard": str(answer.shard), "sent": str(receipt.at)}
    if answer.key is not None:
        query["key"] = answer.key
    return f"{path}?{urlencode(query)}"


def answer_with(
    answer: Answer, *, if_match: bool = False, strict: bool = False, warnings: Sequence[str] = ()
) -> JSONResponse:
    """Returns the HTTP answer of a request.

    Args:
        answer: Answer of the owner, or a pending one.
        if_match: Whether the expected version came as a precondition; then a conflict is 412 and not 409.
        strict: Whether a request for the present state is a conflict (409).
        warnings: Warnings of an apply.

    Raises:
        ApiProblem: The owner refused the request.
    """
    receipt = answer.receipt
    status = STATUS[receipt.status]
    if strict and receipt.status is ReceiptStatus.UNCHANGED:
        status = 409
    if status >= 400:
        raise refusal(receipt, 412 if if_match and receipt.status is ReceiptStatus.CONFLICT else status)
    headers = {"Location": location_of(answer)} if answer.is_pending else {}
    if receipt.version is not None:
        headers["ETag"] = f'"{receipt.version}"'
    return JSONResponse(view_of(receipt, warnings).model_dump(mode="json"), status, headers)


def refusal(receipt: Receipt, status: int) -> ApiProblem:
    subject = f"{receipt.namespace or '-'}/{receipt.name}" if receipt.name else f"request {receipt.request_id}"
    problems = "; ".join(map(str, receipt.errors))
    return ApiProblem(
        status,
        f"{subject}: {problems}" if problems else f"{subject}: the request {_WORDS[receipt.status]}",
        errors=receipt.errors,
        reason=receipt.status.value,
        receipt=view_of(receipt),
        request_id=receipt.request_id,
    )
