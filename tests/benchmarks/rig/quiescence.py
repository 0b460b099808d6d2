"""When all that was sent is dealt with: stored positions behind the logs' ends, and nothing left in any inbox.

Read from the store by the benchmark itself; nothing of it counts as the nodes' units.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.support.cluster.store_view import StoreView
from tests.support.cluster.topic_reader import each_of_topic
from tests.support.cluster.until import until
from tidegate_core.language.requests.receipts import ReceiptStatus
from tidegate_core.rows import keys
from tidegate_core.rows.store_operations import RangeRead
from tidegate_kafka.admin.topic_metadata import hex_id
from tidegate_ports.bus import Record
from tidegate_ports.store import Store

ASK_TIMEOUT_S = 10.0
LOOK_EVERY_S = 0.02
PAGE_ROWS = 1_000
INBOX = ("I#", "I#~")
RECEIPTS = "tidegate.receipts"
DEAD_LETTERS = ("tidegate.requests.dlq", "tidegate.events.dlq")


class Settled:
    """Looks at one cluster.

    Args:
        bootstrap_servers: Of its broker.
        store: Its items.
    """

    def __init__(self, bootstrap_servers: str, store: Store) -> None:
        self._bootstrap_servers = bootstrap_servers
        self._store = store
        self._map = StoreView(store).map
        self._admin = AdminClient({"bootstrap.servers": bootstrap_servers, "log_level": 0})
        self._consumer = Consumer({"bootstrap.servers": bootstrap_servers, "group.id": "bench.ends", "log_level": 0})

    def close(self) -> None:
        self._consumer.close()

    def until_read(self, topic: str, patience_s: float) -> None:
        """Waits until the nodes' stored positions are behind all that the topic has now."""
        described = self._described(topic)
        identity = hex_id(described.topic_id)
        wanted = {
            keys.topic_position(self._map.cluster_id, identity, number): end
            for number, end in self._ends(topic).items()
            if end
        }

        def read() -> bool:
            found = self._store.get(list(wanted))
            return all(key in found and _next(found[key]) >= end for key, end in wanted.items())

        until(read, f"{topic} is read and applied", patience_s, LOOK_EVERY_S)

    def until_inboxes_are_empty(self, patience_s: float, shards: Iterable[int] | None = None) -> None:
        """Waits until none of these shards has a row in its inbox; all shards where none are named."""
        left = set(range(self._map.shards) if shards is None else shards)

        def empty() -> bool:
            left.difference_update([shard for shard in left if not self._has_inbox(shard)])
            return not left

        until(empty, "all inboxes are empty", patience_s, LOOK_EVERY_S)

    def assert_nothing_was_refused(self) -> None:
        """A workload whose requests or events were refused has measured how fast nothing is done."""
        refused = {topic: sum(self._ends(topic).values()) for topic in DEAD_LETTERS}
        assert not any(refused.values()), f"dead letters: {refused}"
        # What an owner refuses once it has taken the request has a receipt only.
        rejected = [record.value for record in each_of_topic(self._bootstrap_servers, RECEIPTS) if _is_refusal(record)]
        assert not rejected, f"{len(rejected)} requests rejected, such as {rejected[0]!r}"

    def rows(self, low_and_high: tuple[str, str]) -> int:
        """Returns how many items the shards have in a range of sort keys. Reads all of them: for a few thousand."""
        return sum(self._rows_of(shard, *low_and_high) for shard in range(self._map.shards))

    def _rows_of(self, shard: int, low: str, high: str) -> int:
        count, after = 0, None
        while True:
            page = self._store.query(RangeRead(keys.shard_pk(shard), low, high, limit=PAGE_ROWS, after=after))
            count += len(page.items)
            after = page.next_after
            if after is None:
                return count

    def _has_inbox(self, shard: int) -> bool:
        return bool(self._store.query(RangeRead(keys.shard_pk(shard), *INBOX, limit=1)).items)

    def _described(self, topic: str) -> Any:
        return self._admin.describe_topics(TopicCollection([topic]))[topic].result(ASK_TIMEOUT_S)

    def _ends(self, topic: str) -> dict[int, int]:
        """Returns the end of the log of each topic partition."""
        numbers = range(len(self._described(topic).partitions))
        return {
            number: int(self._consumer.get_watermark_offsets(TopicPartition(topic, number), ASK_TIMEOUT_S)[1])
            for number in numbers
        }


def _is_refusal(receipt: Record) -> bool:
    value = json.loads(receipt.value or b"{}")
    return bool(value.get("status") == ReceiptStatus.REJECTED)


def _next(item: object) -> int:
    assert isinstance(item, dict)
    offset = item["next"]
    assert isinstance(offset, int)
    return offset
