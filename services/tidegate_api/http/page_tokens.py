"""Opaque page tokens: the place at which a list, read shard by shard, continues."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass

from pydantic_core import from_json

from tidegate_core.language.values.problems import InvalidInput, Problem

PAGE_SIZE_DEFAULT = 100
PAGE_SIZE_MAX = 1_000
"""Items of one answer: about 1 MB of ledger rows. It bounds the work of one request."""


@dataclass(frozen=True, slots=True)
class Place:
    """Continue in `part` of the list, in `shard`, after the sort key `after`."""

    part: int = 0
    shard: int = 0
    after: str | None = None

    def text(self) -> str:
        document = json.dumps([self.part, self.shard, self.after], separators=(",", ":"))
        return base64.urlsafe_b64encode(document.encode()).decode().rstrip("=")


def place_of(token: str | None) -> Place:
    """Returns the place of a token; without a token the beginning.

    Raises:
        InvalidInput: The text is no page token.
    """
    if not token:
        return Place()
    try:
        document = from_json(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        match document:
            case [int(part), int(shard), str(after)] if part >= 0 and shard >= 0:
                return Place(part, shard, after)
            case [int(part), int(shard), None] if part >= 0 and shard >= 0:
                return Place(part, shard)
    except (binascii.Error, ValueError):
        pass
    raise InvalidInput(
        [Problem("page_token", "is not a token of this list", "use next_page_token of the last page unchanged")]
    )
