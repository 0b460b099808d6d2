"""A crash after any effect, a lost answer to any write: what comes of it must be what comes of a run without a fault.

A bench takes no time, so the undisturbed run is an exact yardstick: rows, ledger, receipts, programs started, messages.
`make test` lets the fault come at the first effect of each kind in each scenario; `make test-all` at every effect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from itertools import count

import pytest

from tests.support import tier
from tests.support.builders import SECOND
from tests.support.harness.actor_harness import OUTSIDE, ActorHarness
from tests.support.harness.crash_points import places_of_faults
from tests.support.harness.crashes_in_requests import OF_REQUESTS
from tests.support.harness.crashes_in_triggers import (
    OF_TRIGGERS,
    admit_under_a_shared_limit,
    meet_after_more_ticks_than_fit,
)
from tidegate_core.rows.effects import Commit, Effect, Write

Scenario = Callable[[ActorHarness], None]

SCENARIOS: list[Scenario] = [*OF_TRIGGERS, *OF_REQUESTS]

UNORDERED = frozenset({admit_under_a_shared_limit})
"""Which of two shards' owners takes a free permit first is nobody's promise: only what came of it is compared."""
WAITING_ANEW = frozenset({meet_after_more_ticks_than_fit})
"""A successor waits for the log again before it ends what is past its time: rows say when it did, some 100 ms later."""
BEGUN = SECOND
"""The actor serves by then, and no schedule is activated at an instant that it fires at."""


def begun() -> ActorHarness:
    bench = ActorHarness()
    bench.run(BEGUN)
    return bench


@cache
def undisturbed(scenario: Scenario) -> ActorHarness:
    bench = begun()
    scenario(bench)
    return bench


def differences(expected: dict[str, object], found: dict[str, object]) -> list[str]:
    return [
        f"{what}: expected {expected[what]}, found {found[what]}" for what in expected if expected[what] != found[what]
    ]


def is_a_write(effect: Effect) -> bool:
    return isinstance(effect, Commit | Write)


def number(wanted: int) -> Callable[[Effect], bool]:
    """Matches the write of this number, counted from the beginning of the scenario."""
    seen = count()
    return lambda effect: is_a_write(effect) and next(seen) == wanted


def effects_of(scenario: Scenario) -> Sequence[Effect]:
    """Returns the scenario's effects on the outside, without those of the take-over before it."""
    outside = [effect for effect in undisturbed(scenario).asked if isinstance(effect, OUTSIDE)]
    return outside[begun().effects_outside :]


def places_of_writes(scenario: Scenario, fault: int) -> list[int]:
    """Returns which writes a fault hits: in `make test` each of two faults has every other one, and in the next scenario the others."""
    found = places_of_faults([effect for effect in effects_of(scenario) if is_a_write(effect)])
    return found if tier.ALL else found[(SCENARIOS.index(scenario) + fault) % 2 :: 2]


@pytest.mark.parametrize("late_writes_after", [None, 700], ids=["", "late-writes"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_given_a_crash_after_any_effect_then_the_outcome_is_that_without_one(
    scenario: Scenario, late_writes_after: int | None
) -> None:
    looks_at = ActorHarness.summary if scenario in UNORDERED | WAITING_ANEW else ActorHarness.picture
    expected = looks_at(undisturbed(scenario))
    before = begun().effects_outside
    wrong: dict[int, list[str]] = {}
    # Late writes differ from none at few of the effects: every third is a sample, moved by the scenario's place.
    step, offset = (1, 0) if late_writes_after is None else (3, SCENARIOS.index(scenario) % 3)
    for place in places_of_faults(effects_of(scenario))[offset::step]:
        bench = begun()
        bench.crash_after, bench.late_writes_after = before + place + 1, late_writes_after
        scenario(bench)
        assert bench.lives == 2
        if found := differences(expected, looks_at(bench)):
            wrong[place] = found
    assert wrong == {}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_given_a_crash_during_the_take_over_then_the_outcome_is_that_without_one(scenario: Scenario) -> None:
    """`make test` crashes once in each scenario: after the effect whose turn it is."""
    expected = undisturbed(scenario).picture()
    crashes = list(range(1, begun().effects_outside + 1))
    turn = SCENARIOS.index(scenario) % len(crashes)
    for effects in crashes if tier.ALL else crashes[turn : turn + 1]:
        bench = ActorHarness()
        bench.crash_after = effects
        bench.run(BEGUN)
        scenario(bench)
        assert differences(expected, bench.picture()) == []


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_given_a_lost_answer_to_any_write_then_the_outcome_is_the_same(scenario: Scenario) -> None:
    expected = undisturbed(scenario).summary()
    wrong: dict[int, list[str]] = {}
    for each in places_of_writes(scenario, fault=0):
        bench = begun()
        bench.lose_answer_of(number(each))
        scenario(bench)
        if found := differences(expected, bench.summary()):
            wrong[each] = found
    assert wrong == {}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_given_any_write_that_does_not_arrive_then_the_outcome_is_the_same(scenario: Scenario) -> None:
    expected = undisturbed(scenario).summary()
    wrong: dict[int, list[str]] = {}
    for each in places_of_writes(scenario, fault=1):
        bench = begun()
        bench.lose(number(each))
        scenario(bench)
        if found := differences(expected, bench.summary()):
            wrong[each] = found
    assert wrong == {}


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_given_any_scenario_then_no_program_is_started_twice(scenario: Scenario) -> None:
    started = [(order.run_id, order.attempt) for order in undisturbed(scenario).started]
    assert len(started) == len(set(started))
