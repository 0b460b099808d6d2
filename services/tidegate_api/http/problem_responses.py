"""Turns every error into a document `application/problem+json` (RFC 9457). No stack trace leaves the process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from tidegate_client.views import FieldProblem, ProblemView, ReceiptView
from tidegate_core.language.values.problems import TOO_LARGE, InvalidInput, Problem
from tidegate_core.language.values.validation_errors import plain_words
from tidegate_core.rows.effects import NotProduced, Outcome
from tidegate_core.writes.partition_map import MapUnreadable
from tidegate_ports.store import StoreUnavailable

MEDIA_TYPE = "application/problem+json"
RETRY_AFTER_S = 2
"""Seconds until a client should repeat a request while Kafka or DynamoDB is down; after their return they are used within a second."""

NAMES = {
    400: "invalid-input",
    401: "not-authorised",
    403: "foreign-page",
    404: "not-found",
    405: "method-not-allowed",
    408: "body-unfinished",
    409: "conflict",
    412: "version-changed",
    413: "too-large",
    422: "idempotency-key-reused",
    500: "bug",
    503: "unavailable",
}


class ApiProblem(Exception):
    """A refusal, with the content of its problem document.

    Attributes:
        status: HTTP status.
        detail: Sentence that names the item, the problem and what to do.
        errors: Fields to correct.
    """

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        errors: Sequence[Problem] = (),
        reason: str | None = None,
        receipt: ReceiptView | None = None,
        request_id: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = tuple(errors)
        self.reason = reason
        self.receipt = receipt
        self.request_id = request_id
        self.headers = dict(headers or {})


class BodyTooLarge(HTTPException):
    """A body is larger than its route allows. It is an HTTPException, because FastAPI turns other errors of reading a body into 400."""

    def __init__(self, bytes_max: int) -> None:
        super().__init__(413)
        self.problem = Problem(
            "", f"{TOO_LARGE}: more than {bytes_max} bytes", "split it, or send a pointer to the data"
        )


class BodyUnfinished(HTTPException):
    """A body stopped arriving, or took too long. It is an HTTPException for the same reason as BodyTooLarge."""

    def __init__(self, pause_s: float, body_s: float) -> None:
        super().__init__(
            408,
            f"the request's body stopped for {pause_s:g} s, or was incomplete after {body_s:g} s; repeat the request",
        )


class NoRoomForBody(HTTPException):
    """Other large bodies use all the memory for bodies. It is an HTTPException for the same reason as BodyTooLarge."""

    def __init__(self) -> None:
        super().__init__(503)


def not_found(detail: str) -> ApiProblem:
    return ApiProblem(404, detail)


def unavailable(what: str, *, request_id: str | None = None) -> ApiProblem:
    """Returns a 503: Kafka or DynamoDB does not answer, and the client should repeat the request later."""
    return ApiProblem(503, what, request_id=request_id, headers={"Retry-After": str(RETRY_AFTER_S)})


def unless_taken(fate: Outcome, what: str, request_id: str) -> ApiProblem | None:
    """Returns the problem of a record that the broker did not acknowledge; None if it did."""
    if not isinstance(fate, NotProduced):
        return None
    return unavailable(
        f"the broker did not acknowledge {what} {request_id} ({fate.message}); it may still arrive, so repeat it with the same id: "
        "a repeat counts once",
        request_id=request_id,
    )


def invalid(problem: Problem) -> InvalidInput:
    return InvalidInput([problem])


def install(app: FastAPI) -> None:
    """Registers the handlers that turn errors into problem documents."""
    app.add_exception_handler(ApiProblem, _api_problem)
    app.add_exception_handler(InvalidInput, _invalid_input)
    app.add_exception_handler(RequestValidationError, _request_invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(BodyTooLarge, _body_too_large)
    app.add_exception_handler(BodyUnfinished, _body_unfinished)
    app.add_exception_handler(NoRoomForBody, _no_room_for_body)
    app.add_exception_handler(StoreUnavailable, _store_unavailable)
    app.add_exception_handler(MapUnreadable, _map_unreadable)


def respond(request: Request, error: ApiProblem) -> JSONResponse:
    """Returns the document of a problem."""
    document = ProblemView(
        type=f"urn:tidegate:problem:{NAMES.get(error.status, 'error')}",
        title=HTTPStatus(error.status).phrase,
        status=error.status,
        detail=error.detail,
        instance=request.url.path,
        request_id=error.request_id,
        errors=[FieldProblem(field=each.field, problem=each.problem, hint=each.hint) for each in error.errors],
        reason=error.reason,
        receipt=error.receipt,
    )
    return JSONResponse(document.model_dump(mode="json", exclude_none=True), error.status, error.headers, MEDIA_TYPE)


def _api_problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ApiProblem)
    return respond(request, error)


def _invalid_input(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, InvalidInput)
    return respond(request, ApiProblem(error.http_status, str(error), errors=error.problems))


def _request_invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    problems = [
        Problem(_path(each["loc"]), plain_words(each["type"], str(each["msg"]), each.get("ctx", {})))
        for each in error.errors()
    ]
    return respond(request, ApiProblem(400, "; ".join(map(str, problems)), errors=problems))


def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    detail = f"{request.method} {request.url.path}: {error.detail}; the paths are in /openapi.json"
    return respond(request, ApiProblem(error.status_code, detail, headers=error.headers))


def _body_too_large(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, BodyTooLarge)
    return respond(request, ApiProblem(413, str(error.problem), errors=[error.problem]))


def _body_unfinished(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, BodyUnfinished)
    return respond(request, ApiProblem(408, error.detail))


def _no_room_for_body(request: Request, error: Exception) -> JSONResponse:
    what = "other large requests use all memory for bodies; repeat the request later, or send smaller batches"
    return respond(request, unavailable(what))


def _store_unavailable(request: Request, error: Exception) -> JSONResponse:
    return respond(request, unavailable("the store does not answer; repeat the request"))


def _map_unreadable(request: Request, error: Exception) -> JSONResponse:
    return respond(request, unavailable(f"{error} Use an API process of the nodes' release, or update this one"))


def bug_document(request: Request) -> JSONResponse:
    """Returns the problem document of an unexpected error. It points to the log and holds no details."""
    return respond(request, ApiProblem(500, "unexpected error; find it in the API's log by this X-Request-Id"))


def _path(location: Any) -> str:
    """Returns the path of a field, without FastAPI's names for the parts of a request."""
    if location[:1] == ("query",):
        location = location[:2]  # The index of a repeated query parameter is left out.
    parts = [str(part) for part in location if part not in ("body", "query", "path", "header")]
    return ".".join(parts)
