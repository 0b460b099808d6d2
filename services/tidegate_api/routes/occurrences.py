"""Route of the ledger: each occurrence once, with its outcome."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from tidegate_api.http.page_tokens import place_of
from tidegate_api.routes.parameters import PAGE_SIZE, PageSize, PageToken, ScheduleFilter, ServicesOf, Time, instant_of
from tidegate_client.views import OccurrenceView, Page
from tidegate_core.language.values.names import NAME_PATTERN

router = APIRouter(prefix="/api/v1", tags=["occurrences"])

Namespace = Annotated[str, Query(pattern=NAME_PATTERN, description="Namespace")]


@router.get("/occurrences", response_model=Page[OccurrenceView], summary="List the outcomes of occurrences")
async def list_occurrences(
    services: ServicesOf,
    namespace: Namespace,
    schedule: ScheduleFilter = None,
    since: Time = None,
    until: Time = None,
    page_token: PageToken = None,
    page_size: PageSize = PAGE_SIZE,
) -> Page[OccurrenceView]:
    """Only `since` <= nominal < `until`. A launched occurrence gets its row when its run has ended. Rows are kept 90 days.

    With narrow filters a page may be short or empty and still have a `next_page_token`.
    """
    return await services.occurrences.page(
        namespace, schedule, instant_of("since", since), instant_of("until", until), place_of(page_token), page_size
    )
