"""Topics of messages as the audit reads them: what has landed on them since an instant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol


class LandedUnavailable(Exception):
    """The brokers did not answer in time, or a topic cannot be read. Nothing is known; ask again."""


class Landed(NamedTuple):
    """One record, without its payload.

    Attributes:
        append_time: Milliseconds since the epoch.
        is_cut: It is the first that the log still holds, and was not its first one: earlier ones are gone. Where the log holds
            none any more it is no record, has no headers, and its append time is the present.
    """

    topic: str
    append_time: int
    headers: tuple[tuple[str, bytes], ...]
    is_cut: bool = False


class LandedRecords(Protocol):
    """Blocking."""

    def read(self, topics: Sequence[str], since: int) -> Iterator[Landed]:
        """Yields what was appended from an instant on, to the ends that the logs have now; topics that are not there hold nothing.

        Raises:
            LandedUnavailable: Some of it was not told.
        """
        ...
