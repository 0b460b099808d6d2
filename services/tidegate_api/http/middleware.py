"""Middleware of every request: sets an id, counts metrics, bounds the body, and refuses pages of other sites."""

from __future__ import annotations

import re
import time
import uuid

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidegate_api.http.host_check import Hosts
from tidegate_api.http.problem_responses import ApiProblem, bug_document, respond
from tidegate_api.http.request_bodies import Room, bounded
from tidegate_ports.bus import Notices
from tidegate_telemetry.metrics import Metrics

_USABLE_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")
QUIET_ROUTES = frozenset({"/livez", "/readyz", "/metrics"})
"""Routes that are not logged: probes come every few seconds."""
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods that may be a metric label. A client can send any word as method, and each label value would create permanent series."""


class RequestFrame:
    """ASGI middleware. It does not use Starlette's base class, which costs a task per request.

    Args:
        app: Inner application.
        metrics: Metrics with the API's table.
        notices: Receiver of named log events.
        hosts: Check of the Host and Origin headers.
        room: Memory for large bodies.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, notices: Notices, hosts: Hosts, room: Room) -> None:
        self._app = app
        self._metrics = metrics
        self._notices = notices
        self._hosts = hosts
        self._room = room

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        headers = dict(scope["headers"])
        refusal = self._hosts.refusal(scope["method"], headers.get(b"host"), headers.get(b"origin"))
        inner = self._app if refusal is None else _refused(refusal)
        started = time.monotonic()
        status = 0

        is_head = scope["method"] == "HEAD"
        # Routes exist for GET only, so a HEAD is answered as a GET without its body.
        inside = {**scope, "method": "GET"} if is_head else scope

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            elif is_head and message["type"] == "http.response.body":
                message = {**message, "body": b""}
            await send(message)

        try:
            with bounded(inside, receive, self._room) as counted:
                await inner(inside, counted, send_with_id)
        except Exception as error:
            self._notices("api_bug", request_id=request_id, path=scope["path"], problem=repr(error))
            if status == 0:
                await bug_document(Request(scope))(scope, receive, send_with_id)
            raise  # The server logs the traceback.
        finally:
            self._count({**scope, "route": inside.get("route")}, status, time.monotonic() - started, request_id)

    def _count(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        route = getattr(scope.get("route"), "path", "unknown")
        # A known path answers 405 to any method that a client invents.
        method = scope["method"] if route != "unknown" and scope["method"] in METHODS else "ANY"
        self._metrics.count("tidegate_api_requests_total", method=method, route=route, status=str(status))
        self._metrics.observe("tidegate_api_request_seconds", seconds, method=method, route=route)
        if route not in QUIET_ROUTES:
            self._notices(
                "api_request",
                method=scope["method"],
                path=scope["path"],
                status=status,
                duration_ms=round(seconds * 1000, 1),
                request_id=request_id,
            )


def _refused(refusal: str) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await respond(Request(scope), ApiProblem(403, refusal))(scope, receive, send)

    return answer


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _USABLE_ID.fullmatch(value):
            given: str = value.decode()
            return given
    return str(uuid.uuid4())
