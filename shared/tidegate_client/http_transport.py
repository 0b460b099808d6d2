"""One HTTP exchange with the API, and the meaning of its answer. It never retries: that is the caller's decision."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeVar
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
from tidegate_core.language.values.json_values import exact_json

TIMEOUT_S = 30.0
"""Time-out; longer than the API waits for a receipt (10 s) and a broker (5 s) together."""
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
PROBLEM_TYPES: Final = "urn:tidegate:problem:"
"""Prefix of the types of the API's problem documents; those of a proxy have other types, or none."""
PASSING = frozenset({404, 408, 425, 429, 502, 503, 504})
"""Statuses with which a proxy reports that no API is available now."""
WHOSE: Final = "is this the address of a tidegate API?"

_Answer = TypeVar("_Answer")


class Transport:
    """Connections to one API.

    Args:
        url: Base URL, such as `http://127.0.0.1:8080`.
        timeout_s: Time-out of each exchange.
        transport: An `httpx2` transport instead of the network, for tests.

    Attributes:
        url: Base URL for display: without a user's name and password.
    """

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S, transport: httpx2.BaseTransport | None = None) -> None:
        try:
            parts = urlsplit(url)
            _ = parts.port, (parts.hostname or "").encode("idna")  # Both raise for an unusable URL.
            self.url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl().rstrip("/")
            self._http = httpx2.Client(
                base_url=url.rstrip("/"),
                timeout=timeout_s,
                transport=transport,
                # A proxy of the environment cannot reach this machine's loopback.
                trust_env=parts.hostname not in LOOPBACK,
            )
        except (ValueError, httpx2.InvalidURL) as error:
            raise _no_address(url, f": {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise _no_address(url)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def ask(
        self,
        read: Callable[[Any], _Answer],
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> _Answer:
        """Returns the result of `read` for the JSON of a successful answer. Query values that are None are left out.

        Raises:
            TidegateError: A subclass, by the meaning of the answer; ApiFailed also if `read` cannot parse it.
        """
        response = self._exchanged(method, path, query or {}, body, headers or {})
        if not response.is_success:
            raise error_of(response)
        try:
            document = response.json()
        except ValueError as error:
            raise ApiFailed(f"{self.url} answered something that is not JSON", WHOSE) from error
        try:
            if response.status_code != httpx2.codes.ACCEPTED:
                return read(document)
            pending = _pending(document, response.headers.get("Location", ""))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            raise ApiFailed(f"{self.url} answered {method} {path} as no tidegate API does", WHOSE) from error
        raise pending

    def _exchanged(
        self, method: str, path: str, query: Mapping[str, Any], body: Any, headers: Mapping[str, str]
    ) -> httpx2.Response:
        given = {name: value for name, value in query.items() if value is not None}
        sent = dict(headers)
        content = None
        if body is not None:
            content = json_of(body)
            sent["Content-Type"] = "application/json"
        try:
            return self._http.request(method, path, params=given or None, headers=sent, content=content)
        except UnicodeEncodeError as error:
            raise InvalidRequest(
                f"{error.object!r} cannot be sent: it is not UTF-8, or has half of a character",
                remedy="write it in UTF-8",
            ) from error
        except httpx2.InvalidURL as error:
            raise InvalidRequest(f"this cannot be asked for: {error}", remedy="use shorter texts that show") from error
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
            raise ApiUnavailable(f"{self.url} did not answer in time", "check its /readyz, then repeat") from error
        except (httpx2.NetworkError, httpx2.RemoteProtocolError) as error:
            raise ApiUnavailable(
                f"{self.url} broke the exchange off: {error}", "check its /readyz, then repeat"
            ) from error
        except httpx2.HTTPError as error:
            raise ApiUnreachable(f"{self.url}: {error}", "check the address and the network") from error


def _no_address(url: str, why: str = "") -> InvalidRequest:
    shown = url.rpartition("@")[2]
    return InvalidRequest(f"the API's address {shown!r} is no http or https URL{why}", remedy="write http://host:port")


def _is_about_tls(error: BaseException | None) -> bool:
    """Whether the TLS handshake failed: the server speaks http, or its certificate is not trusted."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return True
        error = error.__cause__ or error.__context__
    return False


def json_of(body: Any) -> bytes:
    """Returns a body as JSON. Raises InvalidRequest for values that JSON cannot hold: NaN, a datetime, half of a
    surrogate pair.
    """
    try:
        return exact_json(body).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidRequest(
            f"this cannot be sent as JSON: {error}", remedy="use texts, numbers and booleans"
        ) from error


def error_of(response: httpx2.Response) -> TidegateError:
    """Returns the error for a refusal. An answer without the API's own types says nothing about the requested item."""
    problem = _problem(response)
    status = response.status_code
    if problem is None:
        said = f"HTTP {status} {response.reason_phrase}".rstrip() + ", and not by a tidegate API itself"
        remedy = "check the API's address, and any proxy before it"
        return ApiUnavailable(said, remedy, _wait(response)) if status in PASSING else ApiFailed(said, remedy)
    message = problem.detail or problem.title
    if status in (400, 401, 403, 413, 422):
        return InvalidRequest(message, problem.errors)
    if status == 404:
        return NotFound(message)
    if status in (409, 412):
        return Conflict(message, receipt=problem.receipt)
    if status in PASSING:
        return ApiUnavailable(message, retry_after_s=_wait(response))
    request_id = response.headers.get("X-Request-Id", "")
    return ApiFailed(f"HTTP {status}: {message}", f"its log has more under request {request_id}" if request_id else "")


def _wait(response: httpx2.Response) -> float | None:
    text = response.headers.get("Retry-After", "")
    return float(text) if text.isascii() and text.isdecimal() else None


def _problem(response: httpx2.Response) -> ProblemView | None:
    """Returns the API's own problem document; None for other bodies, such as a proxy's page."""
    try:
        problem = ProblemView.model_validate_json(response.content)
    except ValidationError:
        return None
    return problem if problem.type.startswith(PROBLEM_TYPES) else None


def _pending(document: Any, location: str) -> AnswerPending:
    items = document.get("items")
    receipts = [ReceiptView.model_validate(each) for each in ([document] if items is None else items)]
    pending = [each for each in receipts if each.status == "pending"] or receipts[:1]
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
        "it will be applied once a node serves its shard; ask for it again, or check the nodes",
        receipts,
    )
