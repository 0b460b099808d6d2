"""Routes of event sources: list, show, apply, delete."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from tidegate_api.http.request_bodies import read_object
from tidegate_api.openapi import body, ref
from tidegate_api.routes.parameters import (
    Actor,
    IdempotencyKey,
    NamePath,
    NamespaceFilter,
    NamespacePath,
    PreconditionOf,
    Reason,
    ServicesOf,
    known,
    write,
)
from tidegate_client.views import Page, ReceiptView, SourceView

router = APIRouter(prefix="/api/v1", tags=["sources"])


@router.get("/sources", response_model=Page[SourceView], summary="List event sources")
async def list_sources(services: ServicesOf, namespace: NamespaceFilter = None) -> Page[SourceView]:
    """All event sources in one page: a cluster has at most 64."""
    return Page(items=await services.sources.all(namespace))


@router.get("/sources/{namespace}/{name}", response_model=SourceView, summary="Show an event source")
async def get_source(namespace: NamespacePath, name: NamePath, services: ServicesOf, response: Response) -> SourceView:
    """The ETag is the version of the source."""
    view = await services.sources.one(namespace, name)
    response.headers["ETag"] = f'"{view.version}"'
    return view


@router.put(
    "/sources/{namespace}/{name}",
    response_model=ReceiptView,
    summary="Create or replace an event source",
    openapi_extra=body(ref("SourceSpec")),
)
async def apply_source(
    namespace: NamespacePath,
    name: NamePath,
    request: Request,
    services: ServicesOf,
    precondition: PreconditionOf,
    actor: Actor = None,
    reason: Reason = None,
    idempotency_key: IdempotencyKey = None,
) -> JSONResponse:
    """The body is the definition. A new source starts at the end of its topic: it reads records that are produced after the answer."""
    document: dict[str, Any] = {
        "type": "source.apply",
        "namespace": namespace,
        "name": name,
        "spec": await read_object(request),
        **known(expected_version=precondition.version, actor=actor, reason=reason),
    }
    return await write(services, document, idempotency_key, if_match=precondition.of_header)


@router.delete(
    "/sources/{namespace}/{name}",
    response_model=ReceiptView,
    summary="Delete an event source",
    response_class=JSONResponse,
)
async def delete_source(
    namespace: NamespacePath,
    name: NamePath,
    services: ServicesOf,
    precondition: PreconditionOf,
    actor: Actor = None,
    reason: Reason = None,
    idempotency_key: IdempotencyKey = None,
) -> JSONResponse:
    """Records that are produced after the answer are no events."""
    document = {
        "type": "source.delete",
        "namespace": namespace,
        "name": name,
        **known(expected_version=precondition.version, actor=actor, reason=reason),
    }
    return await write(services, document, idempotency_key, if_match=precondition.of_header)
