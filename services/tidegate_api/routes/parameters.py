"""Shared parts of routes: services, path and query parameters, paging, preconditions, and the sending of requests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import Depends, Header, Path, Query, Request
from fastapi.dependencies.models import Dependant
from fastapi.responses import JSONResponse

from tidegate_api.dependencies import Services
from tidegate_api.http.page_tokens import PAGE_SIZE_DEFAULT, PAGE_SIZE_MAX
from tidegate_api.http.request_bodies import read_object
from tidegate_api.requests.receipt_responses import answer_with
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.requests import Request as WriteRequest
from tidegate_core.language.values.instants import Instant, parse_instant
from tidegate_core.language.values.json_values import exact_json
from tidegate_core.language.values.names import NAME_PATTERN, RUN_ID_PATTERN
from tidegate_core.language.values.problems import InvalidInput, Problem, did_you_mean


def services_of(request: Request) -> Services:
    services = request.app.state.services
    assert isinstance(services, Services)
    return services


ServicesOf = Annotated[Services, Depends(services_of)]
NamespacePath = Annotated[str, Path(pattern=NAME_PATTERN, description="Namespace")]
NamePath = Annotated[str, Path(pattern=NAME_PATTERN, description="Name within the namespace")]
RunPath = Annotated[str, Path(pattern=RUN_ID_PATTERN, description="Id of the run or job")]
NamespaceFilter = Annotated[str | None, Query(pattern=NAME_PATTERN, description="Only of this namespace")]
ScheduleFilter = Annotated[str | None, Query(pattern=NAME_PATTERN, description="Only of schedules with this name")]
PageToken = Annotated[str | None, Query(max_length=4_096, description="next_page_token of the last page")]
PageSize = Annotated[int, Query(ge=1, le=PAGE_SIZE_MAX, description="Most items of this page")]
IdempotencyKey = Annotated[
    str | None,
    Header(max_length=128, description="Request id; a repeat with the same id has no second effect (7 days)"),
]
Actor = Annotated[str | None, Query(max_length=1_024, description="Who does this; stored with the request")]
ExpectedVersion = Annotated[
    int | None, Query(ge=0, description="Expected present version, 409 if it differs; 0: must not exist")
]
IfMatch = Annotated[
    str | None,
    Header(description="ETag of the version to replace, or * for any existing version; 412 if the version differs"),
]
IfNoneMatch = Annotated[str | None, Header(description="*: must not exist; 412 if it exists")]
Time = Annotated[str | None, Query(max_length=64, description="RFC 3339 time with offset")]
Reason = Annotated[str | None, Query(max_length=1_024, description="Why; stored with the request")]
PAGE_SIZE = PAGE_SIZE_DEFAULT
VERSION_DIGITS_MAX = 18
"""Digits of a version in an ETag: more than a version ever has, and cheap to convert."""


async def refuse_unknown_parameters(request: Request) -> None:
    """Raises InvalidInput for an unknown parameter. If it were ignored, a mistyped `dry_run` would be a real apply."""
    if not request.query_params:
        return  # Most requests have no parameters; this saves the comparison.
    known = sorted(_parameters_of(request.scope["route"].dependant))
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        hints = {name: did_you_mean(name, known) if known else "" for name in unknown}
        raise InvalidInput([Problem(name, "is not a parameter of this route", hint) for name, hint in hints.items()])


def _parameters_of(dependant: Dependant) -> set[str]:
    own = {field.alias for field in dependant.query_params}
    return own.union(*map(_parameters_of, dependant.dependencies))


def request_of(document: Mapping[str, Any], idempotency_key: str | None) -> WriteRequest:
    """Returns the request of a document, by the same parser that reads the topic.

    Raises:
        InvalidInput: The document is wrong; the error has all problems.
    """
    return parse_request(_written(identified(document, idempotency_key)).encode())


def _written(document: Mapping[str, Any]) -> str:
    try:
        return exact_json(document)
    except ValueError:
        # The document has a number that JSON cannot hold; the parser reports it.
        return json.dumps(document)


def identified(document: Mapping[str, Any], idempotency_key: str | None) -> dict[str, Any]:
    """Returns the document with the id of the header. Raises InvalidInput if body and header differ, or the header is not ASCII."""
    given = document.get("id")
    if idempotency_key is None or given == idempotency_key:
        return dict(document)
    if not idempotency_key.isascii():
        # A header has no encoding. Read in the wrong one it would be another id, which no client knows.
        problem = Problem("Idempotency-Key", "has characters outside ASCII", "send it as id in the body")
        raise InvalidInput([problem])
    if given is not None:
        problem = Problem("id", "differs from the header Idempotency-Key", "send one of them")
        raise InvalidInput([problem])
    return {**document, "id": idempotency_key}


def refuse_key_of_list(idempotency_key: str | None, instead: str) -> None:
    """Raises InvalidInput if the header is sent with a list: it is the id of one request, and a list has several."""
    if idempotency_key is not None:
        raise InvalidInput([Problem("Idempotency-Key", "is for one request, not for a list", instead)])


async def write(
    services: Services,
    document: Mapping[str, Any],
    idempotency_key: str | None,
    *,
    if_match: bool = False,
    strict: bool = False,
) -> JSONResponse:
    """Sends a request and answers with its receipt."""
    answer = await services.submission.submit(request_of(document, idempotency_key))
    return answer_with(answer, if_match=if_match, strict=strict)


class RawRequest:
    """A request with a raw body: the fields of the path are merged with the fields of the body."""

    def __init__(self, request: Request, services: ServicesOf, idempotency_key: IdempotencyKey = None) -> None:
        self._request = request
        self._services = services
        self._idempotency_key = idempotency_key

    async def send(self, *, strict: bool = False, **outside: str) -> JSONResponse:
        """Sends the request and answers with its receipt."""
        document = merged(outside, await read_object(self._request))
        return await write(self._services, document, self._idempotency_key, strict=strict)


RawRequestOf = Annotated[RawRequest, Depends()]


def known(**fields: Any) -> dict[str, Any]:
    """Returns the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def merged(outside: Mapping[str, Any], inside: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the fields of body and path. Raises InvalidInput if the body differs from the path."""
    for name, value in outside.items():
        if name in inside and inside[name] != value:
            raise InvalidInput([Problem(name, f'differs from the path\'s, "{value}"', "leave it out of the body")])
    return {**inside, **outside}


def instant_of(field: str, text: str | None) -> Instant | None:
    """Returns the instant of a query parameter. Raises InvalidInput."""
    try:
        return None if text is None else parse_instant(text)
    except ValueError as error:
        raise InvalidInput([Problem(field, str(error))]) from error


def placed(number: int, problems: Sequence[Problem]) -> list[Problem]:
    """Returns the problems of one item of a list; each field is prefixed with the item's place."""
    return [
        Problem(f"[{number}].{each.field}" if each.field else f"[{number}]", each.problem, each.hint)
        for each in problems
    ]


class Precondition(NamedTuple):
    """The version that a request expects.

    Attributes:
        version: Value of `expected_version` of the request; None is no check.
        of_header: Whether it came in a header; then a conflict is 412 and not 409.
    """

    version: int | Literal["any"] | None
    of_header: bool


def precondition(
    expected_version: ExpectedVersion = None, if_match: IfMatch = None, if_none_match: IfNoneMatch = None
) -> Precondition:
    """Returns the version that a request expects, from parameter or headers.

    Raises:
        InvalidInput: Parameter and headers differ, or a header holds no version.
    """
    if if_none_match is not None and if_none_match.strip() != "*":
        raise InvalidInput([Problem("If-None-Match", "is not *", "send *, or the version as If-Match")])
    of_header = version_of_etag(if_match)
    if if_none_match is not None:
        if of_header is not None:
            raise InvalidInput([Problem("If-None-Match", "contradicts the header If-Match", "send one of them")])
        of_header = 0
    if None not in (expected_version, of_header) and expected_version != of_header:
        header = "If-Match" if if_none_match is None else "If-None-Match"
        raise InvalidInput([Problem("expected_version", f"differs from the header {header}", "send one of them")])
    return Precondition(expected_version if of_header is None else of_header, of_header is not None)


PreconditionOf = Annotated[Precondition, Depends(precondition)]


def version_of_etag(if_match: str | None) -> int | Literal["any"] | None:
    """Returns the version in an If-Match header; `*` means any existing version.

    Raises:
        InvalidInput: The header is not the ETag of a version.
    """
    if if_match is None:
        return None
    if if_match.strip() == "*":
        return "any"
    text = if_match.strip().removeprefix("W/").strip('"')
    if not text.isdecimal() or len(text) > VERSION_DIGITS_MAX:
        raise InvalidInput(
            [Problem("If-Match", "is not the ETag of a schedule or source", 'copy it unchanged, such as "3"')]
        )
    return int(text)
