"""A user's requests: sent to any topic partition, repeated under the same id until the receipt is seen."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.users.absence_schedules import nobody_until
from tests.simulation.world import cluster as world
from tests.simulation.world.broker import Outgoing
from tests.simulation.world.cluster import Cluster
from tests.simulation.world.observations import ReceiptSeen
from tidegate_api.requests.shard_routing import shard_of_request
from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.ingest.inbox_row import inbox_row, may_overtake
from tidegate_core.language.formats.parsing import parse_request
from tidegate_core.language.requests.requests import Request
from tidegate_core.language.values.log_position import Position
from tidegate_core.language.values.problems import InvalidInput, RefusedRecord
from tidegate_core.rows.effects import NotProduced, Produced
from tidegate_core.writes.cursor_moves import inbox_put

PATIENCE_MS = 1_500
REPEAT_MS = 7_000
SENT_TWICE = 0.08
SEE_MS = 10
FIRST_LOOK_MS = 2_000
"""As the API's (`FIRST_POLL_S`)."""


@dataclass(slots=True, eq=False)
class Asked:
    """One request, its repeats, and its answer.

    Attributes:
        sent_at: When its first record was handed to the producer.
        sends: How often that was done.
        appended: Append times of its records.
        receipt: The first one seen on the topic.
        handed_over: When the store had taken the row that the API wrote in front of an open transaction, and the row's shard; the first time.
    """

    document: Mapping[str, Any]
    sent_at: int
    sends: int = 0
    appended: list[int] = field(default_factory=list)
    receipt: ReceiptSeen | None = None
    handed_over: tuple[int, int] | None = None

    @property
    def id(self) -> str:
        return str(self.document["id"])

    @property
    def acked_at(self) -> int:
        assert self.receipt is not None
        return self.receipt.at

    @property
    def status(self) -> str:
        assert self.receipt is not None
        return self.receipt.status


class Requests:
    """All users of the world.

    Attributes:
        asked: By request id.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.asked: dict[str, Asked] = {}
        self._cluster = cluster
        self._waiting: dict[str, Callable[[Asked], None]] = {}
        self._numbers = 0

    def ask(self, document: dict[str, Any], answered: Callable[[Asked], None]) -> Asked:
        """Sends a request under a new id and calls back once its receipt is seen."""
        self._numbers += 1
        request = {"id": f"q{self._numbers}", **document}
        asked = Asked(request, self._cluster.timeline.now)
        self.asked[asked.id] = asked
        self._waiting[asked.id] = answered
        self._cluster.trace.note("user", "asks", json.dumps(request))
        self._send(asked)
        if self._cluster.timeline.happens(SENT_TWICE):
            self._cluster.trace.counted("request_twice", str(request["type"]))
            self._cluster.timeline.after(self._cluster.timeline.between(0, 3_000), lambda: self._send(asked))
        return asked

    def unanswered(self) -> list[str]:
        return sorted(self._waiting)

    def _send(self, asked: Asked) -> None:
        """Only the latest send is repeated: with each of them repeated for itself, an outage of the broker ends in a storm."""
        asked.sends += 1
        number = asked.sends
        value = json.dumps(asked.document).encode()
        outgoing = Outgoing(world.REQUESTS, None, value, (), None, PATIENCE_MS, lambda: True)

        def repeat() -> None:
            if asked.sends == number:
                self._send_if_unanswered(asked)

        def done(result: object) -> None:
            if isinstance(result, NotProduced) and asked.receipt is None:
                self._cluster.timeline.after(500, repeat)
            if isinstance(result, Produced) and (request := _understood(value)) is not None and may_overtake(request):
                topic_id = self._cluster.broker.topics[world.REQUESTS].id
                self._cluster.timeline.after(FIRST_LOOK_MS, lambda: self._hand_over(asked, request, result, topic_id))

        self._cluster.broker.produce(outgoing, done)
        self._cluster.timeline.after(REPEAT_MS, repeat)

    def _hand_over(self, asked: Asked, request: Request, place: Produced, topic_id: str) -> None:
        """As the API does for a stop whose record stands behind an open transaction: it writes the row to the shard and pokes the owner.

        If the topic was recreated since, the offset is another record's, and the API hands nothing over.
        """
        broker, number, offset, at = self._cluster.broker, place.topic_partition, place.offset, place.appended_at
        assert number is not None
        assert offset is not None
        assert at is not None
        if asked.receipt is not None or broker.topics[world.REQUESTS].id != topic_id:
            return
        if broker.stable_end(world.REQUESTS, number) > offset:
            return  # Nodes can read the record: it has its turn in the log.
        position = Position(at, topic_id, number, offset)
        try:
            shard = shard_of_request(request, asked.id, self._cluster.swarm.shards)
        except InvalidInput:
            return  # Of a run of no shard: the API sends none.
        self._cluster.trace.counted("handed_over", str(request.type))

        def written(left: Sequence[object] | None) -> None:
            if left is None or left:
                self._cluster.timeline.after(FIRST_LOOK_MS, lambda: self._hand_over(asked, request, place, topic_id))
            else:
                asked.handed_over = asked.handed_over or (self._cluster.timeline.now, shard)
                self._cluster.poke(shard, None)

        self._cluster.store.write([inbox_put(shard, inbox_row(request, position))], written, "api")

    def _send_if_unanswered(self, asked: Asked) -> None:
        """Who was not answered asks again; for hours nobody asks every few seconds."""
        if asked.receipt is not None:
            return
        until = nobody_until(self._cluster.swarm, self._cluster.timeline.now)
        if until is None:
            self._send(asked)
        else:
            self._cluster.timeline.after(until - self._cluster.timeline.now, lambda: self._send_if_unanswered(asked))

    # -- what the topics say ------------------------------------------------------------------------------------------

    def request_appended(self, topic_partition: int, record: LogRecord) -> None:
        document = json.loads(record.value or b"{}")
        asked = self.asked.get(str(document.get("id")))
        if asked is not None:
            asked.appended.append(record.append_time)

    def receipt_appended(self, topic_partition: int, record: LogRecord) -> None:
        self._cluster.record.receipt_appended(topic_partition, record)
        request_id = (record.key or b"").decode()
        asked = self.asked.get(request_id)
        if asked is None or asked.receipt is not None:
            return
        asked.receipt = self._cluster.record.receipts[request_id][0]
        self._cluster.trace.note("user", "sees", (record.value or b"").decode())
        answered = self._waiting.pop(request_id)
        self._cluster.timeline.after(self._cluster.timeline.around(SEE_MS), lambda: answered(asked))


def _understood(value: bytes) -> Request | None:
    """The API refuses what it cannot parse, and produces nothing of it."""
    try:
        return parse_request(value)
    except RefusedRecord:
        return None
