"""Port of the audit to message topics: the records appended since an instant."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol


class LandedUnavailable(Exception):
    """The brokers did not answer in time, or a topic cannot be read. The result is unknown; retry."""


class Landed(NamedTuple):
    """One record, without its payload.

    Attributes:
        topic: Topic of the record.
        append_time: Milliseconds since the epoch.
        headers: Headers of the record.
        is_cut: Whether it is the first record that the log still holds, and earlier ones were removed. If the log holds
            no record any more, this entry is no record: it has no headers, and its append time is the present.
    """

    topic: str
    append_time: int
    headers: tuple[tuple[str, bytes], ...]
    is_cut: bool = False


class LandedRecords(Protocol):
    """Blocking reader."""

    def read(self, topics: Sequence[str], since: int) -> Iterator[Landed]:
        """Yields the records appended from an instant on, up to the present ends of the logs. Missing topics yield
        nothing.

        Raises:
            LandedUnavailable: Some records could not be read.
        """
        ...
