"""Reads Clockwork's records as `message.send`, so that its clients need no change."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate_core.language.values.instants import LATEST_INSTANT, format_instant
from tidegate_core.language.values.problems import MAX_PROBLEMS, InvalidInput, Problem, did_you_mean, shortened

CLOCKWORK_FIELDS = {
    "namespace": "clientId",
    "key": "scheduleKey",
    "message_key": "orderingKey",
    "topic": "delivery.topic",
    "deliver_at": "scheduleTime",
    "payload": "taskData",
    "payload_text": "taskData",
}
"""Clockwork's name of each field. Problems use the sender's names."""

_THEIRS = frozenset({"scheduleKey", "orderingKey", "taskData", "scheduleTime"})
_KNOWN = ("clientId", "scheduleKey", "orderingKey", "taskData", "delivery", "scheduleTime", "id")


def is_clockwork_schedule(document: Mapping[str, Any]) -> bool:
    """Whether a record is Clockwork's. Two fields of Clockwork suffice, so that a missing `clientId` is reported as such."""
    return "type" not in document and ("clientId" in document or len(_THEIRS.intersection(document)) > 1)


def as_message_send(document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the document of a `message.send` for the record.

    Raises:
        InvalidInput: Fields are missing, unknown or of another type. The problems use Clockwork's names.
    """
    delivery = document.get("delivery")
    time = document.get("scheduleTime")
    unknown = [field for field in document if field not in _KNOWN][:MAX_PROBLEMS]
    problems = [Problem(shortened(field), "is not a field here", did_you_mean(field, _KNOWN)) for field in unknown]
    problems += [
        Problem(field, "is missing")
        for field in ("clientId", "scheduleKey", "taskData", "delivery", "scheduleTime")
        if document.get(field) is None
    ]
    if delivery is not None and (not isinstance(delivery, Mapping) or set(delivery) != {"topic"}):
        problems.append(Problem("delivery", "is not a mapping with topic alone"))
    if time is not None and (type(time) is not int or not 0 <= time <= LATEST_INSTANT):
        problems.append(Problem("scheduleTime", "is not a number of milliseconds since 1970"))
    if problems or not isinstance(delivery, Mapping) or not isinstance(time, int):
        raise InvalidInput(problems)
    task = document["taskData"]
    optional = {"id": document.get("id"), "message_key": document.get("orderingKey")}
    return {
        **{field: value for field, value in optional.items() if value is not None},
        "type": "message.send",
        "namespace": document["clientId"],
        "key": document["scheduleKey"],
        "topic": delivery["topic"],
        "deliver_at": format_instant(time),
        # A text is the payload itself; any other value is JSON.
        "payload_text" if isinstance(task, str) else "payload": task,
    }
