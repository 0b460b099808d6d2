"""Routes of nodes and shards, and of stopping and starting all firing."""

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
    str, Path(pattern=NODE_PATTERN, description="Id of the process, the beginning of its id, or the node's name")
]
NodeFilter = Annotated[str | None, Query(max_length=200, description="Only shards of this node, by id or name")]
ShardPath = Annotated[int, Path(ge=0, le=9_999, description="Number of the shard")]

Shown = Annotated[int, Query(ge=1, le=PAGE_SIZE_MAX, description="Most limits of its schedules to return")]


@router.get("/nodes", response_model=Page[NodeView], summary="List nodes")
async def list_nodes(services: ServicesOf) -> Page[NodeView]:
    """Nodes that serve, and nodes of the last day that did not end cleanly (`silent`, `replaced`, `gone`), in one page."""
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
    """The node hands over its shards, as at a planned end. It takes none until the drain is cancelled or its process ends.
    It obeys within seconds: its state is `draining`, then `drained`.
    """
    actor, reason, force = asked(await read_object(request), "force")
    return await services.nodes.drain(node, actor, reason, force=force)


@router.delete("/nodes/{node}/drain", response_model=NodeView, summary="Cancel the drain of a node")
async def undrain_node(node: NodePath, services: ServicesOf) -> NodeView:
    return await services.nodes.undrain(node)


@router.get("/shards", response_model=Page[ShardView], summary="List shards")
async def list_shards(services: ServicesOf, node: NodeFilter = None) -> Page[ShardView]:
    """All shards in one page: a cluster has at most 10,000."""
    return Page(items=await services.shards.all(node))


@router.get("/shards/{shard}", response_model=ShardDetail, summary="Show a shard")
async def get_shard(shard: ShardPath, services: ServicesOf, page_size: Shown = PAGE_SIZE) -> ShardDetail:
    """`limits_left_out` counts the schedules with permits in use that are not returned."""
    return await services.shards.one(shard, page_size)


_WHY: dict[str, Any] = body(fields("actor", "reason", "id"), required=False)


@router.post("/firing/stop", response_model=ReceiptView, summary="Stop all firing", openapi_extra=_WHY)
async def stop_firing(raw: RawRequestOf, idempotency_key: IdempotencyKey = None) -> JSONResponse:
    """Sends `control.suspend` for the whole system. The answer comes when every shard has stopped; it lists the runs that go on."""
    return await raw.send(type="control.suspend", scope="system")


@router.post("/firing/start", response_model=ReceiptView, summary="Start all firing", openapi_extra=_WHY)
async def start_firing(raw: RawRequestOf, idempotency_key: IdempotencyKey = None) -> JSONResponse:
    """Sends `control.resume` for the whole system, which fires again from now. There is no catch-up for instants during the stop,
    events of that time do not count, and held messages are delivered at once.
    """
    return await raw.send(type="control.resume", scope="system")
