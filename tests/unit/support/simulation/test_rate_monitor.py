"""The judge of shared rates: it objects to a span with one too many, by the instants at which owners decided."""

from __future__ import annotations

import pytest

from tests.simulation.checks.request_history import SKEW_MS
from tests.simulation.faults.store_faults import calm_store
from tests.simulation.monitors.rate_monitor import RateMonitor
from tests.simulation.runner.trace import Trace
from tests.simulation.users.schedule_definitions import Definition
from tests.simulation.users.schedule_updates import Wanted
from tests.simulation.users.schedule_users import Life
from tests.simulation.world.observations import Record
from tests.simulation.world.store import SimStore
from tests.simulation.world.timeline import Timeline
from tests.support.builders import NOW, a_run
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.store_operations import Put, Transaction

SPAN = 4_000 - SKEW_MS


@pytest.mark.parametrize(
    ("admitted", "objects"),
    [
        pytest.param([0, 1, 2, SPAN - 1], True, id="one too many"),
        pytest.param([0, 1, 2, SPAN], False, id="the first counts no more"),
        pytest.param([0, SPAN + 1, SPAN + 2, SPAN // 2], False, id="no span has all four (seed 20041197)"),
        pytest.param([0, 2, 3, 1], True, id="decided before others and written after them"),
    ],
)
def test_given_admissions_in_the_order_of_their_writes_then_it_objects_to_a_span_with_more_than_three(
    admitted: list[int], objects: bool
) -> None:
    timeline, record = Timeline(0), Record()
    store = SimStore(timeline, Trace(timeline), calm_store())
    monitor = RateMonitor(store, record)
    monitor.wanted = Wanted(store, {"nightly": Life(Definition("nightly", {}, rate=(3, "4s")))})
    for number, at in enumerate(admitted):
        assert record.failures == []
        run = a_run(number + 1, admitted_at=NOW + at)
        key = run.key(0)
        store.memory.transact(Transaction("admit", (Put(key, {**to_item(run, key), "w": "t"}),), "t", key))
    assert bool(record.failures) == objects
