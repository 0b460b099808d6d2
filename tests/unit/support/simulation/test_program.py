"""A program that is asked to end, as its wrapper does it."""

from __future__ import annotations

from dataclasses import replace

from tests.simulation.runner.world_drawing import swarm_of
from tests.simulation.world.program import Program
from tests.simulation.world.world import World, build
from tests.support.builders import a_run
from tests.support.ended_runs import ended_row
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.run import Run
from tidegate_core.rows.store_operations import Put
from tidegate_core.runs.launch_document import launch_order

SEED = 0
KNOCKS_MS = 4
"""Its request is under way."""
LATER_MS = 2_000


class Launched:
    """One program of a world without faults, before its run's gate."""

    def __init__(self, host: str | None, driver: str | None = None) -> None:
        self.world: World = build(SEED, faults=False, swarm=replace(swarm_of(SEED, faults=False), nodes=1))
        self._run = a_run(driver=driver)
        if driver is not None:
            self._run = replace(self._run, state="running")
        key = self._run.key(0)
        self.world.cluster.store.memory.write([Put(key, {**to_item(self._run, key), "rev": 1})])
        self.program = Program(self.world.cluster, launch_order(self._run, []), 0, host, lambda: None)
        self.program.begin()

    def goes_on(self, ms: int) -> None:
        timeline = self.world.cluster.timeline
        timeline.run(timeline.now + ms)

    @property
    def run(self) -> Run:
        memory = self.world.cluster.store.memory
        # An owner has drawn its conclusions from a report by then.
        item = ended_row(memory.peek, self._run.id) or memory.peek(self._run.key(0))
        assert item is not None
        return from_item(Run, item)

    @property
    def bodies(self) -> list[str]:
        return [body.driver for body in self.world.cluster.record.bodies if body.run_id == self._run.id]


def test_given_a_host_and_a_gate_that_lets_it_pass_meanwhile_then_it_runs_nothing_and_reports_its_end() -> None:
    """Seed 31002277: it died unseen, with its run, and its node fell before it had looked."""
    launched = Launched("node0")
    launched.goes_on(KNOCKS_MS)
    launched.program.terminate()
    launched.goes_on(LATER_MS)
    assert (launched.run.driver, launched.run.driver_host, launched.run.outcome) == (
        launched.program.driver,
        "node0",
        "failed",
    )
    assert not launched.program.process.alive
    assert launched.bodies == []
    assert launched.run.id in launched.world.cluster.record.never_ran
