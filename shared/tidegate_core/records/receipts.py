"""The stored answer to a request."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate_core.store import keys
from tidegate_core.store.values import Key

RECEIPT_DAYS = 7
"""A repeat of a request gets its first answer for as long as the requests topic keeps records."""
DAY_S = 86_400


def expiry(now: int, days: int) -> int:
    """Returns the TTL attribute's value: epoch seconds."""
    return now // 1000 + days * DAY_S


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredReceipt:
    """The answer to a request, kept under the request's id: a repeat gets the same answer.

    Attributes:
        body: The receipt as JSON.
        settled: False while a request that ends pending things has not ended them all: its answer is still growing.
    """

    request_id: str
    body: str
    expires_at: int
    settled: bool = True

    def key(self, shard: int) -> Key:
        return keys.receipt(shard, self.request_id)
