"""Schedules: what there is, and requests about them."""

from __future__ import annotations

from typing import Annotated, Any, get_args

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse

from tidegate_api.http.page_tokens import place_of
from tidegate_api.http.request_bodies import read_object
from tidegate_api.openapi import body, fields, ref, with_fields
from tidegate_api.reads.apply_warnings import warnings_of
from tidegate_api.reads.schedules import is_alive, suspended_within
from tidegate_api.requests.dry_run import dry_run as check_apply
from tidegate_api.requests.receipt_responses import answer_with
from tidegate_api.routes.parameters import (
    PAGE_SIZE,
    Actor,
    IdempotencyKey,
    NamePath,
    NamespaceFilter,
    NamespacePath,
    PageSize,
    PageToken,
    PreconditionOf,
    RawRequestOf,
    Reason,
    ServicesOf,
    Time,
    instant_of,
    known,
    request_of,
    write,
)
from tidegate_client.views import DryRun, Page, ReceiptView, ScheduleView, WhyView
from tidegate_core.language.requests.requests import ScheduleApply
from tidegate_core.language.values.states import Backlog, OnUpdate, SuspendMode

router = APIRouter(prefix="/api/v1", tags=["schedules"])

UpdateMode = Annotated[OnUpdate | None, Query(description="What becomes of what is pending, if not what the spec says")]
CONTROL_FIELDS = fields("reason", "actor", "id")
CONTROL_FIELDS["properties"]["expected_version"] = {"type": "integer", "minimum": 0}
SUSPEND_FIELDS = with_fields(
    CONTROL_FIELDS,
    mode={"type": "string", "enum": list(get_args(SuspendMode))},
    until={"type": "string", "format": "date-time"},
)
RESUME_FIELDS = with_fields(
    CONTROL_FIELDS,
    backlog={"type": "string", "enum": list(get_args(Backlog))},
    suspended_at={"type": "string", "format": "date-time"},
)
At = Annotated[
    str | None,
    Query(
        max_length=64, description="An RFC 3339 time, or a local time of the trigger's zone such as 2026-03-29T02:30"
    ),
]
Strict = Annotated[bool, Query(description="Whether what is so already is a conflict (409)")]
TRIGGER_FIELDS = fields("reason", "actor", "id")
TRIGGER_FIELDS["properties"] |= {
    "expected_version": {"type": "integer", "minimum": 0},
    "force_overlap": {"type": "boolean", "default": False},
}


@router.get("/schedules", response_model=Page[ScheduleView], summary="List schedules")
async def list_schedules(
    services: ServicesOf,
    namespace: NamespaceFilter = None,
    suspended_from: Time = None,
    suspended_to: Time = None,
    page_token: PageToken = None,
    page_size: PageSize = PAGE_SIZE,
) -> Page[ScheduleView]:
    """In the order of their shards, and within one by namespace and name: sort all pages by name where that is wanted.

    With `suspended_from` or `suspended_to` those that somebody suspended then (`suspended_from` <= since <
    `suspended_to`), and are suspended still; never one that began suspended. A page may have few items, or none, and still
    name the next one.
    """
    span = (instant_of("suspended_from", suspended_from), instant_of("suspended_to", suspended_to))
    keep = is_alive if span == (None, None) else suspended_within(*span)
    return await services.schedules.page(namespace, place_of(page_token), page_size, services.clock.now_ms(), keep)


@router.get("/schedules/{namespace}/{name}", response_model=ScheduleView, summary="Show a schedule")
async def get_schedule(
    namespace: NamespacePath, name: NamePath, services: ServicesOf, response: Response
) -> ScheduleView:
    """With its definition and up to three coming instants; the ETag is its version."""
    view = await services.schedules.one(namespace, name, services.clock.now_ms())
    response.headers["ETag"] = f'"{view.version}"'
    return view


@router.get(
    "/schedules/{namespace}/{name}/why",
    response_model=WhyView,
    summary="Say why nothing more of a schedule runs, or what became of an instant",
)
async def why_schedule(namespace: NamespacePath, name: NamePath, services: ServicesOf, at: At = None) -> WhyView:
    """Each reason has a code of the closed list in `docs/reasons.md`, words, values, and when it can change."""
    return await services.why.schedule(namespace, name, at)


@router.put(
    "/schedules/{namespace}/{name}",
    response_model=ReceiptView | DryRun,
    summary="Create or replace a schedule",
    openapi_extra=body(ref("ScheduleSpec")),
)
async def apply_schedule(
    namespace: NamespacePath,
    name: NamePath,
    request: Request,
    services: ServicesOf,
    precondition: PreconditionOf,
    dry_run: bool = False,
    on_update: UpdateMode = None,
    actor: Actor = None,
    reason: Reason = None,
    idempotency_key: IdempotencyKey = None,
) -> Any:
    """The body is the definition. `dry_run` checks it and says what would happen, without a request.

    A dry run looks for the program's file where this API process runs; at the apply a node looks for it on its own host.
    """
    document = {
        "type": "schedule.apply",
        "namespace": namespace,
        "name": name,
        "spec": await read_object(request),
        **known(expected_version=precondition.version, actor=actor, reason=reason, on_update=on_update),
    }
    wanted = request_of(document, idempotency_key)
    assert isinstance(wanted, ScheduleApply)
    # Read before anything is sent: what cannot be read then is no answer to an apply that was made.
    warnings = await warnings_of(services.schedules, services.pools, wanted.spec, services.clock.now_ms())
    if dry_run:
        return (await check_apply(services, wanted, if_match=precondition.of_header)).model_copy(
            update={"warnings": warnings}
        )
    answer = await services.submission.submit(wanted)
    return answer_with(answer, if_match=precondition.of_header, warnings=warnings)


@router.delete(
    "/schedules/{namespace}/{name}",
    response_model=ReceiptView,
    summary="Delete a schedule",
    response_class=JSONResponse,
)
async def delete_schedule(
    namespace: NamespacePath,
    name: NamePath,
    services: ServicesOf,
    precondition: PreconditionOf,
    actor: Actor = None,
    reason: Reason = None,
    cancel_running: bool = False,
    idempotency_key: IdempotencyKey = None,
) -> JSONResponse:
    """Its jobs and the runs before the start gate are cancelled; runs past it are listed as `running` and go on, unless
    `cancel_running`.
    """
    document = {
        "type": "schedule.delete",
        "namespace": namespace,
        "name": name,
        **known(
            expected_version=precondition.version, actor=actor, reason=reason, cancel_running=cancel_running or None
        ),
    }
    return await write(services, document, idempotency_key, if_match=precondition.of_header)


@router.post(
    "/schedules/{namespace}/{name}/suspend",
    response_model=ReceiptView,
    summary="Stop a schedule",
    openapi_extra=body(SUSPEND_FIELDS, required=False),
)
async def suspend_schedule(
    namespace: NamespacePath, name: NamePath, request: RawRequestOf, strict: Strict = False
) -> JSONResponse:
    """`mode` says what becomes of what waits and of what comes meanwhile; running programs are never touched."""
    return await request.send(type="schedule.suspend", namespace=namespace, name=name, strict=strict)


@router.post(
    "/schedules/{namespace}/{name}/resume",
    response_model=ReceiptView,
    summary="Let a schedule go on",
    openapi_extra=body(RESUME_FIELDS, required=False),
)
async def resume_schedule(
    namespace: NamespacePath, name: NamePath, request: RawRequestOf, strict: Strict = False
) -> JSONResponse:
    """From now on; the suspended span is never a miss. The receipt's `backlog` counts what goes on of it all the same.

    `suspended_at` is a compare-and-set with the suspension's `since`: another one, or a schedule that began suspended, is
    a conflict.
    """
    return await request.send(type="schedule.resume", namespace=namespace, name=name, strict=strict)


@router.post(
    "/schedules/{namespace}/{name}/trigger",
    response_model=ReceiptView,
    summary="Run a schedule now",
    openapi_extra=body(TRIGGER_FIELDS, required=False),
)
async def trigger_schedule(namespace: NamespacePath, name: NamePath, request: RawRequestOf) -> JSONResponse:
    """Skips the trigger only: constraints, limits and overlap (unless `force_overlap`) hold. The receipt's `id` names the job and its run."""
    return await request.send(type="schedule.trigger", namespace=namespace, name=name)
