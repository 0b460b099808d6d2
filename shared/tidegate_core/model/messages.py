"""Requests about one-shot messages: send (which also replaces) and cancel (SEMANTICS 14, 18)."""

from __future__ import annotations

import base64
import binascii
import json
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from tidegate_core.model.document import AtMost, Flag
from tidegate_core.model.durations import DurationField
from tidegate_core.model.instants import LATEST_INSTANT, TEN_YEARS_MS, Instant, InstantField
from tidegate_core.model.names import MessageKey, Namespace, RequestId, Topic
from tidegate_core.model.planned import PLATFORM, PROOFS, planned
from tidegate_core.model.problems import TOO_LARGE, Problem, refused
from tidegate_core.model.request_base import RequestBase

MAX_PAYLOAD_BYTES = 262_144
"""A message's payload: 256 KiB, below the 400 KB of a store item. Larger ones are somebody else's to keep."""
MAX_HEADERS = 64
MAX_HEADER_BYTES = 16_384
"""All names and values of a message's headers together."""
RESERVED_HEADERS = "tidegate-"
PAYLOAD_FIELDS = ("payload", "payload_text", "payload_base64")
"""One of them is there."""

_POINTER_HINT = "send a pointer to it, such as an object's address"


def _checked_headers(headers: dict[str, str]) -> dict[str, str]:
    for name in headers:
        if name.lower().startswith(RESERVED_HEADERS):
            raise refused(f'"{name[:64]}" cannot be set', hint="tidegate-* headers are written at delivery")
    if sum(len(name.encode()) + len(value.encode()) for name, value in headers.items()) > MAX_HEADER_BYTES:
        raise refused(f"have more than {MAX_HEADER_BYTES} bytes together")
    return headers


class MessageSend(RequestBase):
    """Deliver a payload to a topic at a time.

    Attributes:
        key: Names the message, so that it can be replaced and cancelled; without one its request's id does.
        deliver_at: When; in the past means at once. Either this or `after`.
        after: How long after the record's append time.
        topic: Where to.
        message_key: The delivered record's key.
        headers: The delivered record's headers.
        payload: JSON, delivered as compact JSON text. One of the three payloads has to be there.
        payload_text: Delivered as UTF-8.
        payload_base64: Delivered as the bytes that it encodes.
        expire_after: Not delivered any more when later than this after its time.
        receipt: Whether acceptance writes a receipt; a refusal always does.
    """

    EXAMPLE: ClassVar = {
        "id": "01JE4T7Y2M9C5X8Z3W6V1B0N4K",
        "type": "message.send",
        "namespace": "orders",
        "key": "reminder-17",
        "deliver_at": "2026-11-20T22:00:00Z",
        "topic": "orders.reminders",
        "message_key": "17",
        "headers": {"k": "v"},
        "payload": {"order": 17},
        "expire_after": "1h",
    }
    PLANNED_FIELDS: ClassVar = {
        **planned(PROOFS, "trigger", "schedule", "cron", "every", "recurring", hint="only one-shot messages work now"),
        **planned(PLATFORM, "webhook", "delivery_mode", "hold"),
    }
    FIELD_HINTS: ClassVar = {
        "partition": "the topic's partitioner decides; set message_key",
        "body": "it is called payload",
    }

    type: Literal["message.send"] = "message.send"
    namespace: Namespace
    key: MessageKey | None = None
    deliver_at: InstantField | None = None
    after: DurationField | None = None
    topic: Topic
    message_key: Annotated[str, StringConstraints(strict=True, max_length=1024)] | None = None
    headers: Annotated[
        dict[str, Annotated[str, StringConstraints(strict=True)]],
        AtMost(MAX_HEADERS),
        AfterValidator(_checked_headers),
    ] = Field(default_factory=dict)
    payload: Any = None
    payload_text: Annotated[str, StringConstraints(strict=True)] | None = None
    payload_base64: Annotated[str, StringConstraints(strict=True)] | None = None
    expire_after: Annotated[DurationField, Field(gt=0)] | None = None
    receipt: Flag = False

    @model_validator(mode="after")
    def _one_time_and_one_payload(self) -> Self:
        if (self.deliver_at is None) == (self.after is None):
            both = self.after is not None
            raise refused(
                "stands beside after" if both else "is missing",
                field="deliver_at",
                hint="give either deliver_at or after",
            )
        present = self.model_fields_set.intersection(PAYLOAD_FIELDS)
        if len(present) != 1:
            raise refused(
                "stands beside another payload" if present else "is missing",
                field="payload",
                hint="give one of payload, payload_text and payload_base64",
            )
        if len(self.payload_bytes) > MAX_PAYLOAD_BYTES:
            raise refused(
                f"{TOO_LARGE}: {len(self.payload_bytes)} bytes, at most {MAX_PAYLOAD_BYTES} (256 KiB) are allowed",
                field=min(present),
                hint=_POINTER_HINT,
            )
        return self

    @cached_property
    def payload_bytes(self) -> bytes:
        """What is delivered. JSON is written compactly: equal as JSON to what came, though not letter by letter."""
        if self.payload_text is not None:
            return self.payload_text.encode()
        if self.payload_base64 is not None:
            try:
                return base64.b64decode(self.payload_base64, validate=True)
            except binascii.Error as error:
                raise refused("is not base64", field="payload_base64") from error
        try:
            return json.dumps(self.payload, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()
        except ValueError as error:
            raise refused("contains a number that JSON cannot hold", field="payload") from error

    def due(self, appended_at: Instant) -> Instant:
        """Returns when to deliver.

        Args:
            appended_at: Append time of the request's record; `after` counts from it, on the broker's clock.
        """
        if self.deliver_at is not None:
            return self.deliver_at
        return min(appended_at + (self.after or 0), LATEST_INSTANT)


def check_delivery(request: MessageSend, *, appended_at: Instant) -> tuple[Problem, ...]:
    """Returns what is wrong with a message's time: more than ten years ahead is refused, the past is not."""
    if request.due(appended_at) <= appended_at + TEN_YEARS_MS:
        return ()
    field = "deliver_at" if request.after is None else "after"
    return (Problem(field, "is more than ten years ahead"),)


class MessageCancel(RequestBase):
    """Take a message back that has not been sent.

    Attributes:
        key: The message's key; or
        message_id: the id of the request that sent it, for a message without key.
    """

    EXAMPLE: ClassVar = {"id": "c-3", "type": "message.cancel", "namespace": "orders", "key": "reminder-17"}

    type: Literal["message.cancel"] = "message.cancel"
    namespace: Namespace
    key: MessageKey | None = None
    message_id: RequestId | None = None

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if (self.key is None) == (self.message_id is None):
            problem = "stands beside message_id" if self.key is not None else "is missing"
            raise refused(problem, field="key", hint="give either key or message_id")
        return self
