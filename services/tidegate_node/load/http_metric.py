"""Load from a page: a JSON document by pointer (RFC 6901), or a sample of a Prometheus text. The URL is a node's
setting.

The URL never comes from a schedule: a user could then make the node call any address in its network.
"""

from __future__ import annotations

import json
import math
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException, HTTPResponse, IncompleteRead
from typing import Any, Final

from tidegate_ports.load_sampler import LoadUnavailable, SourceSilent

ANSWER_WITHIN_S: Final = 5.0
"""One third of the time between two samples."""
PAGE_BYTES_MAX: Final = 4 << 20
"""Size of a large exporter's metrics. A larger page is refused and not cut, because the cut could divide a number."""
PIECE_BYTES: Final = 1 << 16


class PageLoad:
    """One page with a number for each resource.

    Args:
        url: URL of the page.
        resources: Place of each number: a JSON pointer (`/clusterMetrics/load`), or a Prometheus sample with its labels
            as on the page (`node_load1`, `up{job="x"}`).
    """

    def __init__(self, url: str, resources: Mapping[str, str], answer_within_s: float = ANSWER_WITHIN_S) -> None:
        self._url = url
        # Users read these errors as the reason why a job waits, and a query string may hold a token.
        self._page_name = url.partition("?")[0]
        self._resources = resources
        self._answer_within_s = answer_within_s

    def sample(self, resource: str) -> float:
        place = self._resources.get(resource)
        if place is None:
            raise LoadUnavailable(f"this source has no {resource}; it has {', '.join(sorted(self._resources))}")
        text = self._page()
        found = _by_pointer(text, place) if place.startswith("/") else _by_name(text, place)
        if not math.isfinite(found):
            raise LoadUnavailable(f"{place} of {self._page_name} is {found}")
        return found

    def _page(self) -> str:
        until = time.monotonic() + self._answer_within_s
        try:
            # The scheme was checked with the settings.
            with urllib.request.urlopen(self._url, timeout=self._answer_within_s) as answer:  # noqa: S310
                body = _read_until(answer, until)
        except (OSError, HTTPException, ValueError) as failure:
            raise SourceSilent(f"{self._page_name} does not answer: {failure}") from failure
        if len(body) > PAGE_BYTES_MAX:
            raise LoadUnavailable(f"{self._page_name} answers with more than {PAGE_BYTES_MAX} bytes")
        return bytes(body).decode(errors="replace")


def _read_until(answer: HTTPResponse, until: float) -> bytearray:
    """Reads a whole page, or one byte more than the maximum.

    Raises:
        TimeoutError: The page arrives too slowly. A socket's own timeout restarts with each piece.
        IncompleteRead: The page ends before its announced length.
    """
    body = bytearray()
    announced = answer.length
    wanted = PAGE_BYTES_MAX + 1 if announced is None else min(announced, PAGE_BYTES_MAX + 1)
    while len(body) < wanted and (piece := answer.read1(min(PIECE_BYTES, wanted - len(body)))):
        body += piece
        if time.monotonic() > until:
            raise TimeoutError("it comes too slowly")
    if announced is not None and len(body) < wanted:
        raise IncompleteRead(bytes(body), wanted - len(body))
    return body


def _by_pointer(text: str, pointer: str) -> float:
    try:
        value: Any = json.loads(text)
        for token in pointer[1:].split("/"):
            name = token.replace("~1", "/").replace("~0", "~")
            value = value[int(name)] if isinstance(value, list) else value[name]
    except (ValueError, LookupError, TypeError, RecursionError) as failure:
        raise LoadUnavailable(f"the page has nothing at {pointer}: {failure!r}") from failure
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise LoadUnavailable(f"what the page has at {pointer} is no number")
    try:
        return float(value)
    except OverflowError as failure:  # JSON's integers have no bound.
        raise LoadUnavailable(f"what the page has at {pointer} is too large") from failure


def _by_name(text: str, name: str) -> float:
    for line in text.splitlines():
        if line.startswith(f"{name} "):
            try:
                return float(line[len(name) :].split()[0])
            except (ValueError, IndexError) as failure:
                raise LoadUnavailable(f"the page's {name} is no number") from failure
    raise LoadUnavailable(f"the page has no sample {name}")
