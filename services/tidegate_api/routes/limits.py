"""Routes of limits in use."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from tidegate_api.http.page_tokens import PAGE_SIZE_MAX
from tidegate_api.routes.parameters import PAGE_SIZE, ServicesOf
from tidegate_client.resource_paths import LIMIT_NAME_PATTERN, LIMIT_SCOPE_PATTERN
from tidegate_client.views import LimitDetail, LimitSummary, Page
from tidegate_core.language.values.names import NAME_PATTERN

router = APIRouter(prefix="/api/v1", tags=["cluster"])

NamespaceFilter = Annotated[str | None, Query(pattern=NAME_PATTERN, description="Only of this namespace")]
NamespacePath = Annotated[str, Path(pattern=NAME_PATTERN, description="Namespace")]
ScopePath = Annotated[str, Path(pattern=LIMIT_SCOPE_PATTERN, description="Scope, as in the limit's id")]
Shown = Annotated[int, Query(ge=1, le=PAGE_SIZE_MAX, description="Most holders, and most waiters, to return")]
NamePath = Annotated[str, Path(pattern=LIMIT_NAME_PATTERN, description="Name, as in the limit's id")]


@router.get("/limits", response_model=Page[LimitSummary], summary="List limits in use")
async def list_limits(services: ServicesOf, namespace: NamespaceFilter = None) -> Page[LimitSummary]:
    """All limits with permits in use or waiting jobs, in one page. Limits with stuck permits come first, then the longest queues.
    The request reads all open runs and all queues.
    """
    return Page(items=await services.limits.all(namespace))


@router.get("/limits/{namespace}/{scope}/{name}", response_model=LimitDetail, summary="Show a limit")
async def get_limit(
    namespace: NamespacePath, scope: ScopePath, name: NamePath, services: ServicesOf, page_size: Shown = PAGE_SIZE
) -> LimitDetail:
    """With the runs that hold its permits, and the waiting jobs in queue order. `holders_left_out` and `waiters_left_out` count the
    ones that are not returned.
    """
    return await services.limits.one(namespace, scope, name, page_size)
