"""Detects a request id that is used for two different requests (422).

It knows only the newest ids of this process. The shard's owner knows all ids for seven days, and rejects an id that was used for
another request.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from tidegate_api.http.problem_responses import ApiProblem

IDS_MAX = 20_000
"""Most request ids in memory; about 3 MB."""


class IdempotencyKeys:
    """The newest request ids, each with a hash of its body."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str | None, str], bytes] = OrderedDict()

    def check(self, namespace: str | None, request_id: str, body: bytes) -> None:
        """Raises ApiProblem if the id came with another body before, in the same namespace."""
        digest = hashlib.blake2b(body, digest_size=16).digest()
        name = namespace, request_id
        if self._known.setdefault(name, digest) != digest:
            raise ApiProblem(
                422,
                f"request id {request_id} was used for another request; use a new id for a new request",
                request_id=request_id,
            )
        self._known.move_to_end(name)
        if len(self._known) > IDS_MAX:
            self._known.popitem(last=False)
