"""All that is due while nemeses are at work, and the judgement of what came of it."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException

from tests.chaos.nemeses.strike import Strike
from tests.chaos.rig.abandoned_shards import Word, hint
from tests.chaos.rig.limit_contention import Crowd
from tests.chaos.rig.proxied_cluster import ChaosCluster
from tests.chaos.rig.stop_load import StopLoad
from tests.support.checkers.faults import Fault
from tests.support.checkers.hand_over_spans import Unrest
from tests.support.checkers.messages import Delivery, Sent, judge_messages
from tests.support.checkers.runs import judge_blackout
from tests.support.checkers.stops import Stop, judge_stops
from tests.support.cluster.background import Repeatedly
from tests.support.cluster.catch_up_wait import CatchUp
from tests.support.cluster.evidence import Evidence
from tests.support.cluster.message_load import MessageBook, MessageLoad, deliveries_of
from tests.support.cluster.pipeline_load import JOIN, LANDING, REPORT, Pipeline
from tests.support.cluster.scenario import settle
from tests.support.cluster.topic_reader import ends_of, read_topic
from tests.support.cluster.until import NotInTime, now_ms, until
from tests.support.cluster.user_client import Client

SINK = "chaos.out"
SETTLE_S = 180.0
"""For the last of it on a busy machine; what has not come by then is for the judge to name."""
FIRST_S = 90.0
CATCH_UP_S = 30.0


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is due.

    Attributes:
        messages_per_s, events_per_s, stops_per_s: Of each so many a second.
        burst: So many messages at once, and so many events, as much less often: what comes together costs the nodes far less.
        feed_count: Events for one run of the counting schedule.
        expression: Of the landings and the crowd.
    """

    messages_per_s: float = 10.0
    events_per_s: float = 5.0
    stops_per_s: float = 0.5
    burst: int = 1
    feed_count: int = 20
    expression: str = "*/15 * * * * *"


@dataclass(frozen=True, slots=True)
class Collected:
    """Everything that came of a load, as it lies in evidence and on topics.

    Attributes:
        deliveries: On the sink.
        sent: What must become of each message.
        stops: Of schedules, each with when the broker got it, ms since the epoch, where it was aimed at a take-over.
        aimed_cancels: When the broker got the cancels of messages that were, by their numbers.
        unanswered: Schedules whose apply the broker has, and nobody answered.
        programs: Processes of programs.
        events: Distinct events of the feed that the broker has.
        of_unknown_fate: Messages and events that no broker acknowledged: whether they arrived nobody knows.
        failed: Records of which the client's library said so.
    """

    deliveries: Sequence[Delivery]
    sent: Sequence[Sent]
    stops: Sequence[tuple[Stop, int | None]]
    aimed_cancels: Mapping[int, int]
    unanswered: Sequence[str]
    programs: int
    events: int
    of_unknown_fate: int = 0
    failed: int = 0


class Load:
    """A pipeline, a crowd, messages, a feed and stops, until it is left.

    Attributes:
        pipeline, stops: Parts of it, for who aims and who waits.
    """

    def __init__(self, cluster: ChaosCluster, client: Client, chance: random.Random, sizes: Sizes) -> None:
        self._cluster = cluster
        self._client = client
        self._chance = chance
        self._sink = cluster.make_topic(SINK)
        self._book = MessageBook(client, self._sink)
        self._evidence = Evidence(cluster.folder / "evidence")
        work_s = dict.fromkeys((*LANDING.values(), JOIN, REPORT), 1.0)
        self.pipeline = Pipeline(client, self._evidence, sizes.expression, work_s, feed_count=sizes.feed_count)
        self._crowd = Crowd(client, self._evidence, sizes.expression)
        self.stops = StopLoad(client, self._evidence, self._book, chance, 1 / sizes.stops_per_s)
        self._parts = (
            MessageLoad(self._book, chance, 1 / sizes.messages_per_s, sizes.burst),
            Repeatedly(lambda: self._feed(sizes.burst), sizes.burst / sizes.events_per_s),
            self.stops,
        )
        self._under_way = ExitStack()
        self._catch_up = CatchUp(client, self._book, self.pipeline)

    def __enter__(self) -> Self:
        start = now_ms() + 3_000
        self.pipeline.apply(start)
        self._crowd.apply(start)
        for part in self._parts:
            self._under_way.enter_context(part)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._under_way.close()

    def _feed(self, events: int) -> None:
        for _ in range(events):
            self.pipeline.feed(self._chance)

    def until_it_runs(self) -> None:
        """Waits until the first landings have come to their reports."""

        def runs() -> bool:
            before = now_ms() - 10_000
            return bool(self.pipeline.days(before)) and self.pipeline.is_done(before)

        until(runs, "a first day is done", FIRST_S)

    def catch_up(self) -> None:
        """Waits a while until what was due some seconds ago has begun, and requests of just now are answered."""
        # Also where the broker does not answer the rig in time: it strikes all the same, and judges at the end.
        with suppress(NotInTime, KafkaException):
            topic_partitions = ends_of(self._cluster.bootstrap_servers, self._cluster.topic("requests"))
            self._catch_up.wait(topic_partitions, CATCH_UP_S)

    def settle(self) -> None:
        """Waits, once it was left, until nothing is owed or open any more."""
        settle(
            self._cluster,
            self._client,
            self.pipeline,
            self._book,
            self._sink,
            self._chance,
            beside=[self._crowd],
            patience_s=SETTLE_S,
        )

    def collect(self) -> Collected:
        """Reads the topics."""
        brokers = self._cluster.bootstrap_servers
        receipts = read_topic(brokers, self._cluster.topic("receipts"))
        return Collected(
            deliveries=deliveries_of(read_topic(brokers, self._sink)),
            sent=self._book.sent(receipts),
            stops=self.stops.stops(receipts),
            aimed_cancels=self.stops.aimed_cancels,
            unanswered=self.stops.unanswered(receipts),
            programs=len(self._evidence.runs()),
            events=self.pipeline.events,
            of_unknown_fate=self._book.of_unknown_fate + self.pipeline.events_of_unknown_fate,
            failed=self._client.failed,
        )

    def judge(
        self, collected: Collected, strikes: Sequence[Strike], words: Sequence[Word], unrests: Sequence[Unrest] = ()
    ) -> list[Fault]:
        """Judges everything; call it once it has settled.

        Args:
            collected: What came of it.
            strikes: All nemeses' faults.
            words: What nodes themselves say of shards that they gave up: for the text of a fault alone.
            unrests: When shards may have changed hands for another reason.
        """
        faults = self.pipeline.judge() + self._crowd.judge()
        runs = self._evidence.runs()
        faults += judge_stops([stop for stop, _ in collected.stops], runs)
        faults += [Fault("unanswered", f"apply of {schedule}") for schedule in collected.unanswered]
        if collected.of_unknown_fate > collected.failed:
            # Of these nothing is judged but that they are not doubled or early.
            unknown = f"{collected.of_unknown_fate} have no acknowledgement, of {collected.failed} records it was said"
            faults.append(Fault("unknown_fate", unknown))
        for strike in strikes:
            faults += judge_blackout(strike.nemesis, *strike.silence, runs) if strike.silence else []
        return faults + _judged(collected, strikes, words, unrests)

    @staticmethod
    def repeats_amid_moves(collected: Collected, strikes: Sequence[Strike]) -> int:
        """Returns how many repeats no blow itself explains, only that shares moved while the cluster came back from it: many say that hand-overs
        are not finished in time.
        """
        without = [replace(strike, unrests=()) for strike in strikes]
        return len(_judged(collected, without, [])) - len(_judged(collected, strikes, []))


def _judged(
    collected: Collected, strikes: Sequence[Strike], words: Sequence[Word], more: Sequence[Unrest] = ()
) -> list[Fault]:
    crashes = [crash for strike in strikes for crash in strike.crashes]
    wires = [wire for strike in strikes for wire in strike.wires]
    unrests = [*(unrest for strike in strikes for unrest in strike.unrests), *more]
    return judge_messages(collected.sent, collected.deliveries, crashes, wires, unrests, partial(hint, words))
