"""The target `message`: a record that a schedule sends at each instant of its time trigger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Final, Literal, Self

from pydantic import SerializerFunctionWrapHandler, model_serializer, model_validator

from tidegate_core.language.targets.message_body import MessageBody
from tidegate_core.language.values.document import LANGUAGE, PLATFORM, planned
from tidegate_core.language.values.problems import refused

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
