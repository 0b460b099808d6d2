"""Reads dead letters from their topics page by page, each with its mark (replayed or dropped) from the store."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tidegate_api.bus_clients import Bus, TopicNames
from tidegate_api.http.page_tokens import Place
from tidegate_api.http.problem_responses import invalid, not_found, unavailable
from tidegate_api.thread_pools import Pools
from tidegate_client.views import DeadLetterDetail, DeadLetterView, HeaderView, MarkView, Page, Raw
from tidegate_core.language.values.instants import Instant, as_datetime
from tidegate_core.language.values.problems import Problem
from tidegate_core.rows.dead_letter import QUEUES, DeadLetter, LetterId, Queue, read_letter
from tidegate_core.rows.effects import Unavailable
from tidegate_core.rows.item_codec import from_item
from tidegate_core.writes.dead_letter_marks import Mark, key_of
from tidegate_ports.bus import LogSlice, Record
from tidegate_ports.store import Store

READ_RECORDS_MAX: Final = 1_000
"""Dead letters that a page reads; a filter may keep none of them."""
READ_BYTES_MAX: Final = 16_000_000
"""Bytes after which a page reads no more; one dead letter may have 5 MB."""
SHOWN_BYTES_MAX: Final = 65_536
"""Bytes of a key, value or header in an answer; the route of the value returns all of it."""


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters of a list of dead letters.

    Attributes:
        queues: Dead-letter topics to read, in this order.
        keep: Filter by the dead letter itself, independent of its mark.
        since: Earliest time of arrival on the dead-letter topic.
        handled: Whether replayed and dropped ones are listed too.
    """

    queues: Sequence[Queue] = QUEUES
    keep: Callable[[DeadLetter], bool] = lambda _: True
    since: Instant | None = None
    handled: bool = False


class DeadLetterReads:
    """Reads the dead-letter topics; writes nothing."""

    def __init__(self, store: Store, pools: Pools, bus: Bus, topics: TopicNames) -> None:
        self._store = store
        self._pools = pools
        self._logs = bus.log_reader
        self._topics = topics

    async def page(self, filters: Filters, place: Place, size: int, now: Instant) -> Page[DeadLetterView]:
        """Returns up to `size` dead letters, oldest first in each topic partition. A page may be short or empty before the end.

        Raises:
            InvalidInput: The place belongs to another list.
            ApiProblem: 503 while the broker does not answer.
        """
        slices = await self._slices(filters, place)
        records = await self._read([each for _, each in slices], READ_RECORDS_MAX, READ_BYTES_MAX)
        queues = {self._topics.dead_letters(queue): queue for queue in filters.queues}
        letters = await self._pools.read(lambda: [_letter(queues[each.topic], each) for each in records])
        marks = await self.marks(letters)
        found: list[DeadLetterView] = []
        for letter in letters:
            mark = marks.get(letter.origin)
            open_still = mark is None or not mark.is_settled(now)
            if (open_still or filters.handled) and filters.keep(letter):
                found.append(view_of(letter, mark))
            if len(found) == size:
                return Page(items=found, next_page_token=_behind(filters, letter.id).text())
        looked_at = letters[-1].id if letters else None
        at_end = not slices or (looked_at is not None and _is_last(slices[-1], filters, looked_at))
        if at_end or looked_at is None:
            return Page(items=found)
        return Page(items=found, next_page_token=_behind(filters, looked_at).text())

    async def one(self, letter_id: LetterId) -> tuple[DeadLetter, Mark | None]:
        """Returns a dead letter and its mark. Raises ApiProblem: 404 if its topic does not have it, 503."""
        topic = self._topics.dead_letters(letter_id.queue)
        held = (await self._spans(topic)).get(letter_id.topic_partition)
        if held is None or not held.begin <= letter_id.offset < held.end:
            raise _gone(letter_id)
        at = LogSlice(topic, letter_id.topic_partition, letter_id.offset, letter_id.offset + 1)
        records = await self._read([at], 1, READ_BYTES_MAX)
        if not records or records[0].offset != letter_id.offset:
            raise _gone(letter_id)
        letter = _letter(letter_id.queue, records[0])
        return letter, (await self.marks([letter])).get(letter.origin)

    async def marks(self, letters: Sequence[DeadLetter]) -> Mapping[str, Mark]:
        """Returns the marks of dead letters, by origin."""
        wanted = {key_of(letter.origin): letter.origin for letter in letters}
        found = await self._pools.read(lambda: self._store.get(list(wanted))) if wanted else {}
        return {wanted[key]: from_item(Mark, item) for key, item in found.items()}

    async def _slices(self, filters: Filters, place: Place) -> list[tuple[int, LogSlice]]:
        """Returns the slices from a place on, as (number of the queue, slice), in order."""
        offset = _offset(place)
        if place.part >= len(filters.queues):
            raise invalid(_OTHER_LIST)
        found: list[tuple[int, LogSlice]] = []
        for part, queue in list(enumerate(filters.queues))[place.part :]:
            held = await self._spans(self._topics.dead_letters(queue), filters.since)
            for number, span in sorted(held.items()):
                if (part, number) < (place.part, place.shard):
                    continue
                here = (part, number) == (place.part, place.shard)
                begin = max(span.begin, offset) if here else span.begin
                if begin < span.end:
                    found.append((part, LogSlice(span.topic, number, begin, span.end)))
        return found

    async def _spans(self, topic: str, since: Instant | None = None) -> Mapping[int, LogSlice]:
        found = await self._logs.spans(topic, since)
        if isinstance(found, Unavailable):
            raise unavailable(f"topic {topic} cannot be read: {found.what}")
        return found

    async def _read(self, wanted: Sequence[LogSlice], records_max: int, bytes_max: int) -> Sequence[Record]:
        if not wanted:
            return ()
        found = await self._logs.read(wanted, records_max=records_max, bytes_max=bytes_max)
        if isinstance(found, Unavailable):
            raise unavailable(f"dead letters cannot be read: {found.what}")
        return found


UNSHOWABLE: Final = "\x00"


def view_of(letter: DeadLetter, mark: Mark | None) -> DeadLetterView:
    return DeadLetterView.model_validate(_fields(letter, mark))


def detail_of(letter: DeadLetter, mark: Mark | None) -> DeadLetterDetail:
    """Returns a dead letter with key, value and headers, each cut if it is long."""
    return DeadLetterDetail.model_validate(
        {
            **_fields(letter, mark),
            "key": None if letter.key is None else raw(letter.key),
            "value": raw(letter.value),
            "headers": [HeaderView(name=name, value=raw(value)) for name, value in letter.headers],
        }
    )


def raw(data: bytes) -> Raw:
    """Returns bytes as text if every character is printable, otherwise as base64: a terminal would obey control characters."""
    cut = data[:SHOWN_BYTES_MAX]
    truncated = len(cut) < len(data)
    try:
        text = cut.decode()
    except UnicodeDecodeError as error:
        # If the cut splits a character, the rest may still be text.
        text = cut[: error.start].decode() if truncated and error.start > len(cut) - 4 else UNSHOWABLE
    if all(each.isprintable() or each in "\n\t" for each in text):
        return Raw(text=text, truncated=truncated)
    return Raw(base64=base64.b64encode(cut).decode(), truncated=truncated)


def _fields(letter: DeadLetter, mark: Mark | None) -> dict[str, object]:
    return {
        "id": str(letter.id),
        "queue": letter.id.queue,
        "at": as_datetime(letter.buried_at),
        "namespace": letter.namespace,
        "topic": letter.topic,
        "topic_partition": letter.topic_partition,
        "offset": letter.offset,
        "error_class": letter.error_class,
        "message": letter.error.get("message"),
        "sources": list(letter.sources),
        "size_bytes": len(letter.value),
        "mark": None if mark is None else mark_view(mark),
    }


def mark_view(mark: Mark) -> MarkView:
    return MarkView(
        state=mark.state,
        letter=mark.letter,
        at=as_datetime(mark.at),
        actor=mark.actor,
        reason=mark.reason,
        replays=mark.replays,
    )


_OTHER_LIST = Problem("page_token", "belongs to another list", "use the same filters as for the first page")


def _letter(queue: Queue, record: Record) -> DeadLetter:
    letter_id = LetterId(queue, record.topic_partition, record.offset)
    return read_letter(letter_id, record.append_time_ms, record.key, record.value, record.headers)


def _gone(letter_id: LetterId) -> Exception:
    return not_found(
        f"dead letter {letter_id}: its topic does not have it; tidegate dlq list --all lists the stored ones"
    )


def _offset(place: Place) -> int:
    if place.after is None:
        return 0
    if not (place.after.isascii() and place.after.isdecimal() and len(place.after) < 19):
        raise invalid(_OTHER_LIST)
    return int(place.after)


def _behind(filters: Filters, letter: LetterId) -> Place:
    return Place(filters.queues.index(letter.queue), letter.topic_partition, str(letter.offset + 1))


def _is_last(last: tuple[int, LogSlice], filters: Filters, letter: LetterId) -> bool:
    part, span = last
    place = (filters.queues.index(letter.queue), letter.topic_partition, letter.offset)
    return (part, span.topic_partition, span.end - 1) == place
