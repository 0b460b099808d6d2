"""Finds transactions that a producer left open in topics that this process reads, and reports them: notices, a gauge, lines for `/readyz`.

Readers get no record behind an open transaction (`read_committed`), on whatever node and with whatever client. So a restarted reading, a new
client or another owner cannot help: the producer, its coordinator's time-out or an operator ends the transaction (docs/operations.md).
Nodes and API processes run one each. It acts on nothing, and does not promise to see a transaction that is shorter than its patience.
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
"""For tidegate's own topics: a producer that writes requests or events in transactions needs milliseconds for one."""
USERS_PATIENCE_MS: Final = 60_000
"""For sources' topics: Kafka's Java client gives a transaction so long by default, and stream processors keep one open between two
checkpoints."""
TOLD_MAX: Final = 10
"""Transactions that `/readyz` names, of own topics and of sources' topics each; the gauge counts all."""
QUESTIONS_MAX: Final = 4
"""Append times that one round asks for: each answer costs a client and a thread that other readers of logs need too."""
UNANSWERED_MAX: Final = 6
"""Questions for one append time without an answer, before the first check counts as the begin: half a minute of a silent broker."""
SOURCES_AT_ONCE: Final = 4
"""Sources' topics that are checked concurrently."""


class Followed(NamedTuple):
    """A topic that this process reads.

    Attributes:
        id: Hex, 32 digits; ends of another topic under the name are not compared.
        is_own: The topic is tidegate's. In a source's topic a long transaction may be its producer's normal work.
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
        offset: Of its first record there: nothing from there on is read.
        since: When that record was appended, or was first seen while nobody knows; ms since the epoch.
        is_own: The topic is tidegate's.
        is_dated: `since` is the append time.
        unanswered: Questions for the append time that got no answer.
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
        """What aborts it, for an operator."""
        where = f"--topic {self.topic} --partition {self.topic_partition} --start-offset {self.offset}"
        return f"kafka-transactions.sh --bootstrap-server BROKER abort {where}"

    def text(self) -> str:
        return (
            f"topic {self.topic}, topic partition {self.topic_partition}: a transaction is open since {format_instant(self.since)}, and "
            f"nothing from offset {self.offset} on is read until its producer or an operator ends it (docs/operations.md)"
        )


@dataclass(slots=True)
class _Questions:
    """Append times that a round may still ask for."""

    left: int = field(default=QUESTIONS_MAX)


class OpenTransactions:
    """One per process, on its loop.

    Args:
        followed: The topics that this process reads now.
        is_mine: Whether this process reads a topic partition, by its number.
        topics: Asks the brokers; two questions for each topic in a round.
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
        self._silent: set[str] = set()
        """Sources' topics for which no broker answered last time."""

    @property
    def told(self) -> tuple[OpenTransaction, ...]:
        """Those that are reported now."""
        return tuple(each for _, found in sorted(self._told.items()) for _, each in sorted(found.items()))

    def reasons(self) -> list[str]:
        """Lines for `/readyz` about tidegate's own topics, the first `TOLD_MAX` of them: reasons not to count on the process."""
        return [each.text() for each in self.told if each.is_own][:TOLD_MAX]

    def waits(self) -> list[str]:
        """Lines for `/readyz` about sources' topics, the first `TOLD_MAX` of them: no reason, because the process does all it can."""
        return [each.text() for each in self.told if not each.is_own][:TOLD_MAX]

    async def run(self) -> None:
        """Runs until cancelled."""
        # Two loops: brokers that are silent about a source's topic would delay the next check of own topics.
        async with asyncio.TaskGroup() as loops:
            loops.create_task(self._repeat(self._check_own))
            loops.create_task(self._repeat(self._check_sources))

    async def _repeat(self, check: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            try:
                await check()
            except Exception as bug:  # noqa: BLE001 - a bug in what reports must not end what it reports on
                self._notices("task_failed", task="open_transactions", exc_info=bug)

    async def look(self) -> None:
        """One round of each loop, own topics first."""
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
            # Topics that were silent last time come last: they would hold all slots until their time-outs.
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
        """Returns whether the brokers answered; where they do not, what is known stays."""
        # The end first: with a stable end that is asked for later and lies before it a transaction is open, however fast the log grows.
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
                # Of the same run of silence: transactions that follow each other would else stay reported while nobody knows their ages.
                unanswered = known.unanswered if known is not None and number in told else 0
                known = OpenTransaction(topic.name, number, offset, now, topic.is_own, unanswered=unanswered)
            # Most transactions are over before they are nearly old enough. Where one was reported the next one may have hung as long: its age
            # is asked for at once, and until it is known the report stays. Else health would say that all is well while nothing is read.
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
        """Asks for the append time, unless it is known, too often asked for, or this round has asked enough."""
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
            # Also where another process reads the topic partition by now: that one reports what is still open.
            self._notices("transaction_over", topic=topic, topic_partition=number, offset=before[number].offset)
