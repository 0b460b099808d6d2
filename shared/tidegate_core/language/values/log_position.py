"""Log position of a record. It orders requests, and it is the version of each row that a request writes."""

from __future__ import annotations

import re
from typing import NamedTuple

_TEXT = re.compile(r"(\d{13})\.([0-9a-f]{32})\.(\d{6})\.(\d{20})", re.ASCII)
_TOPIC_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_LIMITS = {"append_time": 10**13, "topic_partition": 10**6, "offset": 10**20}


class Position(NamedTuple):
    """Position of a record, ordered by append time first.

    Attributes:
        append_time: Broker's append time in milliseconds, 13 digits; made monotone within a topic partition.
        topic_id: Kafka's topic id, 32 lower-case hexadecimal digits. Kafka's clients print base64, which may contain `/`.
        topic_partition: Number from 0 to 999,999.
        offset: Number of at most 20 digits.
    """

    append_time: int
    topic_id: str
    topic_partition: int
    offset: int

    def text(self) -> str:
        """Returns the sortable form. Its parts have a fixed width, so that every store orders the texts as the positions.

        Raises:
            ValueError: A part does not fit its width, so that the text would be in the wrong order.
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
            ValueError: The text has another form.
        """
        match = _TEXT.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not the text of a position")
        return cls(int(match[1]), match[2], int(match[3]), int(match[4]))


FIRST_POSITION = Position(0, "0" * 32, 0, 0)
"""Position before every record, for requests that a node makes itself."""
