"""Finds transactions that a producer left open in topics that this process reads, and reports them: notices, a gauge, a line for `/readyz`.

Readers get no record behind an open transaction (`read_committed`), on whatever node and with whatever client. So a restarted reading, a new
client or another owner cannot help: the producer, the broker's time-out or an operator ends the transaction (docs/operations.md).
Nodes and API processes run one each. It acts on nothing, and does not promise to see a transaction that is shorter than its patience.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from tidegate_core.effects import EndOffsets
from tidegate_core.model.instants import format_instant
from tidegate_ports.bus import Notices, RecordFinder, Topics
from tidegate_ports.clock import Clock
from tidegate_telemetry.metrics import Metrics

LOOK_EVERY_S: Final = 5.0
OWN_PATIENCE_MS: Final = 10_000
"""For tidegate's own topics: a producer that writes requests or events in transactions needs milliseconds for one."""
USERS_PATIENCE_MS: Final = 60_000
"""For sources' topics: Kafka's Java client gives a transaction so long by default, and stream processors keep one open between two
checkpoints."""
TOLD_MAX: Final = 10
"""Transactions that `/readyz` names; the gauge counts all."""


class Followed(NamedTuple):
    """A topic that this process reads.

    Attributes:
        id: Hex, 32 digits; ends of another topic under the name are not compared.
        patience_ms: Age from which an open transaction is reported.
    """

    name: str
    id: str
    patience_ms: int


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """The oldest open transaction of a topic partition.

    Attributes:
        offset: Of its first record there: nothing from there on is read.
        since: When that record was appended, or was first seen where nobody knows; ms since the epoch.
        looks: How often it was seen.
    """

    topic: str
    topic_partition: int
    offset: int
    since: int
    looks: int = 1

    @property
    def command(self) -> str:
        """What aborts it, for an operator."""
        where = f"--topic {self.topic} --partition {self.topic_partition} --start-offset {self.offset}"
        return f"kafka-transactions.sh --bootstrap-server BROKER abort {where}"

    def text(self) -> str:
        return (
            f"topic {self.topic}, topic partition {self.topic_partition}: a transaction is open since {format_instant(self.since)}, and "
            f"nothing from offset {self.offset} on is read until its producer or an operator ends it (docs/operations.md)"
        )


class OpenTransactions:
    """One per process, on its loop.

    Args:
        followed: The topics that this process reads now.
        is_mine: Whether this process reads a topic partition, by its number.
        topics: Asks the brokers; two questions for each topic in a look.
        finder: Knows when a record was appended.
    """

    def __init__(
        self,
        followed: Callable[[], Sequence[Followed]],
        is_mine: Callable[[int], bool],
        topics: Topics,
        finder: RecordFinder,
        clock: Clock,
        metrics: Metrics,
        notices: Notices,
    ) -> None:
        self._followed = followed
        self._is_mine = is_mine
        self._topics = topics
        self._finder = finder
        self._clock = clock
        self._metrics = metrics
        self._notices = notices
        self._seen: dict[str, dict[int, OpenTransaction]] = {}
        self._told: dict[str, dict[int, OpenTransaction]] = {}

    @property
    def told(self) -> tuple[OpenTransaction, ...]:
        """Those that are reported now."""
        return tuple(each for _, found in sorted(self._told.items()) for _, each in sorted(found.items()))

    def reasons(self) -> list[str]:
        """Lines for `/readyz`, the first `TOLD_MAX` of them."""
        return [each.text() for each in self.told[:TOLD_MAX]]

    async def run(self) -> None:
        """Runs until cancelled."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await self.look()
            except Exception as bug:  # noqa: BLE001 - a bug in what reports must not end what it reports on
                self._notices("task_failed", task="open_transactions", exc_info=bug)

    async def look(self) -> None:
        """One round."""
        followed = {each.name: each for each in self._followed()}
        for name in self._told.keys() - followed.keys():
            self._report(name, {})
        self._seen = {name: found for name, found in self._seen.items() if name in followed}
        for topic in followed.values():
            await self._look_at(topic)

    async def _look_at(self, topic: Followed) -> None:
        """Keeps what is known where the brokers do not answer."""
        # The end first: with a stable end that is asked for later and lies before it a transaction is open, however fast the log grows.
        ends = await self._topics.end_offsets(topic.name)
        if not isinstance(ends, EndOffsets):
            return
        stable = await self._topics.stable_ends(topic.name)
        if not isinstance(stable, EndOffsets):
            return
        before, now = self._seen.get(topic.name, {}), self._clock.now_ms()
        seen: dict[int, OpenTransaction] = {}
        for place, offset in stable.offsets.items():
            its_id, _, text = place.partition("/")
            number = int(text)
            if its_id != topic.id or not self._is_mine(number) or offset >= ends.offsets.get(place, 0):
                continue
            known = before.get(number)
            if known is not None and known.offset == offset:
                seen[number] = await self._known_better(known)
            else:
                seen[number] = OpenTransaction(topic.name, number, offset, now)
        self._seen[topic.name] = seen
        self._report(topic.name, {n: each for n, each in seen.items() if now - each.since >= topic.patience_ms})

    async def _known_better(self, known: OpenTransaction) -> OpenTransaction:
        """At its second look the append time of its first record is asked for: most transactions are over by then."""
        if known.looks > 1:
            return known
        appended = await self._finder.appended_at(known.topic, known.topic_partition, known.offset)
        since = known.since if appended is None else min(known.since, appended)
        return replace(known, since=since, looks=known.looks + 1)

    def _report(self, topic: str, told: dict[int, OpenTransaction]) -> None:
        before = self._told.pop(topic, {})
        if told:
            self._told[topic] = told
        self._metrics.set("tidegate_open_transactions", len(told), topic=topic)
        for number, each in sorted(told.items()):
            if number not in before or before[number].offset != each.offset:
                self._notices(
                    "transaction_open",
                    topic=topic,
                    topic_partition=number,
                    offset=each.offset,
                    since=each.since,
                    command=each.command,
                    message=each.text(),
                )
        for number in sorted(before.keys() - told.keys()):
            # Also where another process reads the topic partition by now: that one reports what is still open.
            self._notices("transaction_over", topic=topic, topic_partition=number, offset=before[number].offset)
