"""Rows on their way to somebody: timers, what comes in, what goes out, and who listens."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass

from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class InboxRow:
    """Something for the owner of a shard, put there by whoever read it from Kafka, in the transaction of its cursor.

    Attributes:
        kind: `Q` a request of the run plane, `M` one about a message, `X` events matched for one schedule, `G` a schedule that
            it waits for is gone.
        origin: Text of the position of the (first) record.
        body: The request in its canonical form, or a JSON list of matched events.
        payload: Of a message, as it is delivered: its bytes, because as JSON they could outgrow an item. `body` is the
            request without it then.
    """

    namespace: str
    name: str
    kind: str
    origin: str
    body: str
    payload: bytes | None = None

    @property
    def size(self) -> int:
        """Bytes of what it carries."""
        return len(self.body.encode()) + len(self.payload or b"")

    @property
    def request(self) -> bytes:
        """The request as a record's value."""
        if self.payload is None:
            return self.body.encode()
        document = {**json.loads(self.body), "payload_base64": base64.b64encode(self.payload).decode()}
        return json.dumps(document, ensure_ascii=False).encode()

    def key(self, shard: int) -> Key:
        return keys.inbox(shard, self.namespace, self.name, self.kind, self.origin)
