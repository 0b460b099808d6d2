"""The broker is away, then the store is, while all sorts of work are due: nothing fires unguarded, is lost or doubled.

The broker's process ends. The store's is frozen: DynamoDB Local answers transactions before it commits them, so that ending it
takes back what it has answered, which DynamoDB never does. What waits for its answers then is carried out at its return.

Landings by cron, joins on their data, reports behind those, a feed of events that is counted, messages (I1-I3, I5, I8); what
was due is gone soon after the return.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.support.checkers.faults import Fault, report
from tests.support.checkers.lateness import histogram
from tests.support.checkers.messages import Crash, Delivery, judge_messages, repeats_of
from tests.support.checkers.runs import judge_blackout
from tests.support.cluster.background import Repeatedly
from tests.support.cluster.cluster import SESSION_S, SHARDS, Cluster
from tests.support.cluster.cpu_starvation import Starvation
from tests.support.cluster.evidence import Evidence, ProgramRun
from tests.support.cluster.machine_stalls import Standstills
from tests.support.cluster.measurements import show
from tests.support.cluster.message_load import MessageBook, MessageLoad, deliveries_of
from tests.support.cluster.pipeline_load import JOIN, Pipeline
from tests.support.cluster.scenario import settle
from tests.support.cluster.topic_reader import read_topic
from tests.support.cluster.until import now_ms, until
from tests.support.cluster.user_client import Client
from tests.support.machine_speed import slowness
from tests.support.tier import at_night
from tidegate_core.language.values.instants import parse_instant
from tidegate_launchers.local.run_folder import RunFolder

AWAY_S = float(at_night(60, else_=20))
"""Longer than the time between two landings and the time for which membership still holds: some are due that nobody may start."""
BACKLOG_GOAL_S = 10.0
"""Of what schedules owe after a return, on a machine that has nothing else to do; reported. The group alone takes a session."""
BACKLOG_S_MAX = {"landings": 20.0, "joins": 30.0, "messages": 40.0}
"""Asserted, times what the machine stretched it by: other files' stacks work beside this one, on two cores. Joins begin once
landings have ended; more than 600 messages have piled up, and most pass through the inbox of another shard."""
BACKLOG_PATIENCE_S = 150.0
GUARD_MS = int(SESSION_S * 500)
"""Half a session: so long a membership that was proven holds."""
SUBMIT_MS = 2_000
"""From a look at the guard to the folder of what is submitted; times how slow the machine is."""
EXPRESSION = "*/12 * * * * *"
DUE_MIN = {"landings": at_night(10, else_=2), "joins": at_night(5, else_=1), "messages": at_night(100, else_=25)}
"""So much has to be due in each outage, or it shows nothing."""
FEED_EVERY_S = 0.7
SEED = 3
HANGS_S = 1_200


@dataclass(frozen=True, slots=True)
class Outage:
    """A brick's absence, in ms since the epoch."""

    name: str
    gone_at: int
    back_at: int

    def covers(self, moment: int) -> bool:
        return self.gone_at <= moment < self.back_at


@dataclass(frozen=True, slots=True)
class Done:
    """Work of one kind that was due during an outage.

    Attributes:
        last_s: From the return to the last start or delivery, in seconds.
    """

    count: int
    last_s: float

    def __str__(self) -> str:
        return f"{self.count} due meanwhile, the last {self.last_s:.1f} s after"


@contextmanager
def _away(name: str, leave: Callable[[], None], come_back: Callable[[], None], outages: list[Outage]) -> Iterator[None]:
    leave()
    gone_at = now_ms()
    # The outage itself, no synchronisation.
    time.sleep(AWAY_S)
    come_back()
    outages.append(Outage(name, gone_at, now_ms()))
    yield


@pytest.fixture(scope="module")
def servers() -> None:
    """None: this file stops its servers."""


@pytest.mark.timeout(HANGS_S)
def test_given_broker_and_then_store_are_away_then_nothing_is_unguarded_lost_or_doubled(
    cluster: Cluster, client: Client, evidence: Evidence, standstills: Standstills
) -> None:
    chance = random.Random(SEED)
    sink = cluster.make_topic("outages.out")
    book = MessageBook(client, sink)
    pipeline = Pipeline(client, evidence, EXPRESSION, overlap="allow")
    pipeline.apply(start=now_ms() + 2_000)
    outages: list[Outage] = []
    stretches: dict[str, float] = {}
    with MessageLoad(book, chance), Repeatedly(lambda: pipeline.feed(chance), FEED_EVERY_S):
        until(
            lambda: pipeline.is_done(now_ms() - 10_000) and pipeline.days(now_ms() - 10_000),
            "a first day is done",
            BACKLOG_PATIENCE_S,
        )
        for name, leave, come_back in (
            ("broker", cluster.kafka.stop, cluster.kafka.start),
            ("store", cluster.dynamodb.pause, cluster.dynamodb.resume),
        ):
            with _away(name, leave, come_back, outages):
                starvation = Starvation(cluster.pids)
                _until_backlog_is_gone(pipeline, book, sink, cluster, outages[-1])
                stretches[name] = starvation.stretch()
            cluster.until_all_serve()

    settle(cluster, client, pipeline, book, sink, chance)

    cluster.assert_all_run()
    runs = pipeline.evidence.runs()
    deliveries = deliveries_of(read_topic(cluster.bootstrap_servers, sink))
    receipts = read_topic(cluster.bootstrap_servers, cluster.topic("receipts"))
    broker, store = outages
    # Without the broker each owner is put out of the group; what was on the wire then is of unknown fate, as after a kill.
    served_at = broker.back_at + int(BACKLOG_S_MAX["messages"] * stretches[broker.name] * 1_000)
    put_out = Crash(broker.gone_at, frozenset(range(SHARDS)), served_at)
    faults = pipeline.judge() + judge_messages(
        book.sent(receipts), deliveries, [put_out], unrests=standstills.unrests()
    )
    unguarded_from = broker.gone_at + GUARD_MS + int(SUBMIT_MS * slowness())
    submitted = [run for run in runs if _submitted_at(cluster, run) >= unguarded_from]
    faults += judge_blackout(broker.name, unguarded_from, broker.back_at, submitted)
    # Whose first line came behind the freeze had the gate's word before it.
    faults += [
        Fault(
            "unguarded",
            f"{run.schedule} {run.nominal} passed the gate at {passed}, the store was gone at {store.gone_at}",
        )
        for run in runs
        if store.covers(run.started_at)
        if not (passed := _gate_passed_at(cluster, run.run_id)) or passed > store.gone_at
    ]
    backlogs = {outage.name: _backlog(pipeline, deliveries, outage) for outage in outages}
    show(f"{len(runs)} runs, {len(deliveries)} deliveries, {repeats_of(deliveries)} repeats")
    for name, backlog in backlogs.items():
        show(
            f"{name} (goal {BACKLOG_GOAL_S:g} s, stretched {stretches[name]:.2f} times): "
            + "; ".join(f"{what}: {done}" for what, done in backlog.items())
        )
    show(f"lateness of landings: {histogram(pipeline.lateness())}")
    assert not faults, report(faults)
    assert all(done.count >= DUE_MIN[what] for backlog in backlogs.values() for what, done in backlog.items()), backlogs
    assert all(
        done.last_s <= BACKLOG_S_MAX[what] * stretches[name]
        for name, backlog in backlogs.items()
        for what, done in backlog.items()
    ), (backlogs, stretches)


def _submitted_at(cluster: Cluster, run: ProgramRun) -> int:
    """Returns when its launcher wrote what it hands to the program, ms since the epoch."""
    folder = RunFolder.within(cluster.folder / "data", run.run_id, run.attempt)
    return folder.context.stat().st_mtime_ns // 1_000_000


def _gate_passed_at(cluster: Cluster, run_id: str) -> int:
    """Returns what the store has since then; 0 where it has nothing."""

    def asked() -> str | None:
        status, text = cluster.api.ask(f"/api/v1/runs/{run_id}")
        # 0: the API was too busy to answer.
        assert status in (0, 200), (run_id, status, text)
        return text or None

    passed = json.loads(until(asked, f"the API tells of {run_id}"))["started_at"]
    return parse_instant(passed) if passed else 0


def _until_backlog_is_gone(pipeline: Pipeline, book: MessageBook, sink: str, cluster: Cluster, outage: Outage) -> None:
    """Waits for everything that was due before the brick's return: programs started, days joined, messages delivered."""
    until(
        lambda: not pipeline.missing(outage.back_at),
        f"all landings due while the {outage.name} was away",
        BACKLOG_PATIENCE_S,
    )
    days = {str(nominal // 1_000) for nominal in pipeline.days(outage.back_at)}
    until(
        lambda: days <= {run.correlation for run in pipeline.evidence.of(JOIN)},
        f"all joins of days while the {outage.name} was away",
        BACKLOG_PATIENCE_S,
    )

    def delivered() -> bool:
        arrived = {each.number for each in deliveries_of(read_topic(cluster.bootstrap_servers, sink))}
        due = [message for message in list(book.booked) if message.nominal < outage.back_at and message.acknowledged]
        plain = [message for message in due if not (message.replaced_by or message.cancelled_by)]
        return all(message.number in arrived for message in plain)

    until(delivered, f"all messages due while the {outage.name} was away", BACKLOG_PATIENCE_S, look_every_s=0.5)


def _backlog(pipeline: Pipeline, deliveries: Sequence[Delivery], outage: Outage) -> dict[str, Done]:
    """Returns what was due while the brick was away, and when the last of it was done."""
    landings = [run for run in pipeline.landings() if run.nominal is not None and outage.covers(run.nominal)]
    days = {str(run.nominal // 1_000) for run in landings if run.nominal is not None}
    first: dict[int, int] = {}
    for delivery in deliveries:
        if outage.covers(delivery.nominal):
            first[delivery.number] = min(delivery.appended_at, first.get(delivery.number, delivery.appended_at))
    done = {
        "landings": [run.started_at for run in landings],
        "joins": [run.started_at for run in pipeline.evidence.of(JOIN) if run.correlation in days],
        "messages": list(first.values()),
    }
    return {
        what: Done(len(moments), (max(moments, default=outage.back_at) - outage.back_at) / 1_000)
        for what, moments in done.items()
    }
