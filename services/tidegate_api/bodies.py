"""Reads request bodies with a bound, before anything is parsed."""

from __future__ import annotations

import json
from typing import Any

from fastapi import Request

from tidegate_core.model.problems import TOO_LARGE, InvalidInput, Problem
from tidegate_core.model.requests import MAX_RECORD_BYTES

BODY_BYTES_MAX = MAX_RECORD_BYTES
"""One request or event: what a topic's reader accepts."""
BATCH_BYTES_MAX = 16 * 1_048_576
"""A batch of messages; 1,000 of 16 KB. Larger payloads go in smaller batches."""


async def read_body(request: Request, bytes_max: int = BODY_BYTES_MAX) -> bytes:
    """Returns the body.

    Raises:
        InvalidInput: It is larger (413); no more than that is ever held in memory.
    """
    parts = bytearray()
    async for part in request.stream():
        parts += part
        if len(parts) > bytes_max:
            problem = Problem(
                "", f"{TOO_LARGE}: more than {bytes_max} bytes", "split it, or send a pointer to the data"
            )
            raise InvalidInput([problem], "too_large")
    return bytes(parts)


async def read_json(request: Request, bytes_max: int = BODY_BYTES_MAX) -> Any:
    """Returns the JSON of the body; an empty body is an empty mapping.

    Raises:
        InvalidInput: Too large, or no JSON.
    """
    body = await read_body(request, bytes_max)
    if not body.strip():
        return {}
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise InvalidInput([Problem("", f"the body is not JSON: {error}")], "unparsable") from error


async def read_object(request: Request) -> dict[str, Any]:
    """Returns the JSON object of the body; an empty body is an empty one."""
    document = await read_json(request)
    if not isinstance(document, dict):
        raise InvalidInput([Problem("", "the body is not a JSON object")])
    return document
