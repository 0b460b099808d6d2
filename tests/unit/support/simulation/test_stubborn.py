"""Launchers and programs that do not do as they are told, one at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.runner.swarm import Swarm
from tests.simulation.runner.world_drawing import swarm_of
from tests.simulation.users.misbehaving_programs import DEAF_TO_MAX, KEPT_MS, TRAP
from tests.simulation.world.node import Node
from tests.simulation.world.program import EXIT_KILLED, EXIT_UNGATED
from tests.simulation.world.world import World, build
from tests.support.builders import a_run
from tidegate_core.rows.effects import LaunchOrder, NotSubmitted, ProgramEnded, SubmitFailed, Submitted
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.run import Run
from tidegate_core.rows.store_operations import Put
from tidegate_core.runs.launch_document import launch_order

SEEDS = range(8)
LATER_MS = 2_000
GATE_WAIT_MS = 15_000


class Platform:
    """A world in which nothing happens but what a test asks for, and a node that hands over one attempt."""

    def __init__(self, seed: int = 0, **faults: Any) -> None:
        self.world: World = build(seed, swarm=_swarm(**faults))
        self.cluster = self.world.cluster
        self._run = a_run()
        key = self._run.key(0)
        self.cluster.store.memory.write([Put(key, {**to_item(self._run, key), "rev": 1})])
        self.order: LaunchOrder = launch_order(self._run, [])
        self.node = Node(self.cluster, "node0", "owner", 0)
        self.answers: list[object] = []
        self.gone: list[ProgramEnded] = []

    def submit(self) -> None:
        self.cluster.launcher.submit(self.node, self.order, self.answers.append)

    def watch(self) -> None:
        self.cluster.launcher.watch(self.node, self.order.run_id, self.order.attempt, self.gone.append)

    def cancel(self) -> None:
        self.cluster.launcher.cancel(self.node, self.order.run_id, self.order.attempt)
        self.goes_on(40_000)  # A kill takes its time.

    def goes_on(self, ms: int = LATER_MS) -> None:
        timeline = self.cluster.timeline
        timeline.run(timeline.now + ms)

    @property
    def run(self) -> Run:
        item = self.cluster.store.memory.peek(self._run.key(0))
        assert item is not None
        return from_item(Run, item)

    @property
    def ends(self) -> list[int | None]:
        return [body.end for body in self.cluster.record.bodies]


def _swarm(**faults: Any) -> Swarm:
    calm = swarm_of(0, faults=False)
    # Nobody but the test is there.
    return replace(calm, nodes=0, traps=(TRAP,), launcher=replace(calm.launcher, gate_wait_ms=GATE_WAIT_MS, **faults))


def test_given_an_attempt_that_is_rejected_then_it_stays_so_also_when_all_else_is_healed() -> None:
    platform = Platform(rejected=1.0)
    platform.submit()
    platform.cluster.healed = True
    platform.submit()
    platform.goes_on()
    (first, second) = platform.answers
    assert isinstance(first, SubmitFailed)
    assert first == second
    assert platform.ends == []
    assert list(platform.cluster.record.verdicts[platform.order.run_id]) == [first.message]


def test_given_an_attempt_in_line_then_no_platform_hears_of_it_before_its_turn() -> None:
    platform = Platform(in_line=1.0)
    platform.submit()
    platform.goes_on(KEPT_MS[1])
    assert platform.answers == [NotSubmitted("others are in line before it", unasked=True)]
    assert not platform.cluster.record.taken_on
    platform.submit()
    platform.goes_on()
    assert isinstance(platform.answers[-1], Submitted)


def test_given_a_platform_that_is_away_for_an_attempt_then_it_takes_it_in_a_healed_world() -> None:
    platform = Platform(away=1.0)
    platform.submit()
    platform.goes_on()
    assert platform.answers == [NotSubmitted("unreachable")]
    platform.cluster.healed = True
    platform.submit()
    platform.goes_on()
    assert isinstance(platform.answers[-1], Submitted)


def test_given_programs_that_hang_then_each_ends_when_it_is_told_to_and_some_when_their_wait_is_over() -> None:
    exits = set()
    for seed in SEEDS:
        platform = Platform(seed, hung=1.0)
        platform.submit()
        platform.watch()
        platform.goes_on(2 * GATE_WAIT_MS)
        if not platform.gone:
            platform.cancel()
        exits.add(platform.gone[0].exit_code)
        assert platform.run.started_at is None
        assert platform.order.run_id in platform.cluster.record.never_ran
    assert exits == {EXIT_UNGATED, EXIT_KILLED}


def test_given_a_program_that_gives_up_before_the_gate_then_the_platform_says_of_what_class_that_is() -> None:
    platform = Platform(given_up=1.0)
    platform.submit()
    platform.watch()
    platform.goes_on(40_000)
    (gone,) = platform.gone
    assert gone.error_class
    assert list(platform.cluster.record.verdicts[platform.order.run_id]) == [gone.message]
    assert platform.run.started_at is None


def test_given_a_program_without_end_then_it_ends_when_it_is_told_to() -> None:
    platform = Platform(endless=1.0)
    platform.submit()
    platform.goes_on(10 * GATE_WAIT_MS)
    assert platform.ends == [None]
    platform.cancel()
    (body,) = platform.cluster.record.bodies
    assert body.end is not None
    assert body.endless
    assert body.was_ended


def test_given_a_program_that_is_deaf_then_it_lets_some_requests_pass_and_none_in_a_healed_world() -> None:
    platform = Platform(endless=1.0, deaf=1.0)
    platform.submit()
    platform.goes_on()
    platform.cancel()
    assert platform.ends == [None]
    for _ in range(DEAF_TO_MAX):
        platform.cancel()
    assert platform.ends != [None]
    healed = Platform(endless=1.0, deaf=1.0)
    healed.submit()
    healed.goes_on()
    healed.cluster.healed = True
    healed.cancel()
    assert healed.ends != [None]


@pytest.mark.parametrize("hosts", [False])
def test_given_a_program_that_is_overseen_then_its_wrapper_reports_a_time_out(hosts: bool) -> None:
    platform = Platform(endless=1.0, overseen=0.0 if hosts else 1.0, hosts=hosts)
    platform.submit()
    platform.goes_on(40_000)
    (body,) = platform.cluster.record.bodies
    assert (body.outcome, body.endless, platform.run.outcome) == ("timed_out", False, "timed_out")


def test_given_a_program_that_says_why_it_failed_then_its_run_has_the_class() -> None:
    platform = Platform(classed=1.0)
    platform.submit()
    platform.goes_on(40_000)
    (body,) = platform.cluster.record.bodies
    assert platform.run.error_class == body.error_class is not None
    assert platform.run.outcome == "failed"
