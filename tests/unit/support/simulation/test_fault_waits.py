"""The store of the simulation notes what is waited for: sends that came to nothing, until their next ones."""

from __future__ import annotations

from dataclasses import replace

from tests.simulation.faults.store_faults import StoreFaults, calm_store
from tests.simulation.runner.trace import Trace
from tests.simulation.world.fault_waits import FaultWait
from tests.simulation.world.store import SimStore
from tests.simulation.world.timeline import START, Timeline
from tidegate_core.rows.keys import lease, shard_pk
from tidegate_core.rows.store_operations import Key, RawOutcome, Transaction, Update
from tidegate_core.writes.conditions import holds_lease

TOKEN = "owner/0.1/2"
OUT = replace(calm_store(), write_outs=((1_000, 4_000),))
"""No transaction gets an answer for three seconds."""


def a_transaction(name: str = "look", key: Key | None = None) -> Transaction:
    key = lease(3) if key is None else key
    return Transaction(name, (Update(key, "SET #w = :w", {"#w": "w"}, {":w": TOKEN}, holds_lease(1, 0)),), TOKEN, key)


def waits_in(faults: StoreFaults, *sends: int) -> list[FaultWait]:
    """Returns what is noted of a transaction that is sent at these times."""
    timeline = Timeline(1)
    store = SimStore(timeline, Trace(timeline), faults)
    answers: list[RawOutcome] = []
    for at in sends:
        timeline.after(at, lambda: store.transact(a_transaction(), answers.append))
    timeline.run(START + max(sends) + 1_000)
    assert len(answers) == len(sends)
    return store.waits.lanes[shard_pk(3)]


def test_given_sends_that_get_no_answer_then_the_lane_waits_from_each_to_the_next() -> None:
    waits = waits_in(OUT, 1_500, 3_000, 4_500)
    assert waits == [FaultWait(TOKEN, START + 1_500, START + 3_000), FaultWait(TOKEN, START + 3_000, START + 4_500)]


def test_given_sends_that_the_store_takes_then_the_lane_waits_for_no_fault() -> None:
    assert waits_in(OUT, 4_500, 5_000) == waits_in(calm_store(), 1_500, 3_000) == []
