"""Inbox rows: requests and events that other nodes wrote for a shard's owner."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxRow:
    """A request or matched events for the owner of a shard. The reader of the topic writes it with its cursor, in one
    transaction.

    Attributes:
        kind: Inbox kind of `rows/keys.py`.
        origin: Text of the log position of the first record.
        body: The request in canonical form, or a JSON list of matched events.
        payload: Payload of a message as bytes: in JSON it could exceed the size limit of an item. If it is set, `body` is the request without
            it.
    """

    namespace: str
    name: str
    kind: str
    origin: str
    body: str
    payload: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes of body and payload."""
        return len(self.body.encode()) + len(self.payload or b"")

    @property
    def request(self) -> bytes:
        """The request as the value of a record."""
        if self.payload is None:
            return self.body.encode()
        document = {**json.loads(self.body), "payload_base64": base64.b64encode(self.payload).decode()}
        return json.dumps(document, ensure_ascii=False).encode()

    def key(self, shard: int) -> Key:
        return keys.inbox(shard, self.namespace, self.name, self.kind, self.origin)
