"""Jobs: occurrences in the making, and what each waits for."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse

from tidegate_api.bodies import read_object
from tidegate_api.openapi import body, fields
from tidegate_api.page_tokens import place_of
from tidegate_api.routes.common import (
    PAGE_SIZE,
    IdempotencyKey,
    NamespaceFilter,
    PageSize,
    PageToken,
    RunPath,
    ScheduleFilter,
    ServicesOf,
    merged,
    write,
)
from tidegate_client.views import JobView, Page, ReceiptView

router = APIRouter(prefix="/api/v1", tags=["jobs"])


@router.get("/jobs", response_model=Page[JobView], summary="List open jobs")
async def list_jobs(
    services: ServicesOf,
    namespace: NamespaceFilter = None,
    schedule: ScheduleFilter = None,
    page_token: PageToken = None,
    page_size: PageSize = PAGE_SIZE,
) -> Page[JobView]:
    """Those that gather evidence (`pending_trigger`) first, with what is missing; then those that wait or launch."""
    return await services.jobs.page(namespace, schedule, place_of(page_token), page_size)


@router.get("/jobs/{job_id}", response_model=JobView, summary="Show an open job")
async def get_job(job_id: RunPath, services: ServicesOf) -> JobView:
    return await services.jobs.one(job_id)


@router.post(
    "/jobs/{job_id}/cancel",
    response_model=ReceiptView,
    summary="Cancel a job that waits",
    openapi_extra=body(fields("namespace", "reason", "actor", "id"), required=False),
)
async def cancel_job(
    job_id: RunPath, request: Request, services: ServicesOf, idempotency_key: IdempotencyKey = None
) -> JSONResponse:
    """409 `too_late` for a job that has become a run: cancel the run."""
    document = merged({"type": "job.cancel", "job_id": job_id}, await read_object(request))
    return await write(services, document, idempotency_key)
