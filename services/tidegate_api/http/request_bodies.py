"""Request bodies: bounds for each body and for all large bodies together, and the parsing of bodies that routes take raw."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import Request
from pydantic_core import from_json
from starlette.types import Message, Receive, Scope

from tidegate_api.http.problem_responses import BodyTooLarge, BodyUnfinished, NoRoomForBody
from tidegate_core.language.formats.record_decoding import (
    no_json,
    overgrown_text,
    repeated_names,
    repetition,
    unholdable_number,
    without_mark,
)
from tidegate_core.language.requests.requests import MAX_RECORD_BYTES
from tidegate_core.language.values.json_values import exactly_read
from tidegate_core.language.values.problems import InvalidInput, Problem

BODY_BYTES_MAX = MAX_RECORD_BYTES
"""Bytes of one request or event, the same bound as in the readers of the topics. Reports of programs are much smaller."""
BATCH_BYTES_MAX = 16 * 1_048_576
"""Bytes of a batch of messages, events or schedules: 1,000 items of 16 KB. Larger payloads need smaller batches."""
READ_APART_BYTES = 64 * 1024
"""Bytes above which a body is parsed on a thread; on the event loop it would delay the start of programs."""
LARGE_BYTES = 128 * 1024
"""Bytes above which a body counts as large. It is twice the bound of outputs, so that batches never block the reports of programs."""
LARGE_TOGETHER_BYTES = 48 * 1_048_576
"""Bytes of all large bodies of a process at the same time. Parsed, checked and sent, a batch needs six times its bytes (87 to 95 MB for
15.4 MB). So these bodies need 270 MB: half of the memory that the chart gives a pod; an idle process needs 65 MB. At least one batch."""
PAUSE_S_MAX = 30.0
"""Seconds between two pieces of a body. Without this bound a client whose network was cut would keep its connection, and the memory of a
large body, until this process ends. Three such clients would use all the memory for bodies."""
BODY_S_MAX = 300.0
"""Seconds for a whole body, against clients that send a byte every few seconds. The largest batch is in time at 56 KB/s."""
BATCH_PATHS = frozenset({"/api/v1/messages", "/api/v1/events", "/api/v1/schedules"})


class Room:
    """Memory for large bodies, in bytes. One per process, used on the event loop."""

    def __init__(self, bytes_max: int = LARGE_TOGETHER_BYTES) -> None:
        self._left = bytes_max

    def take(self, more: int) -> None:
        """Takes bytes, or raises NoRoomForBody. A body does not wait for memory, because it would keep its own part from the others."""
        if more > self._left:
            raise NoRoomForBody
        self._left -= more

    def give_back(self, taken: int) -> None:
        self._left += taken


@contextmanager
def bounded(
    scope: Scope, receive: Receive, room: Room, pause_s: float = PAUSE_S_MAX, body_s: float = BODY_S_MAX
) -> Iterator[Receive]:
    """Counts the bytes of a request's body, and returns the memory when the request ends for any reason.

    Yields:
        A `receive` that raises BodyTooLarge above the route's bound, NoRoomForBody if other large bodies use all memory, and
        BodyUnfinished after `pause_s` without a piece or `body_s` without the end.
    """
    bytes_max = BATCH_BYTES_MAX if scope["path"] in BATCH_PATHS else BODY_BYTES_MAX
    # A chunked body declares no length, so the received bytes are counted too.
    declared = next(
        (int(value) for name, value in scope["headers"] if name == b"content-length" and value.isdigit()), 0
    )
    taken = kept = 0
    comes = True
    must_end_at = time.monotonic() + body_s

    async def counted() -> Message:
        nonlocal taken, kept, comes
        # After the body only a disconnect can arrive, so there is no timeout for it.
        try:
            async with asyncio.timeout(min(pause_s, must_end_at - time.monotonic()) if comes else None):
                message = await receive()
        except TimeoutError as silence:
            raise BodyUnfinished(pause_s, body_s) from silence
        comes = message.get("more_body", False)
        taken += len(message.get("body", b""))
        # The declared length is taken at the beginning, so that a body is not refused half-way.
        size = max(taken, declared)
        if size > bytes_max:
            raise BodyTooLarge(bytes_max)
        if size > LARGE_BYTES:
            room.take(size - kept)
            kept = size
        return message

    try:
        yield counted
    finally:
        room.give_back(kept)


async def read_json(request: Request) -> Any:
    """Returns the JSON of the body; an empty body is an empty object.

    Raises:
        InvalidInput: The body is no JSON, or repeats a field in an object.
        BodyTooLarge: See `bounded`.
        NoRoomForBody: See `bounded`.
    """
    body = without_mark(await request.body())
    if not body.strip():
        return {}
    if len(body) > READ_APART_BYTES:
        return await asyncio.to_thread(_parsed, body)
    return _parsed(body)


def _parsed(body: bytes) -> Any:
    if problem := overgrown_text(body):
        raise InvalidInput([problem], "too_large")
    try:
        # The same parser reads the topic, so a body that it refuses, for example with a lone surrogate, is refused here.
        document = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput([Problem("", f"the body {no_json(error)}")], "unparsable") from error
    # Checked here and not only by the topic's reader, because the record is written from the parsed document.
    if problem := unholdable_number(body):
        raise InvalidInput([problem])
    if repeated := repeated_names(body, document):
        raise InvalidInput(repetition(repeated))
    return exactly_read(body, document)


async def read_object(request: Request) -> dict[str, Any]:
    """Returns the JSON object of the body; an empty body is an empty object."""
    document = await read_json(request)
    if not isinstance(document, dict):
        raise InvalidInput([Problem("", "the body is not a JSON object")])
    return document
