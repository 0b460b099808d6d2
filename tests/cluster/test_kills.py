"""The main scenario: both nodes in turn are killed while schedules and messages of every kind are due.

Whether anything was lost, doubled, miscounted or early is judged only by what programs and sink wrote (I1-I4, I8).
"""

from __future__ import annotations

import os
import random
import time

import pytest

from tests.support.checkers.faults import report
from tests.support.checkers.lateness import all_on_time, first_on_time, histogram, percentile
from tests.support.checkers.messages import Crash, Delivery, judge_messages, repeats_after, repeats_of
from tests.support.cluster.background import Repeatedly
from tests.support.cluster.catch_up_wait import CatchUp
from tests.support.cluster.cluster import SESSION_S, TOPIC_PARTITIONS, Cluster
from tests.support.cluster.evidence import Evidence
from tests.support.cluster.kill_nemesis import WORK_S, Kill, Nemesis
from tests.support.cluster.machine_stalls import Standstills
from tests.support.cluster.measurements import show
from tests.support.cluster.message_load import MessageBook, MessageLoad, deliveries_of
from tests.support.cluster.pipeline_load import JOIN, LANDING, REPORT, Pipeline
from tests.support.cluster.scenario import cut_hand_overs, settle
from tests.support.cluster.topic_reader import read_topic
from tests.support.cluster.until import now_ms
from tests.support.cluster.user_client import Client
from tests.support.machine_speed import slowness
from tests.support.tier import at_night

KILLS = at_night(20, else_=8)
BETWEEN_MIN = at_night(5, else_=2)
"""Kills that have to hit the moment between a row's write and its position."""
TURN = 2
"""Kills of a node in its turn. Kafka leaves the survivor what it had: the first takes a node with topic partitions that it has
held for a while, the second one with those that it was just given."""
AIMED = 4
"""So many kills in a row, both nodes' turns, aim between row and position; the next as many come at any moment."""
SCENARIO_S_MIN = at_night(240, else_=0)
ON_TIME_S = SESSION_S + 4
ASSERTED_TIMES = 3
FEED_EVERY_S = 0.7
WORKING = dict.fromkeys((*LANDING.values(), JOIN, REPORT), WORK_S)
SEED_VARIABLE = "TIDEGATE_TEST_SEED"
CATCH_UP_S = 30.0
HANGS_S = 1_200
"""Each wait has a patience of its own. 20 kills take 4 minutes, and 12 on a machine of a third of the usual speed."""


@pytest.mark.timeout(HANGS_S)
def test_given_both_nodes_are_killed_in_turn_then_nothing_is_lost_doubled_miscounted_or_early(
    cluster: Cluster, client: Client, evidence: Evidence, standstills: Standstills
) -> None:
    seed = int(os.environ.get(SEED_VARIABLE, "") or random.SystemRandom().randrange(1 << 32))
    show(f"\nseed {seed} (again with {SEED_VARIABLE}={seed})")
    chance = random.Random(seed)
    sink = cluster.make_topic("orders.out")
    book = MessageBook(client, sink)
    pipeline = Pipeline(client, evidence, work_s=WORKING)
    pipeline.apply(start=now_ms() + 3_000)
    nemesis = Nemesis(cluster, book, evidence, chance, working=WORKING)
    catch_up = CatchUp(client, book, pipeline)
    begun = time.monotonic()
    kills: list[Kill] = []
    with MessageLoad(book, chance), Repeatedly(lambda: pipeline.feed(chance), FEED_EVERY_S):
        while len(kills) < KILLS or time.monotonic() - begun < SCENARIO_S_MIN:
            # On a machine that cannot keep up with all of it, the backlog of one kill shall not bury the next one's burst.
            catch_up.wait(range(TOPIC_PARTITIONS), CATCH_UP_S)
            node = cluster.nodes[len(kills) // TURN % len(cluster.nodes)]
            kills.append(nemesis.kill(node, between=_aims(kills)))
            _show(len(kills), kills[-1])
    lasted = time.monotonic() - begun

    settle(cluster, client, pipeline, book, sink, chance)
    cluster.assert_all_run()

    deliveries = deliveries_of(read_topic(cluster.bootstrap_servers, sink))
    receipts = read_topic(cluster.bootstrap_servers, cluster.topic("receipts"))
    crashes = [Crash(kill.at, kill.shards, kill.at + kill.took_over_ms) for kill in kills]
    sent = book.sent(receipts)
    faults = pipeline.judge() + judge_messages(
        sent, deliveries, [*crashes, *cut_hand_overs(cluster)], unrests=standstills.unrests()
    )
    firsts = [first_on_time(crash, deliveries) for crash in crashes]
    assert not faults, report(faults)
    assert None not in firsts, firsts
    show(_figures(lasted, pipeline, len(sent), deliveries, kills, firsts, crashes))
    assert sum(kill.between > 0 for kill in kills) >= BETWEEN_MIN
    assert all(kill.open_runs > 0 and kill.due_in_ms <= 1_000 for kill in kills)
    # Not by the nemesis's look but by what the programs wrote: a run was open in the moment of each kill.
    assert all(evidence.open_at(kill.at) for kill in kills), [kill for kill in kills if not evidence.open_at(kill.at)]
    assert {kill.node for kill in kills} == {node.name for node in cluster.nodes}
    assert frozenset().union(*(kill.topic_partitions for kill in kills)) == frozenset(range(TOPIC_PARTITIONS))
    bound_ms = ASSERTED_TIMES * ON_TIME_S * 1_000 * slowness()
    assert all(first is not None and first <= bound_ms for first in firsts), firsts


def _aims(kills: list[Kill]) -> bool:
    """Whether the next kill aims between row and position: in its turn, and always where the last ones have to make up for misses."""
    still_needed = BETWEEN_MIN - sum(kill.between > 0 for kill in kills)
    return len(kills) // AIMED % 2 == 0 or still_needed >= KILLS - len(kills)


def _show(number: int, kill: Kill) -> None:
    where = f", {kill.between} rows ahead of their position" if kill.between else ""
    show(
        f"kill {number}: {kill.node} with topic partitions {sorted(kill.topic_partitions)}, {kill.open_runs} open runs, "
        f"next fire in {kill.due_in_ms} ms{where}; all shards served after {kill.took_over_ms} ms"
    )


def _figures(
    lasted: float,
    pipeline: Pipeline,
    sent: int,
    deliveries: list[Delivery],
    kills: list[Kill],
    firsts: list[int | None],
    crashes: list[Crash],
) -> str:
    runs = pipeline.evidence.runs()
    late = [delivery.appended_at - delivery.nominal for delivery in deliveries]
    known = [first for first in firsts if first is not None]
    everywhere = [
        all_on_time(
            crash,
            {frozenset(s for s in crash.shards if s % TOPIC_PARTITIONS == p) for p in kill.topic_partitions},
            deliveries,
        )
        for crash, kill in zip(crashes, kills, strict=True)
    ]
    repeats = ["{} of {}".format(*repeats_after(crash, deliveries)) for crash in crashes]
    takeovers = [kill.took_over_ms for kill in kills]
    return "\n".join(
        [
            f"{len(kills)} kills in {lasted:.0f} s, {sum(kill.between > 0 for kill in kills)} of them between row and position",
            f"{len(runs)} program runs, {sent} messages, {len(deliveries)} deliveries, {repeats_of(deliveries)} repeats",
            f"first on-time fire after a kill: median {percentile(known, 0.5)} ms, most {max(known)} ms",
            f"repeats of what might have repeated: {', '.join(repeats)}",
            f"all topic partitions of the killed node on time: {everywhere}",
            f"survivor serves all shards: median {percentile(takeovers, 0.5)} ms, most {max(takeovers)} ms",
            f"lateness of messages: {histogram(late)}",
            f"lateness of landings: {histogram(pipeline.lateness())}",
        ]
    )
