"""Sources: what there is, and requests about them."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse

from tidegate_api.bodies import read_object
from tidegate_api.openapi import body, ref
from tidegate_api.routes.common import (
    Actor,
    ExpectedVersion,
    IdempotencyKey,
    IfMatch,
    NamePath,
    NamespaceFilter,
    NamespacePath,
    Reason,
    ServicesOf,
    known,
    version_expected,
    write,
)
from tidegate_client.views import Page, ReceiptView, SourceView

router = APIRouter(prefix="/api/v1", tags=["sources"])


@router.get("/sources", response_model=Page[SourceView], summary="List sources")
async def list_sources(services: ServicesOf, namespace: NamespaceFilter = None) -> Page[SourceView]:
    """All of them in one page: a cluster has at most 64."""
    return Page(items=await services.sources.all(namespace))


@router.get("/sources/{namespace}/{name}", response_model=SourceView, summary="Show a source")
async def get_source(namespace: NamespacePath, name: NamePath, services: ServicesOf, response: Response) -> SourceView:
    """The ETag is its version."""
    view = await services.sources.one(namespace, name)
    response.headers["ETag"] = f'"{view.version}"'
    return view


@router.put(
    "/sources/{namespace}/{name}",
    response_model=ReceiptView,
    summary="Create a source or replace its mapping",
    openapi_extra=body(ref("SourceSpec")),
)
async def apply_source(
    namespace: NamespacePath,
    name: NamePath,
    request: Request,
    services: ServicesOf,
    expected_version: ExpectedVersion = None,
    actor: Actor = None,
    reason: Reason = None,
    if_match: IfMatch = None,
    idempotency_key: IdempotencyKey = None,
) -> JSONResponse:
    """The body is the definition. A new source begins where its topic ends; what is produced after the answer is read."""
    version = version_expected(expected_version, if_match)
    document: dict[str, Any] = {
        "type": "source.apply",
        "namespace": namespace,
        "name": name,
        "spec": await read_object(request),
        **known(expected_version=version, actor=actor, reason=reason),
    }
    return await write(services, document, idempotency_key, if_match=if_match is not None)


@router.delete(
    "/sources/{namespace}/{name}", response_model=ReceiptView, summary="Delete a source", response_class=JSONResponse
)
async def delete_source(
    namespace: NamespacePath,
    name: NamePath,
    services: ServicesOf,
    expected_version: ExpectedVersion = None,
    actor: Actor = None,
    reason: Reason = None,
    if_match: IfMatch = None,
    idempotency_key: IdempotencyKey = None,
) -> JSONResponse:
    """Nothing that is produced after the answer becomes an event."""
    version = version_expected(expected_version, if_match)
    document = {
        "type": "source.delete",
        "namespace": namespace,
        "name": name,
        **known(expected_version=version, actor=actor, reason=reason),
    }
    return await write(services, document, idempotency_key, if_match=if_match is not None)
