"""Exchange of the client with the API: pages, and writes with a request id. The methods are in `client` and
`operator_calls`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2
from pydantic import BaseModel

from tidegate_client.errors import ApiFailed, ApiUnavailable, InvalidRequest
from tidegate_client.http_transport import TIMEOUT_S, Transport
from tidegate_client.views import Page, ReceiptView
from tidegate_core.language.values.instants import format_instant, from_datetime

DEFAULT_URL = "http://127.0.0.1:8080"
BASE = "/api/v1"
PAGE_SIZE = 200
"""Items per request of the methods that read all pages."""
PAGE_SIZE_MAX = 1_000
"""Most items that the API returns at once."""

_View = TypeVar("_View", bound=BaseModel)


class Calls:
    """Calls to one API, on which `Client` builds."""

    def __init__(
        self, url: str = DEFAULT_URL, timeout_s: float = TIMEOUT_S, transport: httpx2.BaseTransport | None = None
    ) -> None:
        self._transport = Transport(url, timeout_s, transport)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    @property
    def url(self) -> str:
        return self._transport.url

    def _get(self, path: str, view: type[_View], **query: Any) -> _View:
        return self._transport.ask(view.model_validate, "GET", BASE + path, query=query)

    def _write(
        self, method: str, path: str, body: Any, query: Mapping[str, Any], request_id: str | None
    ) -> ReceiptView:
        if request_id is None:
            # The body may contain the id, as requests on the topic do.
            own = body.get("id") if isinstance(body, Mapping) else None
            request_id = own if isinstance(own, str) else str(uuid.uuid4())
        if not _can_be_a_header(request_id):
            problem = "it travels in a header, so use ASCII characters that show, and no space at an end"
            raise InvalidRequest(f"request id {request_id!r}: {problem}")
        headers = {"Idempotency-Key": request_id}
        with saying(f"under request id {request_id} a repeat acts once"):
            return self._transport.ask(
                ReceiptView.model_validate, method, BASE + path, query=query, body=body, headers=headers
            )

    def _all(
        self, path: str, view: type[_View], query: Mapping[str, Any], page_size: int = PAGE_SIZE
    ) -> Iterator[_View]:
        token = ""
        while True:
            wanted = {**query, "page_size": page_size, "page_token": token or None}
            page = self._transport.ask(Page[view].model_validate, "GET", BASE + path, query=wanted)  # type: ignore[valid-type]
            yield from page.items
            token = page.next_page_token
            if not token:
                return


def _can_be_a_header(text: str) -> bool:
    return text.isascii() and text.isprintable() and text == text.strip() != ""


@contextmanager
def saying(once: str) -> Iterator[None]:
    """Adds to errors how to repeat a write: it may have been accepted, and only this call knows its id."""
    try:
        yield
    except (ApiUnavailable, ApiFailed) as error:
        error.remedy = f"{error.remedy}; {once}" if error.remedy else once
        raise


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def text_of(moment: datetime | None) -> str | None:
    return None if moment is None else format_instant(from_datetime(moment))
