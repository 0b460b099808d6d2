"""Asks a component over HTTP whether it is ready."""

from __future__ import annotations

import http.client
from urllib.parse import urlsplit

ASK_TIMEOUT_S = 1.0


def is_ready(url: str) -> bool:
    """Whether `GET url` answers 200 within a second."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=ASK_TIMEOUT_S)
    try:
        connection.request("GET", parts.path or "/")
        return connection.getresponse().status == http.client.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
