"""Remembers which body came with which request id, so that an id that is used for something else is noticed (422).

Within this process and for its newest ids only: the shard's owner, who recognises ids for seven days everywhere, rejects
one that was used for another request.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

from tidegate_api.http.problem_responses import ApiProblem

IDS_MAX = 20_000
"""About 3 MB."""


class IdempotencyKeys:
    """The newest request ids with a hash of what they asked for."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str | None, str], bytes] = OrderedDict()

    def check(self, namespace: str | None, request_id: str, body: bytes) -> None:
        """Raises ApiProblem when the id came with another body before, in the same namespace."""
        digest = hashlib.blake2b(body, digest_size=16).digest()
        name = namespace, request_id
        if self._known.setdefault(name, digest) != digest:
            raise ApiProblem(
                422,
                f"request id {request_id} was used for another request before; take a new id for a new request",
                request_id=request_id,
            )
        self._known.move_to_end(name)
        if len(self._known) > IDS_MAX:
            self._known.popitem(last=False)
