"""Jobs: occurrences in the making, and what each waits for."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import JSONResponse

from tidegate_api.openapi import body, fields
from tidegate_api.page_tokens import place_of
from tidegate_api.routes.common import (
    PAGE_SIZE,
    NamespaceFilter,
    PageSize,
    PageToken,
    RawRequestOf,
    RunPath,
    ScheduleFilter,
    ServicesOf,
)
from tidegate_client.views import JobView, Page, ReceiptView, WhyView

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


@router.get("/jobs/{job_id}/why", response_model=WhyView, summary="Say why a job waits, or what became of it")
async def why_job(job_id: RunPath, services: ServicesOf) -> WhyView:
    """Each reason has a code of the closed list in `docs/reasons.md`. A run has the id of its job."""
    return await services.why.job(job_id)


@router.post(
    "/jobs/{job_id}/cancel",
    response_model=ReceiptView,
    summary="Cancel a job that waits",
    openapi_extra=body(fields("namespace", "reason", "actor", "id"), required=False),
)
async def cancel_job(job_id: RunPath, request: RawRequestOf) -> JSONResponse:
    """409 `too_late` for a job that has become a run: cancel the run."""
    return await request.send(type="job.cancel", job_id=job_id)
