"""Around every request: an id for logs and answers, the metrics, the bound on bodies, and no writes from foreign pages."""

from __future__ import annotations

import re
import time
import uuid
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidegate_api.bodies import bounded
from tidegate_api.problems import ApiProblem, bug_document, respond
from tidegate_ports.bus import Notices
from tidegate_telemetry.metrics import Metrics

_USABLE_ID = re.compile(rb"[A-Za-z0-9._-]{1,128}")
LOOPBACK_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
EVERYWHERE = frozenset({"0.0.0.0", "::"})  # noqa: S104 - compared, not bound
QUIET_ROUTES = frozenset({"/livez", "/readyz", "/metrics"})
"""Probes come every few seconds and say nothing to a reader of the log."""


class RequestFrame:
    """ASGI middleware; plain instead of Starlette's base class, which costs a task per request.

    Args:
        app: What is framed.
        metrics: With the API's table.
        notices: For named events.
        host: Where the API listens.
    """

    def __init__(self, app: ASGIApp, metrics: Metrics, notices: Notices, host: str) -> None:
        self._app = app
        self._metrics = metrics
        self._notices = notices
        # Listening everywhere, it is reached under names that it cannot know.
        self._names = None if host in EVERYWHERE else LOOPBACK_NAMES | {host}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _request_id(scope)
        inner = self._app if _is_from_here(scope, self._names) else _refuse_foreign_page
        started = time.monotonic()
        status = 0

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)["X-Request-Id"] = request_id
            await send(message)

        try:
            await inner(scope, bounded(scope, receive), send_with_id)
        except Exception as error:
            self._notices("api_bug", request_id=request_id, path=scope["path"], problem=repr(error))
            if status == 0:
                await bug_document(Request(scope))(scope, receive, send_with_id)
            raise  # The server logs the traceback.
        finally:
            self._count(scope, status, time.monotonic() - started, request_id)

    def _count(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        route = getattr(scope.get("route"), "path", "unknown")
        method = scope["method"] if route != "unknown" else "ANY"
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


def _is_from_here(scope: Scope, names: frozenset[str] | None) -> bool:
    """Whether no browser sent it from another site's page: on a laptop any page could else write to the local API.

    The host has to be one of `names`, too: a page can have its own name resolved to this machine's loopback.
    """
    if scope["method"] in ("GET", "HEAD", "OPTIONS"):
        return True
    headers = dict(scope["headers"])
    origin = headers.get(b"origin")
    host = headers.get(b"host", b"")
    if origin is None:
        return True
    return origin.partition(b"://")[2] == host and (names is None or _name_of(host.decode("latin-1")) in names)


def _name_of(host: str) -> str | None:
    """Returns a Host header's name or address without port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


async def _refuse_foreign_page(scope: Scope, receive: Receive, send: Send) -> None:
    detail = "writes from pages of other sites are refused; use the client, the command line, or a page of this host"
    await respond(Request(scope), ApiProblem(403, detail))(scope, receive, send)


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _USABLE_ID.fullmatch(value):
            given: str = value.decode()
            return given
    return str(uuid.uuid4())
