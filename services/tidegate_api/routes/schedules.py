"""Routes of schedules: list, show, explain, apply, delete, suspend, resume, trigger."""

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

UpdateMode = Annotated[
    OnUpdate | None, Query(description="What happens to pending jobs; default: `on_update` of the definition")
]
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
Strict = Annotated[bool, Query(description="Whether a request for the present state is a conflict (409)")]
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
    """Ordered by shard, then by namespace and name. For an order by name, read all pages and sort.

    `suspended_from` and `suspended_to` select schedules that a request suspended in this span (`suspended_from` <= since <
    `suspended_to`) and that are still suspended; never schedules that were created suspended. A page may be short or empty and still have
    a `next_page_token`.
    """
    span = (instant_of("suspended_from", suspended_from), instant_of("suspended_to", suspended_to))
    keep = is_alive if span == (None, None) else suspended_within(*span)
    return await services.schedules.page(namespace, place_of(page_token), page_size, services.clock.now_ms(), keep)


@router.get("/schedules/{namespace}/{name}", response_model=ScheduleView, summary="Show a schedule")
async def get_schedule(
    namespace: NamespacePath, name: NamePath, services: ServicesOf, response: Response
) -> ScheduleView:
    """With its definition and up to three next nominal times. The ETag is its version."""
    view = await services.schedules.one(namespace, name, services.clock.now_ms())
    response.headers["ETag"] = f'"{view.version}"'
    return view


@router.get(
    "/schedules/{namespace}/{name}/why",
    response_model=WhyView,
    summary="Explain why a schedule does not run, or the outcome of an instant",
)
async def why_schedule(namespace: NamespacePath, name: NamePath, services: ServicesOf, at: At = None) -> WhyView:
    """Each reason has a code from the list in `docs/reasons.md`, a text, values, and the time at which it can change."""
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
    """The body is the definition. `dry_run` checks it and returns the effect, without sending a request.

    A dry run checks the program's file on the host of this API process. At an apply a node checks it on its own host.
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
    # Read before the request is sent: a failed read must not become the answer to a successful apply.
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
    """Its jobs, and runs before the start gate, are cancelled. Runs past the start gate are listed as `running` and go on, unless
    `cancel_running` is set.
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
    summary="Suspend a schedule",
    openapi_extra=body(SUSPEND_FIELDS, required=False),
)
async def suspend_schedule(
    namespace: NamespacePath, name: NamePath, request: RawRequestOf, strict: Strict = False
) -> JSONResponse:
    """`mode` decides about waiting jobs, and about occurrences during the suspension. Running programs go on."""
    return await request.send(type="schedule.suspend", namespace=namespace, name=name, strict=strict)


@router.post(
    "/schedules/{namespace}/{name}/resume",
    response_model=ReceiptView,
    summary="Resume a schedule",
    openapi_extra=body(RESUME_FIELDS, required=False),
)
async def resume_schedule(
    namespace: NamespacePath, name: NamePath, request: RawRequestOf, strict: Strict = False
) -> JSONResponse:
    """The schedule fires again from now. Instants of the suspended span are no misfires. The receipt's `backlog` counts the jobs of
    the span that go on.

    `suspended_at` must equal `since` of the suspension. Another suspension, or a schedule that was created suspended, is a conflict.
    """
    return await request.send(type="schedule.resume", namespace=namespace, name=name, strict=strict)


@router.post(
    "/schedules/{namespace}/{name}/trigger",
    response_model=ReceiptView,
    summary="Trigger a schedule now",
    openapi_extra=body(TRIGGER_FIELDS, required=False),
)
async def trigger_schedule(namespace: NamespacePath, name: NamePath, request: RawRequestOf) -> JSONResponse:
    """Skips only the trigger: constraints, limits and the overlap policy (unless `force_overlap`) apply. The receipt has the id of the
    job and its run.
    """
    return await request.send(type="schedule.trigger", namespace=namespace, name=name)
