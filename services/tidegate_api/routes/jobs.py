"""Routes of jobs: list, show, explain, cancel."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from fastapi.responses import JSONResponse

from tidegate_api.http.page_tokens import place_of
from tidegate_api.openapi import body, fields
from tidegate_api.reads.jobs import ShownState, WantedJobs
from tidegate_api.routes.parameters import (
    PAGE_SIZE,
    NamespaceFilter,
    PageSize,
    PageToken,
    RawRequestOf,
    RunPath,
    ScheduleFilter,
    ServicesOf,
    instant_of,
)
from tidegate_client.views import JobView, Page, ReceiptView, WhyView

router = APIRouter(prefix="/api/v1", tags=["jobs"])

States = Annotated[list[ShownState] | None, Query(description="Only jobs in this state; may be repeated")]
Since = Annotated[
    str | None,
    Query(
        max_length=64,
        description="Only this nominal time or later; a job that gathers evidence counts by its first event",
    ),
]
Until = Annotated[str | None, Query(max_length=64, description="Only nominal times before this")]


@router.get("/jobs", response_model=Page[JobView], summary="List open jobs")
async def list_jobs(
    services: ServicesOf,
    namespace: NamespaceFilter = None,
    schedule: ScheduleFilter = None,
    state: States = None,
    since: Since = None,
    until: Until = None,
    page_token: PageToken = None,
    page_size: PageSize = PAGE_SIZE,
) -> Page[JobView]:
    """First jobs that gather evidence (`pending_trigger`), with the missing evidence; then jobs that wait or launch.

    Each part is ordered by shard, then by id (jobs that gather evidence: by schedule and key), not by time. `since` and `until` select
    by nominal time. With narrow filters a page may be short or empty and still have a `next_page_token`.
    """
    wanted = WantedJobs(
        namespace, schedule, frozenset(state or ()), instant_of("since", since), instant_of("until", until)
    )
    return await services.jobs.page(wanted, place_of(page_token), page_size)


@router.get("/jobs/{job_id}", response_model=JobView, summary="Show an open job")
async def get_job(job_id: RunPath, services: ServicesOf) -> JobView:
    return await services.jobs.one(job_id)


@router.get("/jobs/{job_id}/why", response_model=WhyView, summary="Explain why a job waits, or its outcome")
async def why_job(job_id: RunPath, services: ServicesOf) -> WhyView:
    """Each reason has a code from the list in `docs/reasons.md`. A run has the id of its job."""
    return await services.why.job(job_id)


@router.post(
    "/jobs/{job_id}/cancel",
    response_model=ReceiptView,
    summary="Cancel a waiting job",
    openapi_extra=body(fields("namespace", "reason", "actor", "id"), required=False),
)
async def cancel_job(job_id: RunPath, request: RawRequestOf) -> JSONResponse:
    """409 `too_late` if the job has become a run: cancel the run instead."""
    return await request.send(type="job.cancel", job_id=job_id)
