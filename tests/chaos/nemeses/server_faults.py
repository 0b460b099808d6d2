"""Broker, store and API themselves: restarted, spoilt, away for all."""

from __future__ import annotations

import time
from dataclasses import replace

from tests.chaos.nemeses.nemesis import ALL_SHARDS, Blow, Nemesis
from tests.chaos.proxies.store_faults import StoreFaults
from tests.chaos.rig.rig import Rig
from tests.support.cluster.process import ClusterProcess
from tests.support.cluster.until import now_ms

SPOILT = StoreFaults(
    rates={
        "throttle": 0.10,
        "server_error": 0.05,
        "latency": 0.05,
        "drop_answer": 0.05,
        "drop_request": 0.02,
        "reset": 0.02,
        "duplicate": 0.02,
        "black_hole": 0.01,
    }
)
GONE = StoreFaults(rates={"black_hole": 1.0})
SPOILT_S = (15.0, 30.0)
GONE_S = (25.0, 45.0)
"""Above the 20 s after which a node asks whether it alone is cut off."""
API_GONE_S = (16.0, 24.0)
"""Longer than from one instant of the landings to the next: something is launched, and stands before a gate that is not there."""
FIRST_LINE_MS = 6_000
"""From the gate to a program's own first line, on a machine that has much else to do."""


def broker_restart(rig: Rig, _: ClusterProcess) -> Blow:
    """Stops the broker and starts it again on the same port and data."""
    at = now_ms()
    rig.cluster.kafka.stop()
    rig.cluster.kafka.start()
    # All are put out of the group, and what was on the wire is of unknown fate: as after a kill of each.
    return Blow(("broker",), at, now_ms(), ALL_SHARDS, wire=True, felt={"broker_restarts": 1})


def store_faults(rig: Rig, _: ClusterProcess) -> Blow:
    """Spoils a third of all requests to the store for a while."""
    return _with_faults(rig, SPOILT, SPOILT_S)


def blackout(rig: Rig, _: ClusterProcess) -> Blow:
    """The store answers nobody for a while."""
    gone = _with_faults(rig, GONE, GONE_S)
    # No gate opens without the store: who passed it before has written its first line by then.
    return replace(gone, silent_from=gone.at + FIRST_LINE_MS)


def api_killed(rig: Rig, _: ClusterProcess) -> Blow:
    """Kills the API, and with it the start gate; starts it again after a while."""
    launches = rig.counted()["launches"]
    at = now_ms()
    rig.cluster.api.kill()
    # The fault itself, no synchronisation.
    time.sleep(rig.chance.uniform(*API_GONE_S))
    felt = {"api_kills": 1, "launched_meanwhile": rig.counted()["launches"] - launches}
    # No program starts while nobody opens the gate; those that wait there ask again.
    healed_at = now_ms()
    rig.bring_back(rig.cluster.api)
    return Blow(("api",), at, healed_at, felt=felt, silent_from=at + FIRST_LINE_MS)


def _with_faults(rig: Rig, faults: StoreFaults, seconds: tuple[float, float]) -> Blow:
    at = now_ms()
    rig.cluster.set_faults(faults)
    try:
        # The fault itself, no synchronisation.
        time.sleep(rig.chance.uniform(*seconds))
    finally:
        rig.cluster.set_faults(StoreFaults())
    return Blow(("store",), at, now_ms())


BROKER_RESTART = Nemesis("broker restart", broker_restart, ("broker_restarts", "guard_lapsed"), moves_after_ms=0)
STORE_FAULTS = Nemesis(
    "store faults", store_faults, ("lost_answers", "store_throttle", "failed_calls"), moves_after_ms=0
)
API_KILLED = Nemesis("API killed", api_killed, ("api_kills", "launched_meanwhile"))
BLACKOUT = Nemesis("store black-out", blackout, ("store_black_hole", "failed_calls"), moves_after_ms=0)
