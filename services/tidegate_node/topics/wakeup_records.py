"""Records on `<prefix>.pokes`: wake-ups between processes, and the nodes' heartbeats. Small JSON, best effort.

A wake-up is `{"shard": 7}`, `{"shard": 7, "run": "0007-..."}` or `{"shard": 7, "controls": true}`. API processes send
them too. A heartbeat is `{"beat": {"owner": ..., "at": ..., "store_ok_ms": ..., "lag_ms": ..., "takes": ...}}`. The
reader of topic partition q owns q mod N.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from tidegate_core.engine.actor_inputs import Woken
from tidegate_core.rows.effects import Produce, WakeUp
from tidegate_node.node_identity import NodeFacts

RECORD_BYTES_MAX = 1_024
"""Our records have about 100 bytes; a larger one on this topic is foreign."""


@dataclass(frozen=True, slots=True)
class Beat:
    """A node's heartbeat.

    Attributes:
        owner: UUID of its process.
        at: Wall clock of the node at the time of writing, ms since the epoch.
        store_ok_ms: Age of the store's last answer at `at`; an age and not an instant, so that clocks are not compared.
        lag_ms: Delay of the node's loop since its previous beat; None from a release that does not report it.
        takes: Whether the node is in the group, or about to join.
    """

    owner: str
    at: int
    store_ok_ms: int
    lag_ms: int | None = None
    takes: bool = False


def poke_record(poke: WakeUp, facts: NodeFacts) -> Produce:
    """Returns the record that wakes the shard's owner."""
    document: dict[str, object] = {"shard": poke.shard}
    if poke.run_id is not None:
        document["run"] = poke.run_id
    if poke.controls:
        document["controls"] = True
    holder = poke.shard % facts.cluster.topic_partitions
    return Produce(facts.pokes.name, None, _json(document), topic_partition=holder % facts.pokes.topic_partitions)


def beat_record(beat: Beat, facts: NodeFacts, topic_partition: int) -> Produce:
    """Returns the record that reports this node as alive to the reader of a topic partition."""
    said: dict[str, object] = {"owner": beat.owner, "at": beat.at, "store_ok_ms": beat.store_ok_ms}
    if beat.lag_ms is not None:
        said |= {"lag_ms": beat.lag_ms, "takes": beat.takes}
    document = {"beat": said}
    return Produce(facts.pokes.name, None, _json(document), topic_partition=topic_partition)


def read_record(value: bytes | None) -> Woken | Beat | None:
    """Returns the content of a record; None for a foreign record."""
    if value is None or len(value) > RECORD_BYTES_MAX:
        return None
    try:
        document = json.loads(value)
    except (ValueError, RecursionError):
        return None
    match document:
        case {
            "beat": {
                "owner": str(owner),
                "at": int(at),
                "store_ok_ms": int(age),
                "lag_ms": int(lag),
                "takes": bool(takes),
            }
        }:
            return Beat(owner, at, age, lag, takes)
        case {"beat": {"owner": str(owner), "at": int(at), "store_ok_ms": int(age)}}:
            return Beat(owner, at, age)
        case {"shard": int(shard), "run": str(run_id)}:
            return Woken(shard, run_id)
        case {"shard": int(shard), "controls": True}:
            return Woken(shard, controls=True)
        case {"shard": int(shard)}:
            return Woken(shard)
        case _:
            return None


def _json(document: dict[str, object] | dict[str, dict[str, object]]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
