"""Conditions of a program's reports: of its outputs the latest stay."""

from __future__ import annotations

from tests.simulation.stories.stage import starts, takes
from tests.support.builders import a_run
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.store_operations import Put, Transaction
from tidegate_core.writes.start_gate import report_outputs
from tidegate_memory.store import MemoryStore

RUN = a_run().id


def a_store_with_a_started_run() -> MemoryStore:
    store = MemoryStore(remembers_tokens=False)
    run = a_run(state="submitted")
    store.write([Put(run.key(0), {**to_item(run, run.key(0)), "rev": 1})])
    assert takes(store, starts(RUN))
    return store


def outputs(seq: int) -> Transaction:
    """A program's report of them, under its number."""
    return report_outputs(RUN, 1, "driver-1", f'{{"rows":{seq}}}', seq, f"outputs {seq}")


def test_given_outputs_when_the_program_reports_later_ones_then_these_are_taken() -> None:
    store = a_store_with_a_started_run()
    assert takes(store, outputs(1))
    assert takes(store, outputs(2)), "liveness: a program is told that its outputs were taken, and the first ones stay"


def test_given_outputs_when_an_earlier_report_arrives_late_then_the_later_outputs_stay() -> None:
    """The report hung in a stopped process. Its repeat and a later report were acknowledged meanwhile."""
    store = a_store_with_a_started_run()
    assert takes(store, outputs(1))
    assert takes(store, outputs(2))
    assert not takes(store, outputs(1)), "I2: outputs that were acknowledged later are overwritten by older ones"
