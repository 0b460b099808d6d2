"""A record of a dead-letter topic, taken apart: what was copied, and why it was (`ingest/dead_letters.py` writes them).

Senders may have put headers of any name into their records, ours among them. What we say stands behind all that was
copied, from the last header `tidegate.error.topic` on; nothing before it is believed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, TypeAlias, get_args

from pydantic_core import from_json

from tidegate_core.language.values.instants import Instant, parse_instant
from tidegate_core.language.values.names import NAME_PATTERN
from tidegate_core.rows import keys

Queue: TypeAlias = Literal["requests", "events", "runs"]
"""Which of the three dead-letter topics."""
QUEUES: Final[tuple[Queue, ...]] = get_args(Queue)
Headers: TypeAlias = tuple[tuple[str, bytes], ...]

REPLAY_HEADER: Final = "tidegate-replay"
"""Of a record that was replayed: the id of its letter."""
TAKEN_HEADER: Final = "tidegate-replay-taken-by"
"""Likewise: `<namespace>/<name>` of a source that had made its event of it, and makes no other one; one header for each."""
UNDELIVERABLE: Final = "undeliverable"
"""Class of a message that its topic refused: its place is that of the request which made it."""
ERROR: Final = "tidegate.error."
LOST_HEADERS: Final = f"{ERROR}headers"
"""Stands for headers that nobody could read; they cannot be brought back."""
LEFT_OUT: Final = "left_out"
"""Of a letter without its record's value, which was larger than the dead-letter topic takes: how many bytes it has."""
MESSAGE_IDS: Final = ("tidegate-id", "tidegate-nominal")
"""One request makes many messages when it recurs: these tell them apart."""
PARSED_BYTES_MAX: Final = 1_048_576
"""Of a value that is searched for its namespace; requests and events have no more."""
LETTER_ID_PATTERN: Final = r"^(requests|events|runs)-(0|[1-9][0-9]{0,5})-(0|[1-9][0-9]{0,17})$"
"""Digits by name: the API's engine of patterns takes those of all scripts for a digit, and `LetterId.parse` does not."""


@dataclass(frozen=True, slots=True)
class LetterId:
    """Where a letter lies: `<queue>-<topic partition>-<offset>` of the dead-letter topic."""

    queue: Queue
    topic_partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.queue}-{self.topic_partition}-{self.offset}"

    @classmethod
    def parse(cls, text: str) -> LetterId:
        """Raises ValueError."""
        found = re.fullmatch(LETTER_ID_PATTERN.removesuffix("$"), text, re.ASCII)
        if found is None:
            raise ValueError(f'"{text[:64]}" is no letter; such as requests-3-17, as tidegate dlq list shows them')
        queue = next(each for each in QUEUES if each == found[1])
        return cls(queue, int(found[2]), int(found[3]))


@dataclass(frozen=True)
class DeadLetter:
    """One letter; a field dictionary keeps what is worked out.

    Attributes:
        appended_at: When it came to the dead-letter topic, by the broker.
        key, value, headers: Of the record that was copied; a record without a value has an empty one.
        error: What we say of it, by the header's name without `tidegate.error.`; empty where a stranger wrote it.
        sources: `<namespace>/<name>` of each source that refused it.
        taken_by: The same of each that made an event of it.
    """

    id: LetterId
    appended_at: Instant
    key: bytes | None
    value: bytes
    headers: Headers
    error: Mapping[str, str]
    sources: tuple[str, ...] = ()
    taken_by: tuple[str, ...] = ()

    @property
    def topic(self) -> str | None:
        """Where the record stood, or was to be delivered."""
        return self.error.get("topic")

    @property
    def topic_partition(self) -> int | None:
        """Of the record, or of the request that made the message."""
        return _whole(self.error.get("partition"))

    @property
    def offset(self) -> int | None:
        """Likewise."""
        return _whole(self.error.get("offset"))

    @property
    def error_class(self) -> str | None:
        return self.error.get("class")

    @property
    def buried_at(self) -> Instant:
        """When it was given up."""
        try:
            return parse_instant(self.error["at"])
        except (KeyError, ValueError):
            return self.appended_at

    @property
    def is_undeliverable(self) -> bool:
        """Whether it is a message, and not a record that could not be read."""
        return self.error_class == UNDELIVERABLE

    @property
    def is_whole(self) -> bool:
        """Whether it has its record's value."""
        return LEFT_OUT not in self.error

    @cached_property
    def namespace(self) -> str | None:
        """Of the source that refused it, else as the record says; a message does not say."""
        if self.sources:
            return self.sources[0].partition("/")[0]
        return None if self.is_undeliverable else _namespace_of(self.value)

    @cached_property
    def origin(self) -> str:
        """Equal for all copies of one record: a copy may repeat after a crash."""
        # A topic that was made anew counts its offsets anew. Letters of older releases do not name its id: so the bytes are part of it.
        named = dict(self.headers)
        message = [repr(named.get(name)) for name in MESSAGE_IDS] if self.is_undeliverable else []
        topic_id = [self.error["topic_id"]] if "topic_id" in self.error else []
        place = [self.id.queue, self.topic or "", *topic_id, str(self.topic_partition), str(self.offset)]
        return keys.text_hash_once(*place, *message, repr(self.key), self.value.hex())

    def replay_headers(self) -> Headers:
        """Returns the headers with which it is produced again."""
        kept = tuple((name, value) for name, value in self.headers if name != REPLAY_HEADER)
        # Those of an earlier replay stay: these sources were not asked again.
        taken = tuple((TAKEN_HEADER, each.encode()) for each in self.taken_by)
        return (*kept, (REPLAY_HEADER, str(self.id).encode()), *taken)


def read_letter(
    letter_id: LetterId, appended_at: Instant, key: bytes | None, value: bytes | None, headers: Headers
) -> DeadLetter:
    """Returns the letter that a record of a dead-letter topic is, whoever wrote it."""
    begin = max((at for at, (name, _) in enumerate(headers) if name == f"{ERROR}topic"), default=len(headers))
    copied = tuple((name, text) for name, text in headers[:begin] if name != LOST_HEADERS)
    said = [
        (name.removeprefix(ERROR), text.decode("utf-8", "replace"))
        for name, text in headers[begin:]
        if name.startswith(ERROR)
    ]
    sources, taken_by = (tuple(text for name, text in said if name == which) for which in ("source", "taken_by"))
    return DeadLetter(letter_id, appended_at, key, value or b"", copied, dict(said), sources, taken_by)


def is_wanted(
    letter: DeadLetter,
    *,
    topic: str | None = None,
    error_class: str | None = None,
    since: Instant | None = None,
    namespaces: Sequence[str] = (),
) -> bool:
    """Whether a letter is one of those that were asked for; what is not known of it matches no filter.

    Args:
        letter: One of a topic.
        topic: Where its record stood, or was to be delivered.
        error_class: Such as `invalid` or `undeliverable`.
        since: It was given up then or later.
        namespaces: It belongs to one of these; none: to any.
    """
    return (
        topic in (None, letter.topic)
        and error_class in (None, letter.error_class)
        and (since is None or letter.buried_at >= since)
        and (not namespaces or letter.namespace in namespaces)
    )


def _whole(text: str | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) < 19 else None


def _namespace_of(value: bytes) -> str | None:
    if len(value) > PARSED_BYTES_MAX:
        return None
    try:
        document = from_json(value)
    except ValueError:
        return None
    if isinstance(document, dict) and "specversion" in document:
        document = document.get("data")  # Of a CloudEvent in structured mode.
    given = document.get("namespace") if isinstance(document, dict) else None
    return given if isinstance(given, str) and re.match(NAME_PATTERN, given, re.ASCII) else None
