"""What routes share: the services, checked path parameters, paging, and the way of a write."""

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
RunPath = Annotated[str, Path(pattern=RUN_ID_PATTERN, description="Run or job id, as it was printed")]
NamespaceFilter = Annotated[str | None, Query(pattern=NAME_PATTERN, description="Only of this namespace")]
ScheduleFilter = Annotated[str | None, Query(pattern=NAME_PATTERN, description="Only of schedules with this name")]
PageToken = Annotated[
    str | None, Query(max_length=4_096, description="next_page_token of the page before, until it is empty")
]
PageSize = Annotated[int, Query(ge=1, le=PAGE_SIZE_MAX, description="Most items of this page")]
IdempotencyKey = Annotated[
    str | None, Header(max_length=128, description="Request id: a repeat under it does not act twice (7 days)")
]
Actor = Annotated[str | None, Query(max_length=1_024, description="Who wants it, for the record")]
ExpectedVersion = Annotated[int | None, Query(ge=0, description="Compare-and-set; 0: must not exist")]
IfMatch = Annotated[
    str | None,
    Header(description="ETag of the version that is to be replaced, or * for any that exists; 412 if it is another"),
]
IfNoneMatch = Annotated[str | None, Header(description="*: it must not exist; 412 if it does")]
Time = Annotated[str | None, Query(max_length=64, description="RFC 3339 time with offset")]
Reason = Annotated[str | None, Query(max_length=1_024, description="Why, for the record")]
PAGE_SIZE = PAGE_SIZE_DEFAULT
VERSION_DIGITS_MAX = 18
"""Of a version in an ETag: more than are ever counted, and no work for the conversion."""


async def refuse_unknown_parameters(request: Request) -> None:
    """Raises InvalidInput for a parameter that the route does not have: passed over, a dry run that is mistyped would be an apply."""
    if not request.query_params:
        return  # As most writes: what a route has is not looked up for them.
    known = sorted(_parameters_of(request.scope["route"].dependant))
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        hints = {name: did_you_mean(name, known) if known else "" for name in unknown}
        raise InvalidInput([Problem(name, "is no parameter of this", hint) for name, hint in hints.items()])


def _parameters_of(dependant: Dependant) -> set[str]:
    own = {field.alias for field in dependant.query_params}
    return own.union(*map(_parameters_of, dependant.dependencies))


def request_of(document: Mapping[str, Any], idempotency_key: str | None) -> WriteRequest:
    """Returns the request of a document by the very parser that reads the topic.

    Raises:
        InvalidInput: With all problems.
    """
    return parse_request(_written(identified(document, idempotency_key)).encode())


def _written(document: Mapping[str, Any]) -> str:
    try:
        return exact_json(document)
    except ValueError:
        # With a number that JSON cannot hold: the parser tells of it.
        return json.dumps(document)


def identified(document: Mapping[str, Any], idempotency_key: str | None) -> dict[str, Any]:
    """Returns the document with the id of the header, if it came that way. Raises InvalidInput when both differ, or a header cannot carry it."""
    given = document.get("id")
    if idempotency_key is None or given == idempotency_key:
        return dict(document)
    if not idempotency_key.isascii():
        # Its bytes say no encoding: read as one that was not meant it is another id, under which nobody asks or cancels.
        problem = Problem("Idempotency-Key", "has other characters than ASCII", "give it as id in the body")
        raise InvalidInput([problem])
    if given is not None:
        problem = Problem("id", "differs from the header Idempotency-Key", "give one of them")
        raise InvalidInput([problem])
    return {**document, "id": idempotency_key}


def refuse_key_of_list(idempotency_key: str | None, instead: str) -> None:
    """Raises InvalidInput where the header is given with a list: it names one request, and each of a list is one of its own."""
    if idempotency_key is not None:
        raise InvalidInput([Problem("Idempotency-Key", "cannot name a whole list", instead)])


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
    """A request whose body a route takes as it comes: the fields of the path, and what the body says beside them."""

    def __init__(self, request: Request, services: ServicesOf, idempotency_key: IdempotencyKey = None) -> None:
        self._request = request
        self._services = services
        self._idempotency_key = idempotency_key

    async def send(self, *, strict: bool = False, **outside: str) -> JSONResponse:
        """Sends it and answers with its receipt."""
        document = merged(outside, await read_object(self._request))
        return await write(self._services, document, self._idempotency_key, strict=strict)


RawRequestOf = Annotated[RawRequest, Depends()]


def known(**fields: Any) -> dict[str, Any]:
    """Returns the fields that were given."""
    return {name: value for name, value in fields.items() if value is not None}


def merged(outside: Mapping[str, Any], inside: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the body's fields with those that the path says; a body that says otherwise is refused."""
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
    """Returns the problems of one item of a list, with its place before their fields."""
    return [
        Problem(f"[{number}].{each.field}" if each.field else f"[{number}]", each.problem, each.hint)
        for each in problems
    ]


class Precondition(NamedTuple):
    """The version that a write expects.

    Attributes:
        version: As a request has it (`expected_version`); None is no check.
        of_header: Whether a header says it: a failure is 412 then, and not 409.
    """

    version: int | Literal["any"] | None
    of_header: bool


def precondition(
    expected_version: ExpectedVersion = None, if_match: IfMatch = None, if_none_match: IfNoneMatch = None
) -> Precondition:
    """Returns the version that a write expects, however that was said.

    Raises:
        InvalidInput: Two ways say it and differ, or a header names no version.
    """
    if if_none_match is not None and if_none_match.strip() != "*":
        raise InvalidInput([Problem("If-None-Match", "is not *", "give *, or the version that is meant as If-Match")])
    of_header = version_of_etag(if_match)
    if if_none_match is not None:
        if of_header is not None:
            raise InvalidInput([Problem("If-None-Match", "contradicts the header If-Match", "give one of them")])
        of_header = 0
    if None not in (expected_version, of_header) and expected_version != of_header:
        header = "If-Match" if if_none_match is None else "If-None-Match"
        raise InvalidInput([Problem("expected_version", f"differs from the header {header}", "give one of them")])
    return Precondition(expected_version if of_header is None else of_header, of_header is not None)


PreconditionOf = Annotated[Precondition, Depends(precondition)]


def version_of_etag(if_match: str | None) -> int | Literal["any"] | None:
    """Returns the version that an If-Match header names; `*` names any that exists.

    Raises:
        InvalidInput: It is no version's ETag.
    """
    if if_match is None:
        return None
    if if_match.strip() == "*":
        return "any"
    text = if_match.strip().removeprefix("W/").strip('"')
    if not text.isdecimal() or len(text) > VERSION_DIGITS_MAX:
        raise InvalidInput(
            [Problem("If-Match", "is not the ETag of a schedule or source", 'copy it as it came, such as "3"')]
        )
    return int(text)
