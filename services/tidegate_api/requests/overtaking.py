"""Hands stops to their shards when an open Kafka transaction keeps nodes from reading their records.

A node reads no record after an open transaction, so a stop could wait up to 15 minutes. The record of the stop is on its topic, and its
position is known from the broker's acknowledgement. So the API writes the inbox row that the ingest would write, and wakes the owner. The
ingest writes the row again when it reads the record. This is a repeat of the same request id, which the owner answers with the stored
receipt.

`request_submission.py` calls it. It writes only inbox rows. It does not promise an answer: the owner answers.
See `docs/internals/decisions/0038-an-open-transaction-stops-no-stop.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidegate_api.bus_clients import Bus
from tidegate_api.thread_pools import Pools
from tidegate_api.wakeup_sender import WakeUpSender
from tidegate_core.ingest.inbox_row import inbox_row, may_overtake
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.requests import Request
from tidegate_core.language.values.log_position import Position
from tidegate_core.rows import keys
from tidegate_core.rows.effects import EndOffsets, Produced
from tidegate_core.rows.keys import MAP_KEY
from tidegate_core.rows.store_operations import Put
from tidegate_core.writes.cursor_moves import inbox_put
from tidegate_core.writes.fencing import whole
from tidegate_core.writes.partition_map import map_of
from tidegate_ports.bus import Notices
from tidegate_ports.store import Store, StoreUnavailable


class Sent(NamedTuple):
    """A request whose record the broker has acknowledged.

    Attributes:
        value: Value of the record.
        shard: Shard whose owner applies the request.
        topic_partition, offset: Place of the record.
        appended_at: Append time of the broker, ms since the epoch.
    """

    request_id: str
    value: bytes
    shard: int
    topic_partition: int
    offset: int
    appended_at: int


def sent(request: Request, request_id: str, value: bytes, shard: int, produced: Produced) -> Sent | None:
    """Returns the request if it may be handed over; None if it may not overtake, or if its place on the topic is unknown."""
    place = (produced.topic_partition, produced.offset, produced.appended_at)
    if not may_overtake(request):
        return None
    match place:
        case (int(topic_partition), int(offset), int(appended_at)) if offset >= 0:
            return Sent(request_id, value, shard, topic_partition, offset, appended_at)
        case _:
            return None


class Overtaking:
    """Hands over stops; one instance per process."""

    def __init__(
        self, bus: Bus, store: Store, pools: Pools, wake_ups: WakeUpSender, requests_topic: str, notices: Notices
    ) -> None:
        self._bus = bus
        self._store = store
        self._pools = pools
        self._wake_ups = wake_ups
        self._topic = requests_topic
        self._notices = notices

    async def hand_over(self, requests: Sequence[Sent]) -> bool:
        """Writes inbox rows of the requests after an open transaction. Requests that nodes can read keep their order in the log.

        Returns:
            False if broker or store did not answer. Then only some rows, or none, may have been written: call it again.
        """
        stable = await self._bus.topics.stable_ends(self._topic)
        if not isinstance(stable, EndOffsets):
            return False
        try:
            behind, left = await self._pools.read(lambda: self._written(requests, stable.offsets))
        except StoreUnavailable:
            return False
        for each in behind:
            self._notices(
                "stop_handed_over", request_id=each.request_id, shard=each.shard, topic_partition=each.topic_partition
            )
        for shard in sorted({each.shard for each in behind}):
            self._wake_ups.wake_for_inbox(shard)
        return not left

    def _written(self, requests: Sequence[Sent], stable: Mapping[str, int]) -> tuple[list[Sent], bool]:
        """Returns the requests whose rows were written, and whether the store left some unwritten. Blocking."""
        item = self._store.get([MAP_KEY]).get(MAP_KEY)
        if item is None:
            return [], False
        cluster = map_of(item)
        # A recreated topic has another id, so its end is unknown here: the same offset is another record.
        behind = [
            each
            for each in requests
            if each.offset >= stable.get(f"{cluster.topic_id}/{each.topic_partition}", each.offset + 1)
        ]
        if not behind:
            return [], False
        numbers = sorted({each.topic_partition for each in behind})
        places = {number: keys.topic_position(cluster.cluster_id, cluster.topic_id, number) for number in numbers}
        items = self._store.get(list(places.values()))
        # The ingest makes append times monotone. If a broker's clock stepped back, the stop must not be older than records that were read
        # before it.
        latest = {number: whole(items[key], "last_append_time") for number, key in places.items() if key in items}
        rows: list[Put] = []
        for each in behind:
            at = max(each.appended_at, latest.get(each.topic_partition, 0))
            position = Position(at, cluster.topic_id, each.topic_partition, each.offset)
            rows.append(inbox_put(each.shard, inbox_row(parse_request(each.value), position)))
        return behind, bool(self._store.write(rows))
