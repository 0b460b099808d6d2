"""One HTTP exchange with the API, and what its answer means. Nothing is retried here: that is the caller's decision."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx2
from pydantic import ValidationError

from tidegate_client.errors import (
    AnswerPending,
    ApiFailed,
    ApiUnavailable,
    ApiUnreachable,
    Conflict,
    InvalidRequest,
    NotFound,
    TidegateError,
)
from tidegate_client.views import ProblemView, ReceiptView

TIMEOUT_S = 30.0
"""Longer than the API awaits a receipt (10 s) and a broker (5 s) together."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Transport:
    """Keeps connections to one API.

    Args:
        url: Base URL, such as `http://127.0.0.1:8080`.
        timeout_s: For each exchange.
        transport: For tests: an `httpx2` transport instead of the network.
    """

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S, transport: httpx2.BaseTransport | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidRequest(f"the API's address {url!r} is no http or https URL", remedy="write http://host:port")
        self.url = url.rstrip("/")
        self._http = httpx2.Client(
            base_url=self.url,
            timeout=timeout_s,
            transport=transport,
            # A proxy of the environment cannot reach this machine's loopback.
            trust_env=parts.hostname not in LOOPBACK,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Any:
        """Returns the JSON of a good answer; query values that are None are left out.

        Raises:
            TidegateError: One of its kinds, by what the answer means.
        """
        given = {name: value for name, value in (query or {}).items() if value is not None}
        sent = dict(headers or {})
        content = None
        if body is not None:
            content = _json_of(body)
            sent["Content-Type"] = "application/json"
        try:
            response = self._http.request(method, path, params=given or None, headers=sent, content=content)
        except httpx2.ConnectError as error:
            if _is_about_tls(error):
                raise ApiUnreachable(
                    f"{self.url} answers, but not with a TLS connection that can be used: {error}",
                    "an API without a proxy before it speaks http: write http://host:port",
                ) from error
            raise ApiUnreachable(
                f"no tidegate API answers at {self.url}",
                "start one (tidegate dev, or tidegate api), or give its address (--api URL, TIDEGATE_API_URL)",
            ) from error
        except httpx2.TimeoutException as error:
            raise ApiUnavailable(f"{self.url} did not answer in time", "look at its /readyz, then repeat") from error
        except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
            raise ApiUnavailable(
                f"{self.url} broke the exchange off: {error}", "look at its /readyz, then repeat"
            ) from error
        except httpx2.HTTPError as error:
            raise ApiUnreachable(f"{self.url}: {error}", "check the address and the network") from error
        if response.status_code == httpx2.codes.ACCEPTED:
            raise _pending(response)
        if response.is_success:
            return _json(response)
        raise error_of(response)


def _is_about_tls(error: BaseException | None) -> bool:
    """Whether the handshake failed: the server speaks http, or its certificate is not trusted."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _json_of(body: Any) -> bytes:
    """Returns what is sent. Raises InvalidRequest for what no JSON can hold: NaN, a datetime, half of a surrogate pair."""
    try:
        return json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(
            f"this cannot be sent as JSON: {error}", remedy="use texts, numbers and booleans"
        ) from error


def error_of(response: httpx2.Response) -> TidegateError:
    """Returns the error that a refusal stands for."""
    problem = _problem(response)
    message = problem.detail or problem.title
    status = problem.status
    if status in (400, 401, 403, 413, 422):
        return InvalidRequest(message, problem.errors)
    if status == 404:
        return NotFound(message)
    if status in (409, 412):
        return Conflict(message, receipt=problem.receipt)
    if status in (429, 502, 503, 504):
        wait = response.headers.get("Retry-After", "")
        return ApiUnavailable(message, retry_after_s=float(wait) if wait.isdecimal() else None)
    request_id = response.headers.get("X-Request-Id", "")
    return ApiFailed(f"HTTP {status}: {message}", f"its log has more under request {request_id}" if request_id else "")


def _problem(response: httpx2.Response) -> ProblemView:
    try:
        return ProblemView.model_validate_json(response.content)
    except ValidationError:  # A proxy's page, say: the status has to do.
        return ProblemView(title=f"HTTP {response.status_code} {response.reason_phrase}", status=response.status_code)


def _pending(response: httpx2.Response) -> TidegateError:
    document = _json(response)
    items = document.get("items") if isinstance(document, dict) else None
    receipts = [ReceiptView.model_validate(each) for each in ([document] if items is None else items)]
    pending = [each for each in receipts if each.status == "pending"] or receipts[:1]
    location = response.headers.get("Location", "")
    not_taken = [each for each in pending if each.errors]
    if not_taken:
        first = not_taken[0]
        error = first.errors[0]
        of_all = f"{len(not_taken)} of {len(receipts)} requests: " if len(receipts) > 1 else ""
        return AnswerPending(f"{of_all}{error.problem}", first, location, error.hint or "", receipts)
    return AnswerPending(
        f"request {pending[0].request_id} was taken, but not answered yet",
        pending[0],
        location,
        "it will be applied once a node serves its shard; ask for it again, or look at the nodes",
        receipts,
    )


def _json(response: httpx2.Response) -> Any:
    try:
        return response.json()
    except ValueError as error:
        raise ApiFailed(
            f"{response.url} answered something that is not JSON", "is this the address of a tidegate API?"
        ) from error
