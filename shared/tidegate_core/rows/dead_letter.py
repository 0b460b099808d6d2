"""Reads a record of a dead-letter topic: the copied record and the reason (`ingest/dead_letters.py` writes them).

A sender may put headers of any name into a record, tidegate's own among them. Tidegate's headers follow all copied
ones, from the last header `tidegate.error.topic` on. Headers before that are not trusted.
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
"""One of the three dead-letter topics."""
QUEUES: Final[tuple[Queue, ...]] = get_args(Queue)
Headers: TypeAlias = tuple[tuple[str, bytes], ...]

REPLAY_HEADER: Final = "tidegate-replay"
"""Header of a replayed record: the id of its dead letter."""
TAKEN_HEADER: Final = "tidegate-replay-taken-by"
"""Header of a replayed record: `<namespace>/<name>` of a source that had already made an event of it and makes no second
one. One header per source.
"""
UNDELIVERABLE: Final = "undeliverable"
"""Class of a message that its topic refused. Its position is that of the request that made it."""
ERROR: Final = "tidegate.error."
LOST_HEADERS: Final = f"{ERROR}headers"
"""Replaces headers that could not be read; they cannot be restored."""
LEFT_OUT: Final = "left_out"
"""Error field of a letter without its value: the number of bytes, when the value exceeded the limit of the dead-letter
topic.
"""
MESSAGE_IDS: Final = ("tidegate-id", "tidegate-nominal")
"""Headers that tell apart the many messages of one recurring request."""
PARSED_BYTES_MAX: Final = 1_048_576
"""Limit for parsing a value in search of its namespace; requests and events are not larger."""
LETTER_ID_PATTERN: Final = r"^(requests|events|runs)-(0|[1-9][0-9]{0,5})-(0|[1-9][0-9]{0,17})$"
r"""Digits as ranges: the API's pattern engine accepts digits of all scripts for `\d`, and `LetterId.parse` does not."""


@dataclass(frozen=True, slots=True)
class LetterId:
    """Place of a dead letter: `<queue>-<topic partition>-<offset>` of its topic."""

    queue: Queue
    topic_partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.queue}-{self.topic_partition}-{self.offset}"

    @classmethod
    def parse(cls, text: str) -> LetterId:
        """Returns the id in a text. Raises ValueError when the text is none."""
        found = re.fullmatch(LETTER_ID_PATTERN.removesuffix("$"), text, re.ASCII)
        if found is None:
            raise ValueError(f'"{text[:64]}" is no letter; such as requests-3-17, as tidegate dlq list shows them')
        queue = next(each for each in QUEUES if each == found[1])
        return cls(queue, int(found[2]), int(found[3]))


@dataclass(frozen=True)
class DeadLetter:
    """One dead letter. It has a field dictionary, so that computed properties are cached.

    Attributes:
        appended_at: Append time in the dead-letter topic, by the broker's clock.
        key, value, headers: Copied record; the value is empty when the record had none.
        error: Tidegate's headers without the prefix `tidegate.error.`; empty in a record of another producer.
        sources: `<namespace>/<name>` of each source that refused the record.
        taken_by: `<namespace>/<name>` of each source that made an event of it.
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
        """Topic of the record, or target topic of the message."""
        return self.error.get("topic")

    @property
    def topic_partition(self) -> int | None:
        """Topic partition of the record, or of the request that made the message."""
        return _whole(self.error.get("partition"))

    @property
    def offset(self) -> int | None:
        """Offset of the record, or of the request that made the message."""
        return _whole(self.error.get("offset"))

    @property
    def error_class(self) -> str | None:
        return self.error.get("class")

    @property
    def buried_at(self) -> Instant:
        """Time at which tidegate gave it up."""
        try:
            return parse_instant(self.error["at"])
        except (KeyError, ValueError):
            return self.appended_at

    @property
    def is_undeliverable(self) -> bool:
        """Whether it is a message, as opposed to a record that could not be read."""
        return self.error_class == UNDELIVERABLE

    @property
    def is_whole(self) -> bool:
        """Whether it holds the record's value."""
        return LEFT_OUT not in self.error

    @cached_property
    def namespace(self) -> str | None:
        """Namespace of the source that refused it, or in the record; a message states none."""
        if self.sources:
            return self.sources[0].partition("/")[0]
        return None if self.is_undeliverable else _namespace_of(self.value)

    @cached_property
    def origin(self) -> str:
        """Equal for all copies of one record: a crash may cause a second copy."""
        # A recreated topic counts its offsets from 0. Letters of older releases do not name its id, so the hash
        # includes the bytes.
        named = dict(self.headers)
        message = [repr(named.get(name)) for name in MESSAGE_IDS] if self.is_undeliverable else []
        topic_id = [self.error["topic_id"]] if "topic_id" in self.error else []
        place = [self.id.queue, self.topic or "", *topic_id, str(self.topic_partition), str(self.offset)]
        return keys.text_hash_once(*place, *message, repr(self.key), self.value.hex())

    def replay_headers(self) -> Headers:
        """Returns the headers for a replay."""
        kept = tuple((name, value) for name, value in self.headers if name != REPLAY_HEADER)
        # Headers of an earlier replay stay: it did not ask these sources again.
        taken = tuple((TAKEN_HEADER, each.encode()) for each in self.taken_by)
        return (*kept, (REPLAY_HEADER, str(self.id).encode()), *taken)


def read_letter(
    letter_id: LetterId, appended_at: Instant, key: bytes | None, value: bytes | None, headers: Headers
) -> DeadLetter:
    """Returns the dead letter in a record of a dead-letter topic, whichever producer wrote it."""
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
    """Returns whether a letter passes a filter. An unknown property passes no filter on it.

    Args:
        letter: Letter of a topic.
        topic: Topic of its record, or target topic of its message.
        error_class: Class such as `invalid` or `undeliverable`.
        since: Earliest time at which it was given up.
        namespaces: Namespaces to which it may belong; empty for any.
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
        document = document.get("data")  # In a CloudEvent in structured mode.
    given = document.get("namespace") if isinstance(document, dict) else None
    return given if isinstance(given, str) and re.match(NAME_PATTERN, given, re.ASCII) else None
