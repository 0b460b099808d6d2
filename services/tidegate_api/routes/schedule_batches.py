"""Routes for several schedules in one request. All schedules are checked before any request is sent, so that usually all or none change.

The schedules are in several shards, and one transaction would couple the shards. So each schedule is a separate request that expects the
checked version. If another request changes a schedule in between, its receipt is a conflict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse

from tidegate_api.dependencies import Services
from tidegate_api.http.problem_responses import ApiProblem
from tidegate_api.http.request_bodies import read_json
from tidegate_api.openapi import body, ref
from tidegate_api.reads.apply_warnings import warnings_of
from tidegate_api.requests.dry_run import dry_run
from tidegate_api.requests.receipt_responses import location_of, view_of
from tidegate_api.routes.parameters import (
    Actor,
    IdempotencyKey,
    Reason,
    ServicesOf,
    known,
    placed,
    refuse_key_of_list,
    request_of,
)
from tidegate_client.views import DryRun, Page, ReceiptView
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.language.requests.requests import Request as WriteRequest
from tidegate_core.language.requests.requests import ScheduleApply, ScheduleDelete
from tidegate_core.language.values.problems import InvalidInput, Problem
from tidegate_core.language.values.states import OnUpdate

router = APIRouter(prefix="/api/v1", tags=["schedules"])

SCHEDULES_MAX = 100
"""Schedules of one request: each is read, checked and awaited. Their definitions have at most 16 MB together."""
CHECKED_AT_ONCE = 4
"""Schedules that are checked at once. Each may search for an instant on one of the 16 read threads; the others are left to reads."""
ONE_BY_ONE = "leave it out, or send each schedule in its own request"

_NAMES: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["namespace", "name"],
    "properties": {
        "namespace": {"type": "string"},
        "name": {"type": "string"},
        "expected_version": {"type": "integer", "minimum": 0},
    },
}
_Wanted = TypeVar("_Wanted", ScheduleApply, ScheduleDelete)

CreateOnly = Annotated[bool, Query(description="Apply nothing if one of the schedules exists (409)")]
UpdateMode = Annotated[
    OnUpdate | None, Query(description="What happens to pending jobs; default: `on_update` of each definition")
]


def _list_of(schema: dict[str, Any]) -> dict[str, Any]:
    return body({"type": "array", "items": schema, "minItems": 1, "maxItems": SCHEDULES_MAX})


@router.post(
    "/schedules",
    response_model=Page[ReceiptView],
    summary="Create or replace several schedules",
    openapi_extra=_list_of(ref("ScheduleSpec")),
)
async def apply_schedules(
    request: Request,
    services: ServicesOf,
    create_only: CreateOnly = False,
    on_update: UpdateMode = None,
    actor: Actor = None,
    reason: Reason = None,
    idempotency_key: IdempotencyKey = None,
) -> JSONResponse:
    """The body is a list of 1 to 100 definitions. If one of them cannot be applied, or exists with `create_only`, none is applied.

    Each is then applied separately, at the version that was checked. Its receipt is `conflict` if another request changed it first.
    200 with all receipts in order, 202 while some are pending.
    """
    refuse_key_of_list(idempotency_key, ONE_BY_ONE)
    outside = known(actor=actor, reason=reason, on_update=on_update, expected_version=0 if create_only else None)

    def read(document: dict[str, Any]) -> ScheduleApply:
        # The request takes namespace and name from the definition.
        wanted = request_of({"type": "schedule.apply", **outside, "spec": document}, None)
        assert isinstance(wanted, ScheduleApply)
        return wanted

    wanted = await _each(services, await read_json(request), read)
    versions = await _checked_versions(services, wanted)
    together = {f"{each.namespace}/{each.name}": each.spec for each in wanted}
    now = services.clock.now_ms()
    warnings = [await warnings_of(services.schedules, services.pools, each.spec, now, together) for each in wanted]
    return await _send(services, _at(versions, wanted), warnings)


@router.post(
    "/schedules/delete",
    response_model=Page[ReceiptView],
    summary="Delete several schedules",
    openapi_extra=_list_of(_NAMES),
)
async def delete_schedules(
    request: Request,
    services: ServicesOf,
    actor: Actor = None,
    reason: Reason = None,
    cancel_running: bool = False,
    idempotency_key: IdempotencyKey = None,
) -> JSONResponse:
    """The body is a list of 1 to 100 names. If one of them does not exist (404), or has another version than expected (409),
    nothing is deleted.
    """
    refuse_key_of_list(idempotency_key, ONE_BY_ONE)
    outside = known(actor=actor, reason=reason, cancel_running=cancel_running or None)

    def read(document: dict[str, Any]) -> ScheduleDelete:
        foreign = [
            Problem(name, "is not a field of this request") for name in document if name not in _NAMES["properties"]
        ]
        if foreign:
            raise InvalidInput(foreign)
        wanted = request_of({"type": "schedule.delete", **document, **outside}, None)
        assert isinstance(wanted, ScheduleDelete)
        return wanted

    wanted = await _each(services, await read_json(request), read)
    versions = await services.schedules.versions([(each.namespace, each.name) for each in wanted])
    _refuse(404, "does not exist", wanted, [number for number, found in enumerate(versions) if not found], "deleted")
    stale = [
        number
        for number, (each, found) in enumerate(zip(wanted, versions, strict=True))
        if each.expected_version not in (None, found)
    ]
    _refuse(409, "has another version than expected", wanted, stale, "deleted")
    return await _send(services, _at(versions, wanted))


async def _each(services: Services, documents: Any, read: Callable[[dict[str, Any]], _Wanted]) -> list[_Wanted]:
    # On a thread: parsing 100 definitions with payloads takes more than a second, and would delay starts of programs.
    return await services.pools.read(lambda: _read_each(documents, read))


def _read_each(documents: Any, read: Callable[[dict[str, Any]], _Wanted]) -> list[_Wanted]:
    """Returns the requests. Raises InvalidInput with all problems, each with its place in the list."""
    if not isinstance(documents, list) or not 1 <= len(documents) <= SCHEDULES_MAX:
        raise InvalidInput([Problem("", f"the body is not a list of 1 to {SCHEDULES_MAX} schedules")])
    wanted: list[_Wanted] = []
    problems: list[Problem] = []
    seen: set[tuple[str, str]] = set()
    for number, document in enumerate(documents):
        try:
            if not isinstance(document, dict):
                raise InvalidInput([Problem("", "is not a JSON object")])
            request = read(document)
        except InvalidInput as refusal:
            problems += placed(number, refusal.problems)
            continue
        if (request.namespace, request.name) in seen:
            problems.append(
                Problem(f"[{number}].name", "is also the name of another schedule of the list", "leave one out")
            )
        seen.add((request.namespace, request.name))
        wanted.append(request)
    if problems:
        raise InvalidInput(problems)
    return wanted


async def _checked_versions(services: Services, wanted: Sequence[ScheduleApply]) -> list[int]:
    """Checks the schedules with dry runs. Returns the present version of each; 0 if it does not exist.

    Raises:
        InvalidInput: Some would be rejected.
        ApiProblem: 409, some exist although `create_only` was given.
    """
    turns = asyncio.Semaphore(CHECKED_AT_ONCE)

    async def in_turn(each: ScheduleApply) -> DryRun:
        async with turns:
            return await dry_run(services, each, with_file=False)

    found = await asyncio.gather(*map(in_turn, wanted), return_exceptions=True)
    invalid: list[Problem] = []
    existing: list[int] = []
    versions: list[int] = []
    for number, outcome in enumerate(found):
        if isinstance(outcome, InvalidInput):
            invalid += placed(number, outcome.problems)
        elif isinstance(outcome, ApiProblem) and outcome.status == 409:
            existing.append(number)
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            versions.append(outcome.version or 0)
    if invalid:
        raise InvalidInput(invalid)
    _refuse(409, "exists", wanted, existing, "applied")
    return versions


def _refuse(
    status: int, problem: str, wanted: Sequence[ScheduleApply] | Sequence[ScheduleDelete], places: list[int], done: str
) -> None:
    """Raises ApiProblem if at least one schedule has the problem."""
    if places:
        names = ", ".join(f"{wanted[number].namespace}/{wanted[number].name}" for number in places)
        errors = [Problem(f"[{number}].name", problem) for number in places]
        reason = ReceiptStatus.NOT_FOUND if status == 404 else ReceiptStatus.CONFLICT
        raise ApiProblem(status, f"{names}: {problem}; nothing was {done}", errors=errors, reason=reason.value)


def _at(versions: Sequence[int], wanted: Sequence[_Wanted]) -> list[_Wanted]:
    """Returns the requests with the checked versions as expected versions."""
    return [
        each.model_copy(update={"expected_version": version}) for each, version in zip(wanted, versions, strict=True)
    ]


async def _send(
    services: Services, requests: Sequence[WriteRequest], warnings: Sequence[Sequence[str]] | None = None
) -> JSONResponse:
    answers = await services.submission.submit_all(requests)
    pending = [answer for answer in answers if answer.is_pending]
    told = zip(answers, warnings or [()] * len(answers), strict=True)
    page = Page[ReceiptView](items=[view_of(answer.receipt, each) for answer, each in told])
    headers = {"Location": location_of(pending[0])} if pending else {}
    return JSONResponse(page.model_dump(mode="json"), 202 if pending else 200, headers)
