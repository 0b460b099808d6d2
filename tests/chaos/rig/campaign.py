"""A campaign: phases of strikes under load, then rest, then judgement. `make chaos`, `make soak` and the test are campaigns."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.chaos.nemeses.nemesis import Nemesis
from tests.chaos.nemeses.strike import Strike, VoidPhase, assert_bit
from tests.chaos.rig.abandoned_shards import words_of
from tests.chaos.rig.audit_step import audited
from tests.chaos.rig.campaign_report import Figures, Phase
from tests.chaos.rig.load import Load, Sizes
from tests.chaos.rig.node_counters import Meter
from tests.chaos.rig.proxied_cluster import ChaosCluster
from tests.chaos.rig.rig import Rig
from tests.support.checkers.faults import Fault
from tests.support.checkers.hand_over_spans import Unrest
from tests.support.cluster.background import Repeatedly
from tests.support.cluster.process import ClusterProcess
from tests.support.cluster.store_view import StoreView
from tests.support.cluster.until import NotInTime, now_ms
from tests.support.cluster.user_client import Client

LOOK_EVERY_S = 2.0
"""So often counters are read: what a process counted since is lost when it is killed."""
CALM_S_MIN = 0.5
"""Between two strikes: they shall not always meet a cluster that has just come back."""
AIM_S = 1.0
"""From a volley of stops to the strike: the schedules are applied by then."""
PROTOCOLS = ("classic", "consumer")
AIMED = ("kill", "pause", "cut from the broker")
"""Nemeses after which somebody takes over, some seconds later."""


@dataclass(frozen=True, slots=True)
class Campaign:
    """What is to be done.

    Attributes:
        seed: Of nemeses, moments and loads.
        sizes: Of the load.
        phases: Nemesis and number of strikes, one after another; `endless` is the usual one.
        seconds: No strike begins later; None for all phases that there are.
        nodes: That serve.
        calm_s: The longest pause between two strikes.
        protocol: Of the nodes' group: `consumer` is KIP-848.
    """

    seed: int
    sizes: Sizes
    phases: Iterator[tuple[Nemesis, int]]
    seconds: float | None = None
    nodes: int = 3
    calm_s: float = 4.0
    protocol: str = PROTOCOLS[0]


def endless(chance: random.Random, nemeses: Sequence[Nemesis], strikes: int) -> Iterator[tuple[Nemesis, int]]:
    """Yields all nemeses with so many strikes each in an order of chance, then all of them in another, for ever."""
    while True:
        for nemesis in chance.sample(list(nemeses), len(nemeses)):
            yield nemesis, strikes


def run(
    campaign: Campaign, folder: Path, say: Callable[[str], None], unrests: Callable[[], Sequence[Unrest]] = tuple
) -> Figures:
    """Runs it, and returns what came of it, with all faults.

    Args:
        campaign: What is to be done.
        folder: Everything that processes, programs and clients write.
        say: Told each phase as it ends.
        unrests: When else shards may have changed hands, asked at the end.
    """
    chance = random.Random(campaign.seed)
    begun, begun_at = time.monotonic(), now_ms()
    settings = {"TIDEGATE_KAFKA__GROUP_PROTOCOL": campaign.protocol}
    with ChaosCluster(folder, campaign.seed, campaign.nodes, **settings) as cluster, ExitStack() as around:
        client = around.enter_context(Client(cluster.bootstrap_servers, folder / "acknowledged.jsonl"))
        meter = Meter()
        rig = Rig(cluster, client, StoreView(cluster.store), meter, chance)
        around.enter_context(Repeatedly(lambda: meter.look(cluster.all_nodes), LOOK_EVERY_S))
        load = Load(cluster, client, random.Random(f"load {campaign.seed}"), campaign.sizes)
        with load:
            load.until_it_runs()
            phases = _phases(rig, load, campaign, say)
        stuck = phases[-1].stuck or _settled(load)
        collected = load.collect()
        strikes = [strike for phase in phases for strike in phase.strikes]
        if stuck:
            # What is missing now may be what it is stuck with: no judge can tell.
            faults = [Fault("stuck", stuck)]
        else:
            cluster.assert_all_run()
            faults = load.judge(collected, strikes, words_of(cluster.all_nodes), unrests())
            faults += audited(cluster, begun_at, now_ms())
        amid_moves = load.repeats_amid_moves(collected, strikes)
        return Figures(campaign.seed, time.monotonic() - begun, phases, collected, faults, rig.counted(), amid_moves)


def _phases(rig: Rig, load: Load, campaign: Campaign, say: Callable[[str], None]) -> list[Phase]:
    """Strikes until the time is over, or the cluster does not recover; at least one phase."""
    phases: list[Phase] = []
    deadline = None if campaign.seconds is None else time.monotonic() + campaign.seconds
    for nemesis, count in campaign.phases:
        if not nemesis.possible(rig):
            say(f"{nemesis.name}: not possible any more")
            continue
        phases.append(_phase(rig, load, nemesis, count, campaign.calm_s, deadline))
        say(phases[-1].line())
        if phases[-1].stuck or (deadline is not None and time.monotonic() >= deadline):
            break
    return phases


def _settled(load: Load) -> str:
    """Returns why the load did not come to rest, or nothing."""
    try:
        load.settle()
    except NotInTime as late:
        return str(late)
    return ""


def _aim(rig: Rig, load: Load, node: ClusterProcess) -> None:
    """Has schedules of the node's stopped just after the strike, so that its successors answer."""
    load.stops.volley(rig.shards_of(node))
    time.sleep(AIM_S)


def _phase(rig: Rig, load: Load, nemesis: Nemesis, count: int, calm_s: float, deadline: float | None) -> Phase:
    strikes: list[Strike] = []
    for _ in range(count):
        if strikes and not nemesis.possible(rig):
            break
        load.catch_up()
        # The moment shall be one of chance.
        time.sleep(rig.chance.uniform(CALM_S_MIN, calm_s))
        node = rig.pick()
        aimed = nemesis.name.startswith(AIMED)
        try:
            strikes.append(nemesis.strike(rig, node, partial(_aim, rig, load, node) if aimed else lambda: None))
        except NotInTime as late:
            return Phase(nemesis.name, strikes, stuck=f"{nemesis.name}, strike {len(strikes) + 1}: {late}")
        if deadline is not None and time.monotonic() >= deadline:
            break
    try:
        assert_bit(nemesis.name, nemesis.needs, strikes)
    except VoidPhase as void:
        return Phase(nemesis.name, strikes, void=str(void))
    return Phase(nemesis.name, strikes)
