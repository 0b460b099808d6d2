"""Requests about one-shot messages: `message.send`, which also replaces a message, and `message.cancel`."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import model_validator

from tidegate_core.language.requests.request_base import RequestBase
from tidegate_core.language.targets.message_target import (
    MAX_PAYLOAD_BYTES,
    PAYLOAD_FIELDS,
    MessageBody,
    header_problems,
)
from tidegate_core.language.values.document import PLATFORM, Flag, planned
from tidegate_core.language.values.durations import DurationField
from tidegate_core.language.values.instants import LATEST_INSTANT, TEN_YEARS_MS, Instant, InstantField
from tidegate_core.language.values.names import MessageKey, Namespace, RequestId
from tidegate_core.language.values.problems import Problem, refused

__all__ = ["MAX_PAYLOAD_BYTES", "PAYLOAD_FIELDS", "MessageCancel", "MessageSend", "check_delivery"]


_RECURRING = "a recurring message is a schedule whose target is a message"


class MessageSend(MessageBody, RequestBase):
    """Deliver a payload to a topic at a set time.

    Attributes:
        key: Name of the message, to replace or cancel it; without a key the request's id is its name.
        deliver_at: Instant of the delivery; in the past it means at once. Either this or `after` must be given.
        after: Time from the record's append time to the delivery.
        receipt: Whether an accepted request gets a receipt; a refused one always does.
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
    PLANNED_FIELDS: ClassVar = planned(PLATFORM, "webhook", "delivery_mode", "hold")
    FIELD_HINTS: ClassVar = {
        "partition": "the topic's partitioner decides; set message_key",
        "body": "it is called payload",
        **dict.fromkeys(("trigger", "schedule", "cron", "every", "recurring"), _RECURRING),
    }

    type: Literal["message.send"] = "message.send"
    namespace: Namespace
    key: MessageKey | None = None
    deliver_at: InstantField | None = None
    after: DurationField | None = None
    receipt: Flag = False

    @model_validator(mode="after")
    def _can_be_sent_at_one_time(self) -> Self:
        if (self.deliver_at is None) == (self.after is None):
            both = self.after is not None
            raise refused(
                "must not be given with after" if both else "is missing",
                field="deliver_at",
                hint="give either deliver_at or after",
            )
        for problem in header_problems(self.headers, "headers"):
            raise refused(problem.problem, field=problem.field, hint=problem.hint)
        return self

    def due(self, appended_at: Instant) -> Instant:
        """Returns the instant of the delivery.

        Args:
            appended_at: Append time of the request's record by the broker's clock; `after` counts from it.
        """
        if self.deliver_at is not None:
            return self.deliver_at
        return min(appended_at + (self.after or 0), LATEST_INSTANT)


def check_delivery(request: MessageSend, *, appended_at: Instant) -> tuple[Problem, ...]:
    """Returns a problem if a message's time is more than ten years ahead. A time in the past is accepted."""
    if request.due(appended_at) <= appended_at + TEN_YEARS_MS:
        return ()
    field = "deliver_at" if request.after is None else "after"
    return (Problem(field, "is more than ten years ahead"),)


class MessageCancel(RequestBase):
    """Cancel a message that has not been delivered.

    Attributes:
        key: Key of the message.
        message_id: Id of the request that sent it, for a message without a key.
    """

    EXAMPLE: ClassVar = {"id": "c-3", "type": "message.cancel", "namespace": "orders", "key": "reminder-17"}

    type: Literal["message.cancel"] = "message.cancel"
    namespace: Namespace
    key: MessageKey | None = None
    message_id: RequestId | None = None

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if (self.key is None) == (self.message_id is None):
            problem = "must not be given with message_id" if self.key is not None else "is missing"
            raise refused(problem, field="key", hint="give either key or message_id")
        return self
