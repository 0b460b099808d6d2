"""Copies refused records, with their original bytes, to a dead-letter topic, while the records after them go on.

Each `TopicCursor` has one `DeadLetters`. It produces copies and the answers to senders; the cursor's row stores which copies are open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.engine.actor_inputs import LogRecord, TopicFacts
from tidegate_core.engine.operations import Operation, Signal
from tidegate_core.language.requests.receipts import Receipt, ReceiptStatus
from tidegate_core.language.values.instants import format_instant
from tidegate_core.language.values.problems import RefusedRecord
from tidegate_core.rows.dead_letter import ERROR, LEFT_OUT, Headers
from tidegate_core.rows.effects import Produce

OPEN_MAX = 1_000
"""Open dead letters of one topic partition, without an acknowledged copy; the cursor's item has their offsets (10 KB)."""
OPEN_BYTES_MAX = 32_000_000
"""Bytes of their records in memory; one record may be as large as the broker allows."""
PATIENCE_MS = 1_000
"""How long the cursor waits for copies: with a broker that answers, it never passes a record before its copy is acknowledged."""
REFUSED_AGAIN_MS = 5_000
REFUSED_MS_MAX = 10 * 60_000
"""How long a refused copy is tried again: the dead-letter topic may be recreated, or the right to write there granted."""
MESSAGE_BYTES_MAX = 1_024
MESSAGE_HEADER = "tidegate.error.message"
LEFT_OUT_HEADER = f"{ERROR}{LEFT_OUT}"
SOURCE_HEADER = "tidegate.error.source"
"""`<namespace>/<name>` of a source that refused the record; one header for each."""
TAKEN_BY_HEADER = "tidegate.error.taken_by"
"""The same for each source that made an event of the record: it ignores a replay."""


class DeadLetters:
    """Refused records of one topic partition, until their copies are acknowledged.

    A copy may repeat; its origin headers are its id. It is never lost: the cursor that passes the record names it as open. If the dead-letter
    topic refuses a copy, the log reports it, the cursor waits no longer, and the copy is tried for ten minutes.

    Args:
        host: Shared parts of the partition actor.
        copies: Name of the dead-letter topic.
        topic: Topic of the records.
        topic_partition: Topic partition of the records.
        closed: Called when a copy is acknowledged.
    """

    def __init__(
        self, host: ActorContext, copies: str, topic: TopicFacts, topic_partition: int, closed: Callable[[], None]
    ) -> None:
        self._host = host
        self._copies = copies
        self._topic = topic.name
        self._topic_id = topic.id
        self._topic_partition = topic_partition
        self._closed = closed
        self._open: dict[int, int] = {}
        self._copying: set[int] = set()
        self._refused: set[int] = set()
        self._unread: set[int] = set()
        self._stuck = False
        self._changed = Signal(f"dead letters {topic.name} {topic_partition}")

    # -- questions ----------------------------------------------------------------------------------------------------

    def open_below(self, offset: int) -> tuple[int, ...]:
        """Returns the offsets before this one whose copies are not acknowledged."""
        return tuple(sorted(each for each in self._open if each < offset))

    # -- records ------------------------------------------------------------------------------------------------------

    def left_open(self, offsets: Iterable[int]) -> None:
        """Takes over the open dead letters of a former owner; their records are read again."""
        self._open |= dict.fromkeys(offsets, 0)
        self._unread.update(offsets)

    def is_read_again(self, offset: int) -> bool:
        """Records that the log returned this offset. Returns whether a former owner left its dead letter open."""
        if not self._unread:
            return False
        for gone in sorted(each for each in self._unread if each < offset):
            self.is_gone(gone)
        known = offset in self._unread
        self._unread.discard(offset)
        return known

    def is_gone(self, offset: int) -> bool:
        """Records that the log no longer has this offset. Returns whether a former owner left its dead letter open."""
        if offset not in self._unread:
            return False
        self._host.note("dead_letter_refused", topic=self._copies, message=f"the log has no offset {offset} any more")
        self._close(offset)
        return True

    def bury(
        self, record: LogRecord, refused: RefusedRecord, by: Sequence[str] = (), taken_by: Sequence[str] = ()
    ) -> None:
        """Begins to copy a record, and to answer its sender if the request's id is readable.

        Args:
            record: The record, as it was read.
            refused: Reasons of the refusal.
            by: Sources that refused it.
            taken_by: Sources that made an event of it.
        """
        if record.offset in self._copying or record.offset in self._refused:
            return
        self._open[record.offset] = len(record.value or b"")
        self._copying.add(record.offset)
        about = f"{self._topic} {self._topic_partition} {record.offset}"
        sources = (
            *((SOURCE_HEADER, each.encode()) for each in by),
            *((TAKEN_BY_HEADER, each.encode()) for each in taken_by),
        )
        self._host.start_safely("dead_letter", about, self._copy(record, refused, sources))

    def settled(self) -> Operation[None]:
        """Waits until all copies are acknowledged, for a second at most; longer only while there is no room for more."""
        give_up = self._host.now if self._stuck else self._host.now + PATIENCE_MS
        if self._copying:
            self._host.call_at(give_up, self._wake)
        while self._copying and (self._host.now < give_up or self._is_full()):
            yield self._changed
        self._stuck = bool(self._copying)

    def _is_full(self) -> bool:
        return len(self._open) > OPEN_MAX or sum(self._open.values()) > OPEN_BYTES_MAX

    def _wake(self) -> None:
        self._host.operations.raise_(self._changed)

    def _close(self, offset: int) -> None:
        del self._open[offset]
        self._copying.discard(offset)
        self._refused.discard(offset)
        self._unread.discard(offset)
        self._wake()
        self._closed()

    # -- copies -------------------------------------------------------------------------------------------------------

    def _copy(self, record: LogRecord, refused: RefusedRecord, sources: Headers) -> Operation[None]:
        message = str(refused).encode()[:MESSAGE_BYTES_MAX].decode(errors="ignore")
        self._host.note(
            "record_dead_lettered",
            topic=self._topic,
            topic_partition=self._topic_partition,
            offset=record.offset,
            error_class=refused.error_class,
            problem=message,
        )
        headers = (*self._headers(record, refused), *sources)
        # The copy of a record without a value has none, either; the message names that as the problem.
        whole = Produce(self._copies, record.key, record.value or b"", (*headers, (MESSAGE_HEADER, message.encode())))
        copies = [whole]
        if record.value:
            # A user's topic may have larger records than the dead-letter topic allows. Then a copy without the value keeps the rest.
            size = str(len(record.value))
            words = f"{message}; this letter is without its value of {size} bytes, which lies where the record stood"
            said = ((MESSAGE_HEADER, words.encode()), (LEFT_OUT_HEADER, size.encode()))
            copies.append(replace(whole, value=b"", headers=(*headers, *said)))
        no_topic = yield from self._lay(copies)
        if no_topic is not None:
            self._say_refused(self._copies, no_topic)
        if refused.request_id is not None:
            receipt = Receipt.model_construct(
                request_id=refused.request_id,
                status=ReceiptStatus.REJECTED,
                namespace=refused.namespace,
                name=refused.name,
                errors=refused.problems,
                at=self._host.now,
            )
            answer = Produce(self._host.holding.receipts_topic, refused.request_id.encode(), receipt.to_json())
            refusal = yield from self._host.produce_for_good(answer)
            if refusal is not None:
                self._say_refused(answer.topic, refusal)
        if no_topic is not None:
            yield from self._try_again(record.offset, copies)
        self._close(record.offset)

    def _lay(self, copies: Sequence[Produce]) -> Operation[str | None]:
        """Produces the first copy that the topic accepts. Returns the refusal if it accepts none."""
        refusal: str | None = None
        for each in copies:
            refusal = yield from self._host.produce_for_good(each)
            if refusal is None:
                break
        return refusal

    def _try_again(self, offset: int, copies: Sequence[Produce]) -> Operation[None]:
        """Tries refused copies again, while later records go on. If room or time runs out, only the node's log has reported the record."""
        self._copying.discard(offset)
        self._refused.add(offset)
        self._wake()
        give_up = self._host.now + REFUSED_MS_MAX
        while self._host.now < give_up and not self._is_full():
            yield from self._host.sleep(REFUSED_AGAIN_MS)
            if (yield from self._lay(copies)) is None:
                return

    def _headers(self, record: LogRecord, refused: RefusedRecord) -> Headers:
        return (
            *record.headers,
            ("tidegate.error.topic", self._topic.encode()),
            ("tidegate.error.topic_id", self._topic_id.encode()),
            ("tidegate.error.partition", str(self._topic_partition).encode()),
            ("tidegate.error.offset", str(record.offset).encode()),
            ("tidegate.error.class", refused.error_class.encode()),
            ("tidegate.error.at", format_instant(self._host.now).encode()),
        )

    def _say_refused(self, topic: str, refusal: str) -> None:
        """Reports a refused copy or receipt in the log: the topic does not allow it, or it is too large."""
        self._host.note("dead_letter_refused", topic=topic, message=refusal)
