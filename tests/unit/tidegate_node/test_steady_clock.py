"""The node's clock follows the machine's, but for its steps."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tidegate_node.steady_clock import LOOKS_MAX, STEP_MS_MAX, SteadyClock

HOUR_MS = 3_600_000


class Machine:
    """Two clocks that go on together, and a wall clock that is put forward and back."""

    def __init__(self) -> None:
        self.wall = 1_000_000
        self.monotonic = 500
        self.stops: Iterator[int] = iter(())

    def pass_ms(self, milliseconds: int) -> None:
        self.wall += milliseconds
        self.monotonic += milliseconds

    def now_ms(self) -> int:
        wall = self.wall
        # Whoever reads is stopped behind this look, before the next one.
        self.pass_ms(next(self.stops, 0))
        return wall

    def monotonic_ms(self) -> int:
        return self.monotonic


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def told() -> list[int]:
    return []


@pytest.fixture
def clock(machine: Machine, told: list[int]) -> SteadyClock:
    return SteadyClock(machine, told.append)


def test_given_time_passes_then_it_is_the_machines(machine: Machine, clock: SteadyClock, told: list[int]) -> None:
    machine.pass_ms(10 * HOUR_MS)
    assert (clock.now_ms(), clock.monotonic_ms()) == (machine.wall, machine.monotonic)
    assert told == []


@pytest.mark.parametrize("step", [HOUR_MS, -HOUR_MS, STEP_MS_MAX + 1, -STEP_MS_MAX - 1])
def test_given_a_step_then_time_goes_on_as_it_was_and_the_step_is_told_once(
    machine: Machine, clock: SteadyClock, told: list[int], step: int
) -> None:
    right = machine.wall
    machine.wall += step
    for _ in range(3):
        machine.pass_ms(100)
        right += 100
        assert clock.now_ms() == right
    assert told == [step]


def test_given_the_machines_clock_is_put_right_again_then_that_is_told(
    machine: Machine, clock: SteadyClock, told: list[int]
) -> None:
    machine.wall += HOUR_MS
    clock.now_ms()
    machine.wall -= HOUR_MS
    assert clock.now_ms() == machine.wall
    assert told == [HOUR_MS, 0]


def test_given_a_second_step_upon_the_first_then_both_are_told(
    machine: Machine, clock: SteadyClock, told: list[int]
) -> None:
    for _ in range(2):
        machine.wall += HOUR_MS
        clock.now_ms()
    assert told == [HOUR_MS, 2 * HOUR_MS]


def test_given_small_corrections_then_they_are_followed_and_never_add_up_to_a_step(
    machine: Machine, clock: SteadyClock, told: list[int]
) -> None:
    for _ in range(10):
        machine.wall += STEP_MS_MAX
        assert clock.now_ms() == machine.wall
    assert told == []


def test_given_a_process_that_is_stopped_between_the_two_looks_then_nothing_stepped(
    machine: Machine, clock: SteadyClock, told: list[int]
) -> None:
    machine.stops = iter([30_000])
    assert clock.now_ms() == machine.wall
    assert told == []


def test_given_it_is_stopped_at_each_look_then_the_time_is_right_all_the_same(
    machine: Machine, clock: SteadyClock
) -> None:
    machine.stops = iter([30_000] * LOOKS_MAX)
    assert clock.now_ms() == machine.wall
