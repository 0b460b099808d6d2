"""Records that cannot be processed: copied with their original bytes, then passed (DESIGN 7)."""

from __future__ import annotations

from tidegate_core.decisions.host import Host
from tidegate_core.decisions.inputs import LogRecord
from tidegate_core.decisions.operations import Operation
from tidegate_core.effects import NotProduced, Produce, Produced
from tidegate_core.model.instants import format_instant
from tidegate_core.model.problems import RefusedRecord
from tidegate_core.model.receipts import Receipt, ReceiptStatus

MESSAGE_BYTES_MAX = 1_024
RETRY_MS = 500


def dead_letter(
    host: Host, dead_letter_topic: str, topic: str, topic_partition: int, record: LogRecord, refused: RefusedRecord
) -> Operation[None]:
    """Copies the record to the dead-letter topic, and answers its sender where its id can be read.

    Comes back only when the copy is acknowledged, because the position passes the record right after: it may
    repeat (its origin headers are its id), it is never lost.
    """
    headers = (
        *record.headers,
        ("tidegate.error.topic", topic.encode()),
        ("tidegate.error.partition", str(topic_partition).encode()),
        ("tidegate.error.offset", str(record.offset).encode()),
        ("tidegate.error.class", refused.error_class.encode()),
        ("tidegate.error.message", str(refused).encode()[:MESSAGE_BYTES_MAX]),
        ("tidegate.error.at", format_instant(host.now).encode()),
    )
    host.note(
        "record_dead_lettered",
        topic=topic,
        topic_partition=topic_partition,
        offset=record.offset,
        error_class=refused.error_class,
        problem=str(refused)[:MESSAGE_BYTES_MAX],
    )
    yield from _until_produced(host, Produce(dead_letter_topic, record.key, record.value or b"", headers))
    if refused.request_id is not None:
        receipt = Receipt.model_construct(
            request_id=refused.request_id,
            status=ReceiptStatus.REJECTED,
            namespace=refused.namespace,
            name=refused.name,
            errors=refused.problems,
            at=host.now,
        )
        answer = Produce(host.holding.receipts_topic, refused.request_id.encode(), receipt.to_json())
        yield from _until_produced(host, answer)


def _until_produced(host: Host, produce: Produce) -> Operation[None]:
    while True:
        answer = yield produce
        if isinstance(answer, Produced):
            return
        assert isinstance(answer, NotProduced)
        if answer.kind == "refused":
            # Larger than even the dead-letter topic takes, or not allowed: said in the log, since no topic takes it.
            host.note("dead_letter_refused", topic=produce.topic, message=answer.message)
            return
        yield from host.sleep(RETRY_MS)
