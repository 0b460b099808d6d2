"""Scheduled messages, and events."""

from __future__ import annotations

from typing import Literal

from tidegate_client.views.view import Moment, View


class MessageView(View):
    """A message for later delivery.

    Attributes:
        id: Value of the header `tidegate-id` of the delivered record.
        state: `waiting`, also while a scope suspension holds it; `withdrawn`: cancelled or replaced before its time; or
            `passed`: its time is over, so it was delivered, has expired, is being retried, is a dead letter, or
            was withdrawn earlier (the receipt of the cancel says which).
        size_bytes: Size of the payload.
    """

    id: str
    namespace: str
    key: str | None = None
    request_id: str | None = None
    state: Literal["waiting", "withdrawn", "passed"]
    nominal: Moment
    expires: Moment | None = None
    topic: str
    message_key: str | None = None
    size_bytes: int


class EventView(View):
    """An event that the broker has acknowledged."""

    id: str
    type: str
    namespace: str
