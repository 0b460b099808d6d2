"""Nodes that die, stand still, are told to end, come and go."""

from __future__ import annotations

import time
from contextlib import suppress

from tests.chaos.nemeses.nemesis import Blow, Nemesis
from tests.chaos.proxies.store_faults import StoreFaults
from tests.chaos.rig.rig import TAKE_OVER_S_MAX, Rig
from tests.support.checkers.lateness import HandOver
from tests.support.checkers.messages import TAKEN_OVER_MS_MIN
from tests.support.cluster.cluster import SESSION_S
from tests.support.cluster.process import ClusterProcess
from tests.support.cluster.until import NotInTime, now_ms, until

SHORT_PAUSE, LONG_PAUSE = 1.5, 5.0
"""In sessions: just long enough to be put out, and long enough that successors have done much meanwhile."""
ON_THE_WIRE_S = 1.5
"""So long before a node stops, what it writes is kept on the way to the store; it gives a call up after 2 s."""
STALE = StoreFaults(rates={"hold": 1.0})
"""It arrives once others have taken over: writes of an owner that is none any more."""
WRITING_S_MAX = 15.0
"""Patience with a node that writes nothing; behind 20 s without the store's answer it would leave the group by itself."""
REFUSED_S_MAX = 20.0
"""For the store to answer what was held; a busy machine."""
COMINGS = 4
"""Of a storm; every second one is killed, the others are told to end."""
STAY_S = (0.5, 4.0)
"""How long one stays: from before it has joined until after it was given its share."""


def kill(rig: Rig, node: ClusterProcess) -> Blow:
    """Kills a node, waits until others serve what it had, and brings it back."""
    at, shards = _killed(rig, node)
    rig.others_serve_all(node)
    served_ms = now_ms() - at
    rig.bring_back(node)
    return Blow((node.name,), at, now_ms(), shards, felt={"kills": 1, "took_over_ms": served_ms})


def restart_at_once(rig: Rig, node: ClusterProcess) -> Blow:
    """Kills a node and brings it back at once, as a supervisor does: it joins while the group still waits for its former life."""
    at, shards = _killed(rig, node)
    rig.bring_back(node)
    return Blow((node.name,), at, now_ms(), shards, felt={"kills": 1})


def _killed(rig: Rig, node: ClusterProcess) -> tuple[int, frozenset[int]]:
    """Kills a node; returns when, in ms since the epoch, and the shards that it had."""
    shards = rig.shards_of(node)
    rig.meter.look([node])
    at = now_ms()
    node.kill()
    return at, shards


def pause(sessions: float) -> Nemesis:
    """Returns the nemesis that stops a node for so many sessions, with writes of its under way, and lets it go on."""

    def blow(rig: Rig, node: ClusterProcess) -> Blow:
        shards = rig.shards_of(node)
        refused = rig.refused(node)
        at, ends = _stopped_amid_writes(rig, node, sessions * SESSION_S)
        # The fault itself, no synchronisation.
        time.sleep(max(0.0, ends - time.monotonic()))
        # On a busy machine others need longer: what is held is stale once they have taken over.
        rig.others_serve_all(node)
        rig.cluster.set_faults(StoreFaults(), node.name)
        with suppress(NotInTime):
            until(lambda: rig.refused(node) > refused, "a stale write is refused", REFUSED_S_MAX)
        stale = rig.refused(node) - refused
        healed_at = now_ms()
        node.resume()
        rig.recovered()
        return Blow((node.name,), at, healed_at, shards, wire=True, felt={"pauses": 1, "stale_writes_refused": stale})

    needs = ("rebalances", "put_out", "stale_writes_refused")
    return Nemesis(f"pause of {sessions:g} sessions", blow, needs, TAKEN_OVER_MS_MIN)


def _stopped_amid_writes(rig: Rig, node: ClusterProcess, for_s: float) -> tuple[int, float]:
    """Keeps what a node sends to the store, and stops the node once a write is among it.

    Returns:
        When it was stopped, ms since the epoch, and until when it is to stand still, on the monotonic clock.
    """
    before = rig.held_writes(node)
    rig.cluster.set_faults(STALE, node.name)
    with suppress(NotInTime):
        # Without a write on the way the pause shows nothing of stale ones, and the phase says so.
        until(lambda: rig.held_writes(node) > before, "a write is on the way", WRITING_S_MAX)
    time.sleep(rig.chance.uniform(0.0, ON_THE_WIRE_S))
    at = now_ms()
    node.pause()
    return at, time.monotonic() + for_s


def rolling_restart(rig: Rig, _: ClusterProcess) -> Blow:
    """Tells one node after another to end, and starts it again."""
    at, hand_overs = now_ms(), list[HandOver]()
    for node in rig.cluster.nodes:
        rig.meter.look([node])
        shards, told_at = rig.shards_of(node), now_ms()
        node.terminate()
        status = node.wait(TAKE_OVER_S_MAX)
        assert status == 0, f"{node.name} was told to end and ended with {status}:\n{node.last_lines()}"
        rig.others_serve_all(node)
        hand_overs.append(HandOver(told_at, shards, now_ms()))
        rig.bring_back(node)
        rig.recovered()
    names = tuple(node.name for node in rig.cluster.nodes)
    return Blow(names, at, now_ms(), felt={"restarts": len(names)}, hand_overs=hand_overs)


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


KILL = Nemesis("kill", kill, ("rebalances",), TAKEN_OVER_MS_MIN)
KILL_AND_RESTART = Nemesis("kill, back at once", restart_at_once, ("rebalances",), TAKEN_OVER_MS_MIN)
ROLLING_RESTART = Nemesis("rolling restart", rolling_restart, ("rebalances", "restarts"), moves_after_ms=0)
STORM = Nemesis("join and leave storm", storm, ("rebalances",), moves_after_ms=0)
