"""Request bodies: how large each and all large ones together may be, for every route alike, and how those are read that a
route takes raw.
"""

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
"""One request or event: what a topic's reader accepts. Reports of programs stay far below."""
BATCH_BYTES_MAX = 16 * 1_048_576
"""A batch of messages, events or schedules; 1,000 of 16 KB. Larger payloads go in smaller batches."""
READ_APART_BYTES = 64 * 1024
"""A larger body is read on a thread: programs could not start meanwhile."""
LARGE_BYTES = 128 * 1024
"""A larger body takes room. Twice what a report may have in outputs: programs never stand behind somebody's batches."""
LARGE_TOGETHER_BYTES = 48 * 1_048_576
"""Of the large bodies of a process. Read, checked and sent on a batch takes six times its bytes (87 to 95 MB of 15.4 MB), so that
these take 270 MB: half of what the chart gives a pod, beside the 65 MB of one that idles. Not below one batch."""
PAUSE_S_MAX = 30.0
"""Between two pieces of a body. A client that has gone without a word, its network cut, would keep its connection, and a large body its room,
until this process ends: three of them take all the room there is."""
BODY_S_MAX = 300.0
"""For a whole body: a byte every few seconds keeps connection and room as well. The largest batch comes in time at 56 KB/s."""
BATCH_PATHS = frozenset({"/api/v1/messages", "/api/v1/events", "/api/v1/schedules"})


class Room:
    """What the large bodies under way have together. One per process, used on its loop."""

    def __init__(self, bytes_max: int = LARGE_TOGETHER_BYTES) -> None:
        self._left = bytes_max

    def take(self, more: int) -> None:
        """Raises NoRoomForBody, and takes nothing then: who waited here would keep what it has from the others."""
        if more > self._left:
            raise NoRoomForBody
        self._left -= more

    def give_back(self, taken: int) -> None:
        self._left += taken


@contextmanager
def bounded(
    scope: Scope, receive: Receive, room: Room, pause_s: float = PAUSE_S_MAX, body_s: float = BODY_S_MAX
) -> Iterator[Receive]:
    """Keeps the room that a request's body takes until the request has ended, however it ends.

    Yields:
        A `receive` that raises BodyTooLarge instead of taking in more than the route's bound, NoRoomForBody instead of
        taking in a large body besides too many others, and BodyUnfinished where `pause_s` pass without a piece of it, or `body_s` without its end.
    """
    bytes_max = BATCH_BYTES_MAX if scope["path"] in BATCH_PATHS else BODY_BYTES_MAX
    # What is sent in chunks declares nothing, so that what comes is counted, too.
    declared = next(
        (int(value) for name, value in scope["headers"] if name == b"content-length" and value.isdigit()), 0
    )
    taken = kept = 0
    comes = True
    must_end_at = time.monotonic() + body_s

    async def counted() -> Message:
        nonlocal taken, kept, comes
        # Behind a body only the client's leaving can come, for which an answer may wait as long as it likes.
        try:
            async with asyncio.timeout(min(pause_s, must_end_at - time.monotonic()) if comes else None):
                message = await receive()
        except TimeoutError as silence:
            raise BodyUnfinished(pause_s, body_s) from silence
        comes = message.get("more_body", False)
        taken += len(message.get("body", b""))
        # All of it when it begins: refused half-way, what was sent of it would have been in vain.
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
    """Returns the JSON of the body; an empty body is an empty mapping.

    Raises:
        InvalidInput: No JSON, or an object has a field twice.
        BodyTooLarge: See `bounded`.
        NoRoomForBody: Likewise.
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
        # The parser that reads the topic: what it does not take, such as half of a surrogate pair, ends here.
        document = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise InvalidInput([Problem("", f"the body {no_json(error)}")], "unparsable") from error
    # Here and not only at the topic's reader: what is sent on was written anew from the document, without them.
    if problem := unholdable_number(body):
        raise InvalidInput([problem])
    if repeated := repeated_names(body, document):
        raise InvalidInput(repetition(repeated))
    return exactly_read(body, document)


async def read_object(request: Request) -> dict[str, Any]:
    """Returns the JSON object of the body; an empty body is an empty one."""
    document = await read_json(request)
    if not isinstance(document, dict):
        raise InvalidInput([Problem("", "the body is not a JSON object")])
    return document
