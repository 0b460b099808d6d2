"""The judge of a schedule's line: a job of a lower class may not go, or hold the place, before one of a higher class that could go."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.simulation.monitors.class_monitor import ClassMonitor
from tests.simulation.monitors.limit_monitor import LimitMonitor
from tests.simulation.runner.trace import Trace
from tests.simulation.runner.world_drawing import swarm_of
from tests.simulation.users.schedule_definitions import Definition
from tests.simulation.world.observations import Record
from tests.simulation.world.store import SimStore
from tests.simulation.world.timeline import Timeline
from tests.support.builders import NOW, a_job, a_schedule
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.store_operations import Item, Put, Transaction

MINUTE_MS = 60_000
URGENT = a_job(2, unmet=json.dumps({"codes": ["concurrency"]}))
MISSED = a_job(1, due=NOW - MINUTE_MS, catch_up=True)
ADMITTED = replace(MISSED, state="pending_launch")
QUEUED = replace(MISSED, asked=("SH#0001|IW#g#1#one",))


class OneDefinition:
    """Wants of each schedule what the first definition says."""

    def of(self, run: Item) -> Definition:
        return Definition("nightly", {"type": "every", "period": "1m"}, priority="high")


@pytest.mark.parametrize(
    ("waiting", "then", "objects"),
    [
        pytest.param(URGENT, ADMITTED, True, id="the missed job goes first"),
        pytest.param(URGENT, QUEUED, True, id="the missed job stands in the queue alone"),
        pytest.param(replace(URGENT, asked=("x|y",)), QUEUED, False, id="both stand in the queue"),
        pytest.param(replace(URGENT, unmet=json.dumps({"codes": ["delayed"]})), ADMITTED, False, id="it could not go"),
        pytest.param(replace(URGENT, catch_up=True), ADMITTED, False, id="both were missed"),
        pytest.param(replace(URGENT, generation=0), ADMITTED, False, id="a request has ended it"),
    ],
)
def test_given_a_job_of_a_lower_class_that_goes_before_another_then_the_judge_objects_if_that_could_go(
    waiting: Job, then: Job, objects: bool
) -> None:
    timeline, record = Timeline(0), Record()
    swarm = swarm_of(0, faults=False)
    store = SimStore(timeline, Trace(timeline), swarm.store)
    monitor = ClassMonitor(store, record, LimitMonitor(store, Record(), swarm))
    monitor.wanted = OneDefinition()  # type: ignore[assignment]  # all that it asks
    state = a_schedule()

    def write(token: str, *records: Job) -> None:
        puts = [Put(each.key(0), {**to_item(each, each.key(0)), "rev": 1}) for each in records]
        store.memory.transact(Transaction("admit", tuple(puts), token, None))

    store.memory.write([Put(state.key(0), to_item(state, state.key(0)))])
    write("t/1", MISSED, waiting)
    timeline.run(timeline.now + MINUTE_MS)
    write("t/2", then)
    assert bool(record.failures) == objects
