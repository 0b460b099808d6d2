"""A message as its sender knows it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.simulation.users.requests import Asked
from tidegate_core.language.values.log_position import Position


@dataclass(slots=True, eq=False)
class Letter:
    """One message as its sender knows it; `name` is its payload.

    Attributes:
        due: When it shall be delivered; for `after` known once its record is appended.
        records: Append times of records that carry it.
        shards: Of the message that each of them makes, in the order of `records`.
        positions: Of the requests topic, where each of them lies.
        asked: Its send, when the sender wanted a receipt.
        ended: The request that replaced or cancelled it.
        followed: The send under its key after its cancel, which replaces it where that came too late.
        expire_ms: Not delivered later than this after its time.
    """

    name: str
    due: int
    records: list[int] = field(default_factory=list)
    shards: list[int] = field(default_factory=list)
    positions: list[Position] = field(default_factory=list)
    has_id: bool = False
    asked: Asked | None = None
    ended: Asked | None = None
    followed: Asked | None = None
    expire_ms: int | None = None
    after_ms: int | None = None

    @property
    def expires(self) -> int | None:
        """By the last of its records: whichever is met first decides."""
        if self.expire_ms is None:
            return None
        return self.expire_ms + (self.due if self.after_ms is None else self.records[-1] + self.after_ms)
