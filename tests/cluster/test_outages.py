"""The broker is away for 60 s, then the store is, while schedules are due: nothing fires unguarded, is lost or doubled (I1-I3, I5)."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tidegate_bricks.brick import Brick
from tidegate_testkit.cluster.client import Client
from tidegate_testkit.cluster.cluster import SESSION_S, Cluster
from tidegate_testkit.cluster.evidence import Evidence
from tidegate_testkit.cluster.figures import show
from tidegate_testkit.cluster.judging.faults import report
from tidegate_testkit.cluster.judging.lateness import histogram
from tidegate_testkit.cluster.judging.messages import judge_messages, repeats_of
from tidegate_testkit.cluster.judging.runs import judge_blackout
from tidegate_testkit.cluster.message_load import MessageBook, MessageLoad, deliveries_of
from tidegate_testkit.cluster.pipeline import Pipeline
from tidegate_testkit.cluster.scenario import settle
from tidegate_testkit.cluster.topics import read_topic
from tidegate_testkit.cluster.waiting import now_ms, until

AWAY_S = 60.0
BACKLOG_S_MAX = 10.0
GUARD_MS = int(SESSION_S * 500)
"""Half a session: so long a membership that was proven holds."""
FIRST_LINE_MS = 2_000
"""From the submission to a program's own first line, on a busy machine."""
EXPRESSION = "*/12 * * * * *"
DUE_MIN = 10
"""Landings that have to be due in each outage, or it shows nothing."""
SEED = 3


@dataclass(frozen=True, slots=True)
class Outage:
    """A brick's absence, in ms since the epoch."""

    name: str
    gone_at: int
    back_at: int


@contextmanager
def _away(name: str, brick: Brick, outages: list[Outage]) -> Iterator[None]:
    brick.stop()
    gone_at = now_ms()
    # The outage itself, no synchronisation.
    time.sleep(AWAY_S)
    brick.start()
    outages.append(Outage(name, gone_at, now_ms()))
    yield


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_given_broker_and_then_store_are_away_for_a_minute_then_nothing_is_unguarded_lost_or_doubled(
    cluster: Cluster, client: Client, evidence: Evidence
) -> None:
    chance = random.Random(SEED)
    sink = cluster.make_topic("outages.out")
    book = MessageBook(client, sink)
    pipeline = Pipeline(client, evidence, EXPRESSION, overlap="allow")
    pipeline.apply(start=now_ms() + 2_000)
    outages: list[Outage] = []
    with MessageLoad(book, chance):
        until(
            lambda: pipeline.is_done(now_ms() - 10_000) and pipeline.expected(now_ms() - 10_000), "a first day is done"
        )
        for name, brick in (("broker", cluster.kafka), ("store", cluster.dynamodb)):
            with _away(name, brick, outages):
                _until_backlog_is_gone(pipeline, book, sink, cluster, outages[-1])
            cluster.until_all_serve()

    settle(cluster, client, pipeline, book, sink, chance)

    runs = pipeline.evidence.runs()
    deliveries = deliveries_of(read_topic(cluster.bootstrap_servers, sink))
    receipts = read_topic(cluster.bootstrap_servers, "tidegate.receipts")
    broker, store = outages
    faults = pipeline.judge() + judge_messages(book.sent(receipts), deliveries, [])
    faults += judge_blackout(broker.name, broker.gone_at + GUARD_MS + FIRST_LINE_MS, broker.back_at, runs)
    faults += judge_blackout(store.name, store.gone_at, store.back_at, runs)
    backlogs = [_backlog_s(pipeline, outage) for outage in outages]
    show(f"{len(runs)} runs, {len(deliveries)} deliveries, {repeats_of(deliveries)} repeats")
    for outage, backlog_s in zip(outages, backlogs, strict=True):
        show(
            f"{outage.name}: {len(_due_in(pipeline, outage))} landings due meanwhile, the last launched {backlog_s:.1f} s after"
        )
    show(f"lateness of landings: {histogram(pipeline.lateness())}")
    assert not faults, report(faults)
    assert all(len(_due_in(pipeline, outage)) >= DUE_MIN for outage in outages)
    assert all(backlog_s <= BACKLOG_S_MAX for backlog_s in backlogs), backlogs


def _until_backlog_is_gone(pipeline: Pipeline, book: MessageBook, sink: str, cluster: Cluster, outage: Outage) -> None:
    """Waits for everything that was due before the brick's return: programs started, messages delivered."""
    until(lambda: not pipeline.missing(outage.back_at), f"all landings due while the {outage.name} was away")

    def delivered() -> bool:
        arrived = {each.number for each in deliveries_of(read_topic(cluster.bootstrap_servers, sink))}
        due = [message for message in list(book.booked) if message.nominal < outage.back_at and message.acknowledged]
        plain = [message for message in due if not (message.replaced_by or message.cancelled_by)]
        return all(message.number in arrived for message in plain)

    until(delivered, f"all messages due while the {outage.name} was away", look_every_s=0.5)


def _due_in(pipeline: Pipeline, outage: Outage) -> list[int]:
    return [
        run.started_at
        for run in pipeline.landings()
        if run.nominal is not None and outage.gone_at <= run.nominal < outage.back_at
    ]


def _backlog_s(pipeline: Pipeline, outage: Outage) -> float:
    """Returns how many seconds after the return the last landing that was due before it was launched."""
    return (max(_due_in(pipeline, outage), default=outage.back_at) - outage.back_at) / 1_000
