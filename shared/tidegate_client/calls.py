"""How the client calls the API: the exchange itself, pages, and writes with an id. Its methods stand in `client` and `operating`."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx2
from pydantic import BaseModel

from tidegate_client.errors import ApiFailed, ApiUnavailable, InvalidRequest
from tidegate_client.transport import TIMEOUT_S, Transport
from tidegate_client.views import ReceiptView
from tidegate_core.model.instants import format_instant, from_datetime

DEFAULT_URL = "http://127.0.0.1:8080"
BASE = "/api/v1"
PAGE_SIZE = 200
"""Items asked for at once by the methods that go through all pages."""

_View = TypeVar("_View", bound=BaseModel)


class Calls:
    """Speaks with one API; `Client` says the rest."""

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

    def _get(self, path: str, view: type[_View]) -> _View:
        return view.model_validate(self._transport.send("GET", BASE + path))

    def _write(
        self, method: str, path: str, body: Any, query: Mapping[str, Any], request_id: str | None
    ) -> ReceiptView:
        if request_id is not None and not request_id.isascii():
            raise InvalidRequest(f"request id {request_id!r}: it travels in a header, so use ASCII characters")
        request_id = request_id or str(uuid.uuid4())
        headers = {"Idempotency-Key": request_id}
        try:
            answer = self._transport.send(method, BASE + path, query=query, body=body, headers=headers)
        except (ApiUnavailable, ApiFailed) as error:
            # It may have been taken all the same, and its id is known to nobody but this call.
            once = f"under request id {request_id} a repeat acts once"
            error.remedy = f"{error.remedy}; {once}" if error.remedy else once
            raise
        return ReceiptView.model_validate(answer)

    def _all(self, path: str, view: type[_View], query: Mapping[str, Any]) -> Iterator[_View]:
        token = ""
        while True:
            wanted = {**query, "page_size": PAGE_SIZE, "page_token": token or None}
            answer = self._transport.send("GET", BASE + path, query=wanted)
            for item in answer["items"]:
                yield view.model_validate(item)
            token = answer.get("next_page_token", "")
            if not token:
                return


def given(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


def text_of(moment: datetime | None) -> str | None:
    return None if moment is None else format_instant(from_datetime(moment))
