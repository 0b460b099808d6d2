"""Probes and metrics."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response

from tidegate_api.http.problem_responses import unavailable
from tidegate_api.routes.parameters import ServicesOf

router = APIRouter(tags=["health"])


@router.get("/livez", response_class=PlainTextResponse, summary="Is the process alive?")
async def livez() -> str:
    """Never depends on a brick: restarting this process would not bring one back."""
    return "ok\n"


@router.get("/readyz", response_class=PlainTextResponse, summary="Can it serve?")
async def readyz(services: ServicesOf) -> str:
    """Whether the store answers, the cluster is initialised, and receipts are read.

    An open transaction among the receipts is named, and is no reason to send clients elsewhere: every process reads the same topic, and answers
    are found in the store.
    """
    await services.cluster.current()
    if not services.desk.reads:
        raise unavailable("receipts are not read yet: the broker does not answer, or tidegate init has not run")
    return "".join(f"{line}\n" for line in ("ok", *services.transactions.reasons()))


@router.get("/metrics", response_class=PlainTextResponse, summary="Metrics for Prometheus")
async def metrics(services: ServicesOf) -> Response:
    body, content_type = services.metrics.exposition()
    return Response(body, media_type=content_type)
