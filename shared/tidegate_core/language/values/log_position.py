"""A record's position: the version of everything that a request makes, and the order in which requests count (DESIGN 5, 7)."""

from __future__ import annotations

import re
from typing import NamedTuple

_TEXT = re.compile(r"(\d{13})\.([0-9a-f]{32})\.(\d{6})\.(\d{20})", re.ASCII)
_TOPIC_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_LIMITS = {"append_time": 10**13, "topic_partition": 10**6, "offset": 10**20}


class Position(NamedTuple):
    """Where a record stands, ordered by append time first.

    Attributes:
        append_time: The broker's append time, made monotone per topic partition; milliseconds, 13 digits.
        topic_id: Kafka's topic id, 32 lower-case hexadecimal digits (its clients print base64, which may contain `/`).
        topic_partition: 0 to 999,999.
        offset: 0 to 20 digits.
    """

    append_time: int
    topic_id: str
    topic_partition: int
    offset: int

    def text(self) -> str:
        """Returns the sortable form: fixed width, so that texts order as positions do, in every store.

        Raises:
            ValueError: A part does not fit its width; its text would break the order silently.
        """
        for name, limit in _LIMITS.items():
            if not 0 <= getattr(self, name) < limit:
                raise ValueError(f"position: {name} {getattr(self, name)} is not in 0..{limit - 1}")
        if not _TOPIC_ID.fullmatch(self.topic_id):
            raise ValueError(f"position: topic id {self.topic_id!r} is not 32 lower-case hexadecimal digits")
        return f"{self.append_time:013d}.{self.topic_id}.{self.topic_partition:06d}.{self.offset:020d}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Returns the position of a text that `text` made.

        Raises:
            ValueError: Some other text.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not the text of a position")
        return cls(int(match[1]), match[2], int(match[3]), int(match[4]))


FIRST_POSITION = Position(0, "0" * 32, 0, 0)
"""Before every record: where what a node asks of itself stands."""
