"""The judge of `driver: time`: what came too late for an instance is not its own, unless clocks stood still just then."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

import pytest

from tests.simulation.checks.case import Case, Entry
from tests.simulation.checks.tick_instances import check_instances
from tests.simulation.users.tick_schedules import TRAP
from tests.simulation.world.observations import EvidenceSeen
from tests.simulation.world.timeline import START
from tests.simulation.world.world import World
from tests.unit.support.simulation.checks.lying import MINUTE_MS, found
from tests.unit.support.simulation.checks.steps import a_step
from tests.unit.support.simulation.checks.test_checks_of_ticks import SEED
from tests.unit.support.simulation.checks.worlds import calm_world

TIMEOUT_MS: Final = 9_000


@pytest.fixture(scope="module")
def world() -> World:
    return calm_world(SEED, TRAP)


def an_instance(case: Case) -> tuple[EvidenceSeen, list[Entry]]:
    """Leaves the case one instance, with events, of a schedule that gives up after the time-out; returns what was seen of it, and its log."""
    (life,) = [life for life in case.lives if life.name == "each"]
    trigger = {**life.definition.trigger, "timeout": f"{TIMEOUT_MS}ms", "on_timeout": "abort"}
    case.lives = [replace(life, definition=replace(life.definition, trigger=trigger))]
    evidence, entries = next(
        (each, found)
        for each, found in case.entries_of["each"].items()
        if {entry["kind"] for entry in found} > {"tick"}
    )
    case.entries_of["each"] = {evidence: entries}
    return case.record.evidence[evidence], entries


@pytest.mark.parametrize(
    ("held_before_ms", "mode", "is_wrong"),
    [pytest.param(None, "hold", True, id="never held"), pytest.param(-1_000, "hold", False, id="held meanwhile")],
)
def test_given_an_instance_with_what_came_behind_its_time_then_only_what_stood_still_meanwhile_explains_it(
    world: World, monkeypatch: pytest.MonkeyPatch, held_before_ms: int | None, mode: str, is_wrong: bool
) -> None:
    case = Case(world)
    seen, entries = an_instance(case)
    (tick,) = (entry["at"] for entry in entries if entry["kind"] == "tick")
    late = [entry if entry["kind"] == "tick" else {**entry, "at": tick + TIMEOUT_MS} for entry in entries]
    monkeypatch.setattr(seen, "chunks", [json.dumps(late)])
    monkeypatch.setattr(seen, "taken", [tick + TIMEOUT_MS])
    steps = [a_step("apply", START - 10 * MINUTE_MS)]
    if held_before_ms is not None:
        at = tick - held_before_ms
        steps += [a_step("suspend", at, mode=mode), a_step("resume", at + 1_000)]
    monkeypatch.setattr(case, "steps", lambda _: steps)
    assert found(check_instances(case), "I3", "of each took") is is_wrong


@pytest.mark.parametrize(("mode", "is_wrong"), [(None, True), ("freeze", False)])
def test_given_a_tick_that_takes_what_had_waited_for_too_long_then_only_a_suspension_in_between_explains_it(
    world: World, monkeypatch: pytest.MonkeyPatch, mode: str | None, is_wrong: bool
) -> None:
    """Seed 38020290: two events were counted, then a freeze came, and the next tick was that of a minute later."""
    case = Case(world)
    seen, entries = an_instance(case)
    (tick,) = (entry for entry in entries if entry["kind"] == "tick")
    counted = tick["at"] - MINUTE_MS
    waited = [{**entry, "at": counted} for entry in entries if entry["kind"] != "tick"]
    monkeypatch.setattr(seen, "chunks", [json.dumps(waited), json.dumps([tick])])
    monkeypatch.setattr(seen, "taken", [counted + 200, tick["at"] + 50])
    steps = [a_step("apply", START - 10 * MINUTE_MS)]
    if mode is not None:
        steps += [a_step("suspend", counted + 5_000, mode=mode), a_step("resume", tick["at"] - 5_000)]
    monkeypatch.setattr(case, "steps", lambda _: steps)
    assert found(check_instances(case), "I3", "of each took") is is_wrong
