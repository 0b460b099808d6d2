"""What the long scenarios share: the end at which everything has come to rest, and hand-overs that count as crashes."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Sequence
from typing import Protocol

from tests.support.checkers.messages import Crash
from tests.support.cluster.cluster import SESSION_S, SHARDS, TOPIC_PARTITIONS, Cluster
from tests.support.cluster.logged_events import instant_of
from tests.support.cluster.message_load import MessageBook, deliveries_of
from tests.support.cluster.pipeline_load import Pipeline
from tests.support.cluster.topic_reader import read_topic
from tests.support.cluster.until import NotInTime, now_ms, until
from tests.support.cluster.user_client import Client

QUIET_MS = 2_000
"""No landing is due so soon when they are suspended."""
ANSWER_MS = 1_000
"""An answer came within that just before: the next one comes before a landing is due."""
LOOK_EVERY_S = 0.5
REST_S = 180.0
"""Of each step to the end, where nobody says otherwise: a pause between two landings comes every few seconds, and is missed by who is busy."""


class Beside(Protocol):
    """Schedules beside the pipeline, with the instants of its landings."""

    def missing(self) -> object:
        """What is due and did not start yet; false where there is nothing."""
        ...

    def suspend(self) -> None:
        """Ends them; no instant is near, and all that was due has begun."""
        ...


def settle(
    cluster: Cluster,
    client: Client,
    pipeline: Pipeline,
    book: MessageBook,
    sink: str,
    chance: random.Random,
    beside: Sequence[Beside] = (),
    patience_s: float = REST_S,
) -> None:
    """Ends the landings between two instants, tops the feed up, and waits until nothing is owed or open any more.

    What does not come in time, `patience_s` seconds for each step, is for the judge to name.
    """
    client.flush()

    def is_quiet(for_ms: int) -> bool:
        now = now_ms()
        quiet = pipeline.next_landing(now) - now > for_ms
        return quiet and not pipeline.missing(now) and not any(each.missing() for each in beside)

    def pause() -> bool:
        if not is_quiet(ANSWER_MS + QUIET_MS):
            return False
        asked = now_ms()
        try:
            pipeline.apply_landings_again()
        except NotInTime:
            return False
        return now_ms() - asked <= ANSWER_MS and is_quiet(QUIET_MS)

    until(pause, "a pause", patience_s)
    pipeline.suspend_landings()
    for each in beside:
        each.suspend()
    with contextlib.suppress(NotInTime):
        _top_up(client, pipeline, chance, patience_s)

    def at_rest() -> bool:
        if not pipeline.is_done() or pipeline.uncounted or pipeline.evidence.open_runs():
            return False
        if any(each.missing() for each in beside):
            return False
        deliveries = deliveries_of(read_topic(cluster.bootstrap_servers, sink))
        receipts = read_topic(cluster.bootstrap_servers, cluster.topic("receipts"))
        return not book.owed(deliveries, receipts)

    with contextlib.suppress(NotInTime):
        until(at_rest, "everything has come to its end", patience_s, LOOK_EVERY_S)


def cut_hand_overs(cluster: Cluster) -> list[Crash]:
    """Returns hand-overs that did not end in time, on a machine that two stacks share: what they repeat is as after a crash.

    The last checkpoint may have begun with the order to hand over, and never have ended; what was left went out until the cut. Each is a
    crash at both.
    """
    found: list[Crash] = []
    for node in cluster.nodes:
        orders = [instant_of(said) for said in node.events("revoked")]
        for said in node.events("drain_cut"):
            cut = instant_of(said)
            shards = frozenset(s for s in range(SHARDS) if s % TOPIC_PARTITIONS in said["topic_partitions"])
            served_at = cut + int(SESSION_S * 1_000)
            begun = max((order for order in orders if order <= cut), default=cut)
            found += [Crash(at, shards, served_at, alone_ms=0) for at in (begun, cut)]
    return found


def _top_up(client: Client, pipeline: Pipeline, chance: random.Random, patience_s: float) -> None:
    """Feeds what the last run needs. A job that is full and has not started yet holds a whole count or more: it goes first."""
    until(lambda: len(pipeline.uncounted) < pipeline.feed_count, "only the last run of the feed is short", patience_s)
    for _ in range(-len(pipeline.uncounted) % pipeline.feed_count):
        pipeline.feed(chance)
    client.flush()
