"""Several schedules in one request: all of them are looked at before anything is sent, so that usually all or none change.

They live in several shards, and one transaction for them would bind the shards together. So each is a request of its own,
at the version that was looked at; what somebody else changes in between is a conflict of that one, told in its receipt.
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
"""Of one request: each is read, judged and awaited, and their definitions have 16 MB together at most."""
LOOKED_AT_ONCE = 4
"""Of these; each may search for an instant on one of the 16 threads of reads, and the others are left to who reads."""
ONE_BY_ONE = "leave it out, or send each schedule as a request of its own"

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

CreateOnly = Annotated[bool, Query(description="Whether one that exists is a conflict (409), and nothing is applied")]
UpdateMode = Annotated[OnUpdate | None, Query(description="What becomes of what is pending, if not what the specs say")]


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
    """The body is a list of 1 to 100 definitions. When one of them cannot be applied, or exists with `create_only`, nothing is.

    Each is then applied on its own, at the version that it had: its receipt says `conflict` where somebody else was
    quicker. 200 with all receipts in order, 202 while some are pending.
    """
    refuse_key_of_list(idempotency_key, ONE_BY_ONE)
    outside = known(actor=actor, reason=reason, on_update=on_update, expected_version=0 if create_only else None)

    def read(document: dict[str, Any]) -> ScheduleApply:
        # The spec names itself: the request takes its names from there.
        wanted = request_of({"type": "schedule.apply", **outside, "spec": document}, None)
        assert isinstance(wanted, ScheduleApply)
        return wanted

    wanted = await _each(services, await read_json(request), read)
    versions = await _looked_at(services, wanted)
    beside = {f"{each.namespace}/{each.name}": each.spec for each in wanted}
    now = services.clock.now_ms()
    warnings = [await warnings_of(services.schedules, services.pools, each.spec, now, beside) for each in wanted]
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
    """The body is a list of 1 to 100 names. When one of them does not exist (404), or is at another version than was
    expected (409), nothing is deleted.
    """
    refuse_key_of_list(idempotency_key, ONE_BY_ONE)
    outside = known(actor=actor, reason=reason, cancel_running=cancel_running or None)

    def read(document: dict[str, Any]) -> ScheduleDelete:
        foreign = [Problem(name, "does not belong here") for name in document if name not in _NAMES["properties"]]
        if foreign:
            raise InvalidInput(foreign)
        wanted = request_of({"type": "schedule.delete", **document, **outside}, None)
        assert isinstance(wanted, ScheduleDelete)
        return wanted

    wanted = await _each(services, await read_json(request), read)
    versions = await services.schedules.versions([(each.namespace, each.name) for each in wanted])
    _refuse(404, "is not there", wanted, [number for number, found in enumerate(versions) if not found], "deleted")
    stale = [
        number
        for number, (each, found) in enumerate(zip(wanted, versions, strict=True))
        if each.expected_version not in (None, found)
    ]
    _refuse(409, "is at another version", wanted, stale, "deleted")
    return await _send(services, _at(versions, wanted))


async def _each(services: Services, documents: Any, read: Callable[[dict[str, Any]], _Wanted]) -> list[_Wanted]:
    # On a thread: 100 definitions with payloads take more than a second, in which no program could start.
    return await services.pools.read(lambda: _read_each(documents, read))


def _read_each(documents: Any, read: Callable[[dict[str, Any]], _Wanted]) -> list[_Wanted]:
    """Returns the requests. Raises InvalidInput with the problems of all of them, each with its place in the list."""
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
            problems.append(Problem(f"[{number}].name", "stands on another schedule of the list", "leave one out"))
        seen.add((request.namespace, request.name))
        wanted.append(request)
    if problems:
        raise InvalidInput(problems)
    return wanted


async def _looked_at(services: Services, wanted: Sequence[ScheduleApply]) -> list[int]:
    """Returns the version at which each is to be applied, 0 where there is none.

    Raises:
        InvalidInput: Some would be rejected.
        ApiProblem: 409, some exist that should not.
    """
    turns = asyncio.Semaphore(LOOKED_AT_ONCE)

    async def in_turn(each: ScheduleApply) -> DryRun:
        async with turns:
            return await dry_run(services, each, with_file=False)

    found = await asyncio.gather(*map(in_turn, wanted), return_exceptions=True)
    invalid: list[Problem] = []
    existing: list[int] = []
    versions: list[int] = []
    for number, look in enumerate(found):
        if isinstance(look, InvalidInput):
            invalid += placed(number, look.problems)
        elif isinstance(look, ApiProblem) and look.status == 409:
            existing.append(number)
        elif isinstance(look, BaseException):
            raise look
        else:
            versions.append(look.version or 0)
    if invalid:
        raise InvalidInput(invalid)
    _refuse(409, "exists", wanted, existing, "applied")
    return versions


def _refuse(
    status: int, problem: str, wanted: Sequence[ScheduleApply] | Sequence[ScheduleDelete], places: list[int], done: str
) -> None:
    """Raises ApiProblem when something stands in the way of all of them."""
    if places:
        names = ", ".join(f"{wanted[number].namespace}/{wanted[number].name}" for number in places)
        errors = [Problem(f"[{number}].name", problem) for number in places]
        reason = ReceiptStatus.NOT_FOUND if status == 404 else ReceiptStatus.CONFLICT
        raise ApiProblem(status, f"{names}: {problem}; nothing was {done}", errors=errors, reason=reason.value)


def _at(versions: Sequence[int], wanted: Sequence[_Wanted]) -> list[_Wanted]:
    """Returns the requests as compare-and-sets with the versions that were looked at."""
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
