"""Nodes that die, stand still, are told to end, come and go."""

from __future__ import annotations

import time

from tidegate_testkit.chaos.nemesis import Blow, Nemesis
from tidegate_testkit.chaos.proxies.store_faults import StoreFaults
from tidegate_testkit.chaos.rig import TAKE_OVER_S_MAX, Rig
from tidegate_testkit.cluster.cluster import SESSION_S
from tidegate_testkit.cluster.process import ClusterProcess
from tidegate_testkit.cluster.waiting import now_ms

SHORT_PAUSE, LONG_PAUSE = 1.5, 5.0
"""In sessions: just long enough to be put out, and long enough that successors have done much meanwhile."""
ON_THE_WIRE_S = 1.5
"""So long before a node stops, what it writes is kept on the way to the store; it gives a call up after 2 s."""
STALE = StoreFaults(rates={"latency": 1.0}, latency_ms=(10_000, 11_500))
"""It arrives after others took over, 7 to 8 s after the stop: writes of an owner that is none any more."""
COMINGS = 4
"""Of a storm; every second one is killed, the others are told to end."""
STAY_S = (0.5, 4.0)
"""How long one stays: from before it has joined until after it was given its share."""


def kill(rig: Rig, node: ClusterProcess) -> Blow:
    """Kills a node, waits until others serve what it had, and brings it back."""
    shards = rig.shards_of(node)
    rig.meter.look([node])
    at = now_ms()
    node.kill()
    rig.others_serve_all(node)
    served_ms = now_ms() - at
    rig.bring_back(node)
    return Blow((node.name,), at, now_ms(), shards, felt={"kills": 1, "took_over_ms": served_ms})


def pause(sessions: float) -> Nemesis:
    """Returns the nemesis that stops a node for so many sessions, with writes of its under way, and lets it go on."""

    def blow(rig: Rig, node: ClusterProcess) -> Blow:
        shards = rig.shards_of(node)
        before = rig.refused(node)
        rig.cluster.set_faults(STALE, node.name)
        time.sleep(ON_THE_WIRE_S)
        at = now_ms()
        node.pause()
        rig.cluster.set_faults(StoreFaults(), node.name)
        # The fault itself, no synchronisation.
        time.sleep(sessions * SESSION_S)
        healed_at = now_ms()
        node.resume()
        rig.recovered()
        felt = {"pauses": 1, "stale_writes_refused": rig.refused(node) - before}
        return Blow((node.name,), at, healed_at, shards, wire=True, felt=felt)

    return Nemesis(f"pause of {sessions:g} sessions", blow, ("rebalances", "put_out", "stale_writes_refused"))


def rolling_restart(rig: Rig, _: ClusterProcess) -> Blow:
    """Tells one node after another to end, and starts it again."""
    at, gaps = now_ms(), 0
    for node in rig.cluster.nodes:
        rig.meter.look([node])
        node.terminate()
        status = node.wait(TAKE_OVER_S_MAX)
        assert status == 0, f"{node.name} was told to end and ended with {status}:\n{node.last_lines()}"
        begun = now_ms()
        rig.others_serve_all(node)
        gaps = max(gaps, now_ms() - begun)
        rig.bring_back(node)
        rig.recovered()
    names = tuple(node.name for node in rig.cluster.nodes)
    return Blow(names, at, now_ms(), felt={"restarts": len(names), "hand_over_ms": gaps})


def storm(rig: Rig, _: ClusterProcess) -> Blow:
    """A further node comes and goes, again and again, told to end or killed."""
    at = now_ms()
    crashes: list[tuple[int, frozenset[int]]] = []
    node = rig.cluster.spare()
    for number in range(COMINGS):
        node.start()
        if number < 2:
            # Once for each way to go it has a share when it goes; later it may fall while it still joins.
            node.until_ready()
        time.sleep(rig.chance.uniform(*STAY_S))
        rig.meter.look([node])
        if number % 2:
            shards = rig.shards_of(node)
            crashes.append((now_ms(), shards))
            node.kill()
        else:
            node.terminate()
            node.wait(TAKE_OVER_S_MAX)
    return Blow((node.name,), at, now_ms(), felt={"comings": COMINGS}, crashes=[each for each in crashes if each[1]])


KILL = Nemesis("kill", kill, ("rebalances",))
ROLLING_RESTART = Nemesis("rolling restart", rolling_restart, ("rebalances", "restarts"))
STORM = Nemesis("join and leave storm", storm, ("rebalances",))
