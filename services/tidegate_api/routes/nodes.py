"""Nodes and shards, and a stop of all firing."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from fastapi.responses import JSONResponse

from tidegate_api.http.page_tokens import PAGE_SIZE_MAX
from tidegate_api.http.request_bodies import read_object
from tidegate_api.openapi import body, fields, with_fields
from tidegate_api.routes.operator_orders import asked
from tidegate_api.routes.parameters import PAGE_SIZE, IdempotencyKey, RawRequestOf, ServicesOf
from tidegate_client.resource_paths import NODE_PATTERN
from tidegate_client.views import NodeView, Page, ReceiptView, ShardDetail, ShardView

router = APIRouter(prefix="/api/v1", tags=["cluster"])

NodePath = Annotated[
    str, Path(pattern=NODE_PATTERN, description="Id of the process, the beginning of one, or the node's name")
]
NodeFilter = Annotated[str | None, Query(max_length=200, description="Only of this node, by id or name")]
ShardPath = Annotated[int, Path(ge=0, le=9_999, description="Number of the shard")]

Shown = Annotated[int, Query(ge=1, le=PAGE_SIZE_MAX, description="Most limits of its schedules")]


@router.get("/nodes", response_model=Page[NodeView], summary="List nodes")
async def list_nodes(services: ServicesOf) -> Page[NodeView]:
    """The processes that serve, and those of the last day that did not end well (`silent`, `replaced`, `gone`), in one page."""
    return Page(items=await services.nodes.all())


@router.get("/nodes/{node}", response_model=NodeView, summary="Show a node")
async def get_node(node: NodePath, services: ServicesOf) -> NodeView:
    return await services.nodes.one(node)


@router.post(
    "/nodes/{node}/drain",
    response_model=NodeView,
    summary="Drain a node",
    openapi_extra=body(with_fields(fields("actor", "reason"), force={"type": "boolean"}), required=False),
)
async def drain_node(node: NodePath, request: Request, services: ServicesOf) -> NodeView:
    """The node hands over what it holds as at a planned end, and takes nothing until the order is taken back or its process ends.
    It obeys within seconds: its state is `draining`, then `drained`.
    """
    actor, reason, force = asked(await read_object(request), "force")
    return await services.nodes.drain(node, actor, reason, force=force)


@router.delete("/nodes/{node}/drain", response_model=NodeView, summary="Take the order to drain a node back")
async def undrain_node(node: NodePath, services: ServicesOf) -> NodeView:
    return await services.nodes.undrain(node)


@router.get("/shards", response_model=Page[ShardView], summary="List shards")
async def list_shards(services: ServicesOf, node: NodeFilter = None) -> Page[ShardView]:
    """All of them in one page: a cluster has at most 10,000."""
    return Page(items=await services.shards.all(node))


@router.get("/shards/{shard}", response_model=ShardDetail, summary="Show a shard")
async def get_shard(shard: ShardPath, services: ServicesOf, page_size: Shown = PAGE_SIZE) -> ShardDetail:
    """`limits_left_out` says how many further schedules have permits out."""
    return await services.shards.one(shard, page_size)


_WHY: dict[str, Any] = body(fields("actor", "reason", "id"), required=False)


@router.post("/firing/stop", response_model=ReceiptView, summary="Stop all firing", openapi_extra=_WHY)
async def stop_firing(raw: RawRequestOf, idempotency_key: IdempotencyKey = None) -> JSONResponse:
    """The request `control.suspend` of the whole system. Answered when each shard has stopped, with the runs that go on."""
    return await raw.send(type="control.suspend", scope="system")


@router.post("/firing/start", response_model=ReceiptView, summary="Let all firing go on", openapi_extra=_WHY)
async def start_firing(raw: RawRequestOf, idempotency_key: IdempotencyKey = None) -> JSONResponse:
    """The request `control.resume` of the whole system: from now. Occurrences that were due meanwhile are not made up for, events
    of meanwhile do not count, and messages that were held back are delivered at once.
    """
    return await raw.send(type="control.resume", scope="system")
