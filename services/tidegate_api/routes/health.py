"""Routes of probes and metrics."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response

from tidegate_api.http.problem_responses import unavailable
from tidegate_api.routes.parameters import ServicesOf

router = APIRouter(tags=["health"])


@router.get("/livez", response_class=PlainTextResponse, summary="Is the process alive?")
async def livez() -> str:
    """Does not depend on Kafka or DynamoDB, because a restart of this process would not repair them."""
    return "ok\n"


@router.get("/readyz", response_class=PlainTextResponse, summary="Can it serve?")
async def readyz(services: ServicesOf) -> str:
    """Whether the store answers, the cluster is initialised, and receipts are read.

    The answer names an open transaction on the receipts topic, but stays 200: every process reads the same topic, and answers are
    also found in the store.
    """
    await services.cluster.current()
    if not services.receipt_waiters.reads:
        raise unavailable("receipts are not read: the broker does not answer, or tidegate init has not run; check both")
    return "".join(f"{line}\n" for line in ("ok", *services.transactions.reasons()))


@router.get("/metrics", response_class=PlainTextResponse, summary="Metrics for Prometheus")
async def metrics(services: ServicesOf) -> Response:
    body, content_type = services.metrics.exposition()
    return Response(body, media_type=content_type)
