"""The inbox row of a request, from the request and the position of its record. Pure.

The ingest writes these rows (`request_ingest.py`). If an open transaction keeps the ingest from a record, the API writes the same row for a
request that `may_overtake`. Both rows have one key, unless the broker's clock stepped back between the records. If the first row is done by
then, the second one is a repeat of its request id.
"""

from __future__ import annotations

from typing import Final

from tidegate_core.language.requests.requests import (
    PAYLOAD_FIELDS,
    ControlRequest,
    JobCancel,
    MessageCancel,
    MessageSend,
    Request,
    RunCancel,
    RunRequest,
    ScheduleDelete,
    ScheduleSuspend,
)
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.problems import Problem, RefusedRecord
from tidegate_core.rows import keys
from tidegate_core.rows.inbox import InboxRow

INBOX_BODY_BYTES_MAX = 390_000
"""Bytes of a stored request: DynamoDB's 400 KB without keys and names, some 1 KB. A message always fits. Its payload is stored unchanged, at
most 256 KiB. The rest has at most 119 KB: headers, `message_key`, `actor` and `reason` may be control characters, which take six bytes each
as JSON."""

OVERTAKING: Final = (ScheduleSuspend, ScheduleDelete, ControlRequest, RunCancel, JobCancel)
"""Requests that stop something, and the resume of a namespace or the system, which reverts a stop.

All others keep their order in the log. If a `schedule.resume` overtook the apply of a correction, the old definition would start, and the
correction would be superseded. Only the log knows the order of a `message.cancel` and the creates of its key."""


def may_overtake(request: Request) -> bool:
    """Whether a request may reach its shard before an open transaction ends. It needs an id, so that its repeat is recognised."""
    return request.id is not None and isinstance(request, OVERTAKING)


def inbox_row(request: Request, position: Position) -> InboxRow:
    """Returns the row of a request.

    Args:
        request: The request, parsed from its record.
        position: Position of the record.

    Raises:
        RefusedRecord: The request is too large for an item.
    """
    payload = request.payload_bytes if isinstance(request, MessageSend) else None
    body = request.to_json(without=() if payload is None else PAYLOAD_FIELDS).decode()
    namespace, name = _inbox_name(request, position)
    kind = keys.MESSAGE_INBOX if isinstance(request, MessageSend | MessageCancel) else keys.REQUEST_INBOX
    row = InboxRow(namespace=namespace, name=name, kind=kind, origin=position.text(), body=body, payload=payload)
    if row.size > INBOX_BODY_BYTES_MAX:
        problem = Problem("", f"the request has {row.size} bytes, at most {INBOX_BODY_BYTES_MAX} can be kept")
        raise RefusedRecord(
            [problem], "too_large", request_id=request.id, type=request.type, namespace=request.namespace
        )
    return row


def _inbox_name(request: Request, position: Position) -> tuple[str, str]:
    """Returns namespace and name under which the row is sorted; user text only as a hash."""
    if request.CLUSTER_OBJECT is not None:
        return keys.NO_NAMESPACE, request.CLUSTER_OBJECT
    match request:
        case MessageSend(namespace=namespace, key=key, id=request_id):
            return namespace, keys.text_hash_once(key if key is not None else request_id or position.text())
        case MessageCancel(namespace=namespace, key=key, message_id=message_id):
            return namespace, keys.text_hash_once(key if key is not None else message_id or "")
        case RunRequest(run_id=run) | JobCancel(job_id=run):
            return request.namespace or "-", run
        case _:
            return request.namespace, request.name
