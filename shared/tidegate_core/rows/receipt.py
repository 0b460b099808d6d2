"""Receipts: the stored answers to requests."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus
from tidegate_core.language.requests.requests import (
    ControlRequest,
    JobCancel,
    MessageCancel,
    MessageSend,
    Request,
    RunRequest,
    ScheduleApply,
    SourceApply,
)
from tidegate_core.language.values.problems import Problem
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key

RECEIPT_DAYS = 7
"""A repeat of a request gets its first answer for as long as the requests topic keeps records."""
DAY_S = 86_400


def expiry(now: int, days: int) -> int:
    """Returns the value of the TTL attribute: epoch seconds."""
    return now // 1000 + days * DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReceipt:
    """The answer to a request under its namespace and id: a repeat gets the same answer.

    Attributes:
        namespace: Namespace of the request; None when it has none.
        subject: Hash of the object that the request names. Its id answers no request about another object.
        body: The receipt as JSON.
        settled: False while a request is still ending jobs and runs, so that its answer grows.
        definition: Hash of the definition in an apply; None for other requests and for rows of older releases.
    """

    request_id: str
    namespace: str | None = None
    subject: str
    body: str
    expires_at: int
    settled: bool = True
    definition: str | None = None

    def answers(self, request: Request) -> bool:
        """Returns whether this answers the request, and not another one that used the same id before."""
        return self.subject == subject_of(request) and self.definition in (None, definition_of(request))

    def key(self, shard: int) -> Key:
        return keys.receipt(shard, self.namespace, self.request_id)


def subject_of(request: Request) -> str:
    """Returns a hash of the object that a request names: its type, namespace and name."""
    match request:
        case MessageSend(key=key, id=request_id):
            named = ("key", key) if key is not None else ("id", request_id or "")
        case MessageCancel(key=key, message_id=message_id):
            named = ("key", key) if key is not None else ("id", message_id or "")
        case RunRequest(run_id=run) | JobCancel(job_id=run):
            named = ("id", run)
        case ControlRequest(scope=scope):
            named = ("scope", scope)
        case _:
            named = ("name", request.name)
    return keys.text_hash(request.type, request.namespace or keys.NO_NAMESPACE, *named)


def definition_of(request: Request) -> str | None:
    """Returns a hash of the definition in a request; None when it defines nothing."""
    if isinstance(request, ScheduleApply | SourceApply):
        return keys.text_hash_once(request.spec.canonical_json())
    return None


def used_otherwise(request: Request, request_id: str, now: int) -> Receipt:
    """Returns the answer to a request whose id was used for another request."""
    hint = "take a new id for a new request"
    return Receipt.model_construct(
        request_id=request_id,
        status=ReceiptStatus.REJECTED,
        namespace=request.namespace,
        name=getattr(request, "name", None) or getattr(request, "key", None),
        errors=(Problem("id", "was used for another request", hint),),
        at=now,
    )
