"""The ASGI application: routes, problem documents, middleware. It does not know the adapters."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import Depends, FastAPI

from tidegate_api import openapi
from tidegate_api.dependencies import Dependencies, running
from tidegate_api.http import problem_responses
from tidegate_api.http.host_check import Hosts
from tidegate_api.http.middleware import RequestFrame
from tidegate_api.http.request_bodies import Room
from tidegate_api.routes import (
    dead_letters,
    events,
    gate,
    health,
    jobs,
    limits,
    messages,
    nodes,
    occurrences,
    requests,
    runs,
    schedule_batches,
    schedules,
    sources,
)
from tidegate_api.routes.parameters import refuse_unknown_parameters
from tidegate_core.language.values.document import OPERATIONS

TITLE = "tidegate"
API_VERSION = "1"
"""Version of the paths below `/api/v1`, not of the program."""
DESCRIPTION = (
    "Schedules, jobs, runs and messages. Requests go to Kafka; the answer is the receipt of the shard's owner. "
    f"Users are not authenticated (planned for {OPERATIONS}): every client that reaches the port may do everything. "
    "Programs authenticate at the start gate, and for their reports, with the token of their attempt."
)


def make_app(parts: Dependencies) -> FastAPI:
    """Returns the application. Its lifespan starts and stops the services that are built from `parts`."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with running(parts) as services:
            app.state.services = services
            yield

    app = FastAPI(
        title=TITLE,
        version=API_VERSION,
        description=DESCRIPTION,
        lifespan=lifespan,
        # The documentation pages load their scripts from the internet, so they fail on a closed network.
        docs_url=None,
        redoc_url=None,
    )
    problem_responses.install(app)
    add_routes(app)
    hosts = Hosts(parts.host, parts.gate_url)
    room = Room(parts.large_bodies_bytes_max)
    app.add_middleware(RequestFrame, metrics=parts.metrics, notices=parts.notices, hosts=hosts, room=room)
    return app


def add_routes(app: FastAPI) -> None:
    """Adds all routes and the OpenAPI description."""
    for module in (
        gate,
        schedules,
        schedule_batches,
        sources,
        jobs,
        runs,
        occurrences,
        messages,
        events,
        requests,
        dead_letters,
        nodes,
        limits,
    ):
        app.include_router(module.router, dependencies=[Depends(refuse_unknown_parameters)])
    app.include_router(health.router)
    openapi.describe(app)
