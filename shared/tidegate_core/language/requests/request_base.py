"""What every request has, whatever it is about."""

from __future__ import annotations

import json
from collections.abc import Collection

from tidegate_core.language.values.document import Document
from tidegate_core.language.values.names import RequestId, ShortText

MAX_RECORD_BYTES = 1_048_576
"""A request or event: 1 MiB. The topics take 4 MiB, so that what is refused is seen and kept as a dead letter."""


class RequestBase(Document):
    """What every request has.

    Attributes:
        id: The sender's; a repeat of it is recognised for 7 days. Without one a repeat is a second request.
        actor: Who wants it, for the record.
        reason: Why, for the record.
    """

    id: RequestId | None = None
    actor: ShortText | None = None
    reason: ShortText | None = None

    def to_json(self, without: Collection[str] = ()) -> bytes:
        """Returns the request as a record's value; what was left out stays out.

        Args:
            without: Fields that are kept elsewhere.
        """
        fields = self.model_dump(mode="json", exclude_unset=True, exclude=set(without))
        document = {"type": getattr(self, "type", ""), **fields}
        return json.dumps(document, separators=(",", ":"), ensure_ascii=False).encode()
