"""Messages: the record that a message delivers, and the target `message` of a schedule.

One-shot and recurring messages deliver the same kind of record, `MessageBody`. A schedule with the target `message` sends it at
each instant of its time trigger.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final, Literal, Self

from pydantic import (
    AfterValidator,
    Field,
    SerializerFunctionWrapHandler,
    StringConstraints,
    model_serializer,
    model_validator,
)

from tidegate_core.language.values.document import LANGUAGE, PLATFORM, AtMost, Document, planned
from tidegate_core.language.values.durations import DurationField
from tidegate_core.language.values.json_values import exact_json, holds_written_number
from tidegate_core.language.values.names import Topic
from tidegate_core.language.values.problems import TOO_LARGE, Problem, refused, shortened

MAX_PAYLOAD_BYTES = 262_144
"""Size of a message's payload, 256 KiB. It is below the 400 KB of a store item; larger data need another store."""
MAX_HEADERS = 64
MAX_HEADER_BYTES = 16_384
"""Bytes of all names and values of a message's headers."""
RESERVED_HEADERS = "tidegate-"
PAYLOAD_FIELDS = ("payload", "payload_text", "payload_base64")
"""Fields of which a message has exactly one."""

_written = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode
_POINTER_HINT = "send a pointer to it, such as an object's address"


def _checked_headers(headers: dict[str, str]) -> dict[str, str]:
    for name in headers:
        if name.lower().startswith(RESERVED_HEADERS):
            raise refused(f'"{name[:64]}" cannot be set', hint="tidegate-* headers are written at delivery")
    if sum(len(name.encode()) + len(value.encode()) for name, value in headers.items()) > MAX_HEADER_BYTES:
        raise refused(
            f"have more than the {MAX_HEADER_BYTES} bytes together that are allowed",
            hint="move large values into the payload",
        )
    return headers


def header_problems(headers: dict[str, str], place: str) -> list[Problem]:
    """Returns a problem for each header name with a NUL: Kafka's client would write only the part before it.

    Older stored messages may have such names, so the check is not in the model.
    """
    wrong = [name for name in headers if "\x00" in name]
    return [Problem(place, f"{shortened(repr(name))} contains a NUL character", "take it out") for name in wrong]


class MessageBody(Document):
    """A record for a topic. Exactly one of the three payload fields must be given.

    Attributes:
        topic: Topic of the record.
        message_key: Key of the record.
        headers: Headers of the record.
        payload: Payload as JSON, delivered as compact JSON text. If a fraction has digits that a float loses, as `19.90`, the
            payload is stored as `payload_text` and delivered with the same text.
        payload_text: Payload as a text, delivered as UTF-8.
        payload_base64: Payload as base64, delivered as the decoded bytes.
        expire_after: Lateness after which the message is no longer delivered.
    """

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

    @model_validator(mode="before")
    @classmethod
    def _exact_payload(cls, given: Any) -> Any:
        if not isinstance(given, dict) or not holds_written_number(given.get("payload")):
            return given
        if any(each in given for each in PAYLOAD_FIELDS[1:]):
            return given  # A later check refuses two payloads.
        others = {name: value for name, value in given.items() if name != "payload"}
        return {**others, "payload_text": exact_json(given["payload"])}

    @model_validator(mode="after")
    def _one_payload(self) -> Self:
        present = self.model_fields_set.intersection(PAYLOAD_FIELDS)
        if len(present) != 1:
            raise refused(
                "must not be given with another payload" if present else "is missing",
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
        """Delivered bytes. JSON is written compactly: equal as JSON to the input, but not byte by byte."""
        if self.payload_text is not None:
            return self.payload_text.encode()
        if self.payload_base64 is not None:
            try:
                return base64.b64decode(self.payload_base64, validate=True)
            except ValueError as error:  # Includes the error for text that is not ASCII.
                raise refused("is not base64", field="payload_base64", hint="or send text as payload_text") from error
        try:
            return _written(self.payload).encode()
        except TypeError as error:  # The value comes from a YAML tag or from Python and has no JSON form.
            hint = "write texts, numbers, true/false, lists and mappings"
            raise refused("contains what JSON cannot hold", field="payload", hint=hint) from error
        except ValueError as error:
            raise refused(
                "contains a number that JSON cannot hold", field="payload", hint="write it as a text, or as null"
            ) from error


_TEMPLATE = "${"
IS_PLANNED: Final = f"is planned for {LANGUAGE}"


class MessageTarget(MessageBody):
    """A message that is delivered at each instant of the schedule's time trigger.

    It has the fields of a one-shot message except those for its name and time.
    """

    EXAMPLE: ClassVar = {
        "type": "message",
        "topic": "orders.reports",
        "message_key": "daily",
        "headers": {"k": "v"},
        "payload": {"report": "daily"},
        "expire_after": "1h",
    }
    PLANNED_FIELDS: ClassVar = {
        **planned(LANGUAGE, "nominal", "templates"),
        **planned(PLATFORM, "webhook", "delivery_mode"),
    }
    FIELD_HINTS: ClassVar = {
        "partition": "the topic's partitioner decides; set message_key",
        "body": "it is called payload",
        "key": "it is called message_key; the schedule's name is what replaces it",
    }

    type: Literal["message"] = "message"

    @model_validator(mode="after")
    def _no_templates(self) -> Self:
        for field, text in self._texts():
            if _TEMPLATE in text:
                hint = "send it as payload_base64 to have it delivered as it is" if field.startswith("payload") else ""
                raise refused(f'contains "${{", and filling in {IS_PLANNED}', field=field, hint=hint)
        return self

    @model_serializer(mode="wrap")
    def _with_null(self, serialized: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Keeps a payload that is JSON's null: the stored form leaves out fields that are None."""
        fields: dict[str, Any] = serialized(self)
        if self.payload is None and "payload" in self.model_fields_set:
            fields["payload"] = None
        return fields

    def _texts(self) -> Iterator[tuple[str, str]]:
        yield from ((f"headers.{name}", value) for name, value in self.headers.items())
        yield "message_key", self.message_key or ""
        if self.payload_base64 is None:
            yield "payload" if self.payload_text is None else "payload_text", self.payload_bytes.decode()
