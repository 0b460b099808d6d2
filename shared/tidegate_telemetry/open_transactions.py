"""Finds open transactions in the topics that this process reads, and reports them: log events, a gauge, lines for
`/readyz`.

No reader gets a record after an open transaction (`read_committed`), on any node and with any client. So a restarted
reading, a new client or another owner cannot help: the producer, its coordinator's time-out or an operator ends the
transaction (docs/operations.md). Nodes and API processes run one instance each. It only reports, and does not promise
to see a transaction shorter than its patience.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.effects import EndOffsets
from tidegate_ports.bus import Notices, RecordFinder, Topics
from tidegate_ports.clock import Clock
from tidegate_telemetry.metrics import Metrics

LOOK_EVERY_S: Final = 5.0
OWN_PATIENCE_MS: Final = 10_000
"""Patience for tidegate's own topics: a producer that writes requests or events in transactions needs milliseconds for
one."""
USERS_PATIENCE_MS: Final = 60_000
"""Patience for sources' topics: the default transaction time-out of Kafka's Java client, and stream processors keep a
transaction open between two checkpoints."""
TOLD_MAX: Final = 10
"""Most transactions that `/readyz` names, for own topics and for sources' topics each; the gauge counts all."""
QUESTIONS_MAX: Final = 4
"""Most append times queried in one round: each query needs a client and a thread that other readers of logs need
too."""
UNANSWERED_MAX: Final = 6
"""Unanswered queries for one append time after which the first check counts as the begin: half a minute of a silent
broker."""
SOURCES_AT_ONCE: Final = 4
"""Sources' topics that are checked concurrently."""


class Followed(NamedTuple):
    """A topic that this process reads.

    Attributes:
        name: Name of the topic.
        id: Hex, 32 digits; ends of another topic of the same name are not compared.
        is_own: Whether the topic is tidegate's. In a source's topic a long transaction may be normal.
    """

    name: str
    id: str
    is_own: bool

    @property
    def patience_ms(self) -> int:
        """Age from which an open transaction is reported."""
        return OWN_PATIENCE_MS if self.is_own else USERS_PATIENCE_MS


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """The oldest open transaction of a topic partition.

    Attributes:
        topic: Topic of the transaction.
        topic_partition: Number of the topic partition.
        offset: Offset of its first record there; nothing from there on is read.
        since: Append time of that record; while it is unknown, the time of the first check. Ms since the epoch.
        is_own: Whether the topic is tidegate's.
        is_dated: Whether `since` is the append time.
        unanswered: Queries for the append time that got no answer.
    """

    topic: str
    topic_partition: int
    offset: int
    since: int
    is_own: bool
    is_dated: bool = False
    unanswered: int = 0

    @property
    def command(self) -> str:
        """Command with which an operator aborts it."""
        where = f"--topic {self.topic} --partition {self.topic_partition} --start-offset {self.offset}"
        return f"kafka-transactions.sh --bootstrap-server BROKER abort {where}"

    def text(self) -> str:
        return (
            f"topic {self.topic}, topic partition {self.topic_partition}: a transaction is open since {format_instant(self.since)}, and "
            f"nothing from offset {self.offset} on is read until its producer or an operator ends it (docs/operations.md)"
        )


@dataclass(slots=True)
class _Questions:
    """Number of append times that a round may still query."""

    left: int = field(default=QUESTIONS_MAX)


class OpenTransactions:
    """Detector of one process, on its loop.

    Args:
        followed: Returns the topics that this process reads now.
        is_mine: Whether this process reads a topic partition, by its number.
        topics: Port that queries the brokers, twice for each topic in a round.
        finder: Port that finds a record's append time.
        clock: Wall clock.
        metrics: Receives the gauge.
        notices: Receives log events.
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
        self._silent: set[str] = set()
        """Sources' topics without an answer in the last round."""

    @property
    def told(self) -> tuple[OpenTransaction, ...]:
        """Transactions that are reported now."""
        return tuple(each for _, found in sorted(self._told.items()) for _, each in sorted(found.items()))

    def reasons(self) -> list[str]:
        """Lines for `/readyz` about tidegate's own topics, the first `TOLD_MAX`: reasons why the process is not
        ready.
        """
        return [each.text() for each in self.told if each.is_own][:TOLD_MAX]

    def waits(self) -> list[str]:
        """Lines for `/readyz` about sources' topics, the first `TOLD_MAX`: no reason for unreadiness, because the
        process works as it should.
        """
        return [each.text() for each in self.told if not each.is_own][:TOLD_MAX]

    async def run(self) -> None:
        """Runs until cancelled."""
        # Two loops, because brokers that are silent about a source's topic would delay the next check of own topics.
        async with asyncio.TaskGroup() as loops:
            loops.create_task(self._repeat(self._check_own))
            loops.create_task(self._repeat(self._check_sources))

    async def _repeat(self, check: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await check()
            except Exception as bug:  # noqa: BLE001 - a bug of this detector must not end the process
                self._notices("task_failed", task="open_transactions", exc_info=bug)

    async def look(self) -> None:
        """Runs one round of each loop, own topics first."""
        await self._check_own()
        await self._check_sources()

    async def _check_own(self) -> None:
        questions = _Questions()
        async with asyncio.TaskGroup() as checks:
            for topic in self._current():
                if topic.is_own:
                    checks.create_task(self._check(topic, questions))

    async def _check_sources(self) -> None:
        questions, slots = _Questions(), asyncio.Semaphore(SOURCES_AT_ONCE)

        async def check(topic: Followed) -> None:
            async with slots:
                answered = await self._check(topic, questions)
            (self._silent.discard if answered else self._silent.add)(topic.name)

        sources = [topic for topic in self._current() if not topic.is_own]
        self._silent &= {topic.name for topic in sources}
        async with asyncio.TaskGroup() as checks:
            # Topics that were silent last time come last; otherwise they would hold all slots until their time-outs.
            for topic in sorted(sources, key=lambda each: each.name in self._silent):
                checks.create_task(check(topic))

    def _current(self) -> list[Followed]:
        """Returns the topics that are read now, each once, and forgets all others."""
        followed = {each.name: each for each in self._followed()}
        for name in self._told.keys() - followed.keys():
            self._report(name, {})
        self._seen = {name: found for name, found in self._seen.items() if name in followed}
        return list(followed.values())

    async def _check(self, topic: Followed, questions: _Questions) -> bool:
        """Returns whether the brokers answered; without an answer the known state stays."""
        # The end is queried first. If a stable end queried later is lower, a transaction is open, however fast the log
        # grows.
        ends = await self._topics.end_offsets(topic.name)
        if not isinstance(ends, EndOffsets):
            return False
        stable = await self._topics.stable_ends(topic.name)
        if not isinstance(stable, EndOffsets):
            return False
        before, told = self._seen.get(topic.name, {}), self._told.get(topic.name, {})
        now = self._clock.now_ms()
        seen: dict[int, OpenTransaction] = {}
        reported: dict[int, OpenTransaction] = {}
        for place, offset in stable.offsets.items():
            its_id, _, text = place.partition("/")
            number = int(text)
            if its_id != topic.id or not self._is_mine(number) or offset >= ends.offsets.get(place, 0):
                continue
            known = before.get(number)
            if known is None or known.offset != offset:
                # Keep the count of unanswered queries; otherwise a series of short transactions would stay reported
                # while their ages are unknown.
                unanswered = known.unanswered if known is not None and number in told else 0
                known = OpenTransaction(topic.name, number, offset, now, topic.is_own, unanswered=unanswered)
            # Most transactions end long before this age. Where one was reported, the next may have been open as long:
            # its age is queried at once, and until it is known the report stays. Otherwise health would report no
            # problem while nothing is read.
            if number in told or now - known.since >= topic.patience_ms - LOOK_EVERY_S * 1000:
                known = await self._dated(known, questions)
            seen[number] = known
            is_unknown = not known.is_dated and known.unanswered < UNANSWERED_MAX
            if now - known.since >= topic.patience_ms or (number in told and is_unknown):
                reported[number] = known
        self._seen[topic.name] = seen
        self._report(topic.name, reported)
        return True

    async def _dated(self, known: OpenTransaction, questions: _Questions) -> OpenTransaction:
        """Queries the append time, unless it is known, was queried too often, or this round's queries are used up."""
        if known.is_dated or known.unanswered >= UNANSWERED_MAX or not questions.left:
            return known
        questions.left -= 1
        appended = await self._finder.appended_at(known.topic, known.topic_partition, known.offset)
        if appended is None:
            return replace(known, unanswered=known.unanswered + 1)
        return replace(known, since=min(known.since, appended), is_dated=True, unanswered=0)

    def _report(self, topic: str, told: dict[int, OpenTransaction]) -> None:
        before = self._told.pop(topic, {})
        if told:
            self._told[topic] = told
        self._metrics.set("tidegate_open_transactions", len(told), topic=topic)
        for number, each in sorted(told.items()):
            if number not in before or before[number].offset != each.offset:
                fields = {"topic": topic, "topic_partition": number, "offset": each.offset, "since": each.since}
                if each.is_own:
                    self._notices("transaction_open", **fields, command=each.command, message=each.text())
                else:
                    self._notices("source_transaction_open", **fields, command=each.command, message=each.text())
        for number in sorted(before.keys() - told.keys()):
            # Also if another process reads the topic partition now: that process reports the transaction if it stays open.
            self._notices("transaction_over", topic=topic, topic_partition=number, offset=before[number].offset)
