"""What the long scenarios share: the end at which everything has come to rest."""

from __future__ import annotations

import contextlib
import random

from tidegate_testkit.cluster.client import Client
from tidegate_testkit.cluster.cluster import Cluster
from tidegate_testkit.cluster.message_load import MessageBook, deliveries_of
from tidegate_testkit.cluster.pipeline import FEED_COUNT, Pipeline
from tidegate_testkit.cluster.topics import read_topic
from tidegate_testkit.cluster.waiting import NotInTime, now_ms, until

QUIET_MS = 3_000
"""No landing is due so soon when they are suspended: the answer comes long before."""
REST_S_MAX = 60.0
"""Patience with the last of it; what has not come by then is for the judge to name."""
LOOK_EVERY_S = 0.5


def settle(
    cluster: Cluster, client: Client, pipeline: Pipeline, book: MessageBook, sink: str, chance: random.Random
) -> None:
    """Ends the landings between two instants, tops the feed up, and waits until nothing is owed or open any more.

    What does not come in time is for the judge to name.
    """
    client.flush()
    until(lambda: pipeline.next_landing(now_ms()) - now_ms() > QUIET_MS and not pipeline.missing(now_ms()), "a pause")
    pipeline.suspend_landings()
    with contextlib.suppress(NotInTime):
        _top_up(client, pipeline, chance)

    def at_rest() -> bool:
        if not pipeline.is_done() or pipeline.uncounted or pipeline.evidence.open_runs():
            return False
        deliveries = deliveries_of(read_topic(cluster.bootstrap_servers, sink))
        receipts = read_topic(cluster.bootstrap_servers, "tidegate.receipts")
        return not book.owed(deliveries, receipts)

    with contextlib.suppress(NotInTime):
        until(at_rest, "everything has come to its end", REST_S_MAX, LOOK_EVERY_S)


def _top_up(client: Client, pipeline: Pipeline, chance: random.Random) -> None:
    """Feeds what the last run needs. A job that is full and has not started yet holds a whole count or more: it goes first."""
    until(lambda: len(pipeline.uncounted) < FEED_COUNT, "only the last run of the feed is short", REST_S_MAX)
    for _ in range(-len(pipeline.uncounted) % FEED_COUNT):
        pipeline.feed(chance)
    client.flush()
