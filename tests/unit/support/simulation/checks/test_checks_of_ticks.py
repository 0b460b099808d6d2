"""The judge of ticks: it finds what it is there to find, and nothing in a calm world."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.simulation.checks import violations
from tests.simulation.checks.case import Case
from tests.simulation.checks.ticks import check_ticks
from tests.simulation.users.tick_schedules import TRAP
from tests.simulation.world.timeline import START
from tests.simulation.world.world import World
from tests.unit.support.simulation.checks.steps import a_step
from tests.unit.support.simulation.checks.worlds import calm_world
from tidegate_core.rows.ledger import LedgerRow

SEED = 871_010
"""Of a calm world in which both schedules fire and go on to the end, and ticks come to nothing."""


@pytest.fixture(scope="module")
def world() -> World:
    return calm_world(SEED, TRAP)


def a_tick(case: Case, name: str) -> tuple[str, dict[str, Any]]:
    """Returns evidence that a late tick is in, and the tick: no request has come after it."""
    found = [(each, entry) for each, entries in case.entries_of[name].items() for entry in entries]
    return max(((each, entry) for each, entry in found if entry["kind"] == "tick"), key=lambda pair: pair[1]["at"])


def a_tick_without_its_data(case: Case) -> tuple[LedgerRow, dict[str, Any]]:
    """Makes data of another job come while a tick waited in vain; returns the tick's row of the ledger, and the data."""
    ticks = {entry["at"] for found in case.entries_of["meet"].values() for entry in found if entry["kind"] == "tick"}
    row = next(each for each in case.rows_of["meet"] if each.reason == "trigger_timeout" and each.nominal in ticks)
    other, entry = next(
        (each, entry) for each, found in case.entries_of["meet"].items() for entry in found if entry["kind"] != "tick"
    )
    case.entries_of["meet"] = {other: [{**entry, "at": row.nominal + 2_000}]}
    case.rows_of["meet"] = [replace(row, job_id="another")]
    return row, entry


def test_given_a_calm_world_then_nothing_is_wrong(world: World) -> None:
    assert violations(world) == []


def test_given_a_tick_in_two_pieces_of_evidence_then_it_latched_twice(case: Case) -> None:
    evidence, entry = a_tick(case, "beat")
    other = next(each for each in case.entries_of["beat"] if each != evidence)
    case.entries_of["beat"][other].append(entry)
    assert any("was latched 2 times" in each for each in check_ticks(case))


@pytest.mark.parametrize(("at", "words"), [(1, "does not name"), (-86_400_000, "was not active")])
def test_given_an_instant_that_is_no_tick_then_it_must_not_latch(case: Case, at: int, words: str) -> None:
    _, entry = a_tick(case, "meet")
    entry["at"] += at
    assert any(words in each for each in check_ticks(case))


def test_given_a_tick_that_is_nowhere_then_it_was_lost(case: Case) -> None:
    evidence, entry = a_tick(case, "beat")
    case.entries_of["beat"][evidence].remove(entry)
    assert any("was due, and has latched nothing" in each for each in check_ticks(case))


def test_given_a_program_that_was_told_of_no_tick_then_its_evidence_says_otherwise(case: Case) -> None:
    body = next(each for each in case.record.bodies if each.schedule == "beat" and each.context["ticks"])
    case.entries_of["beat"][body.run_id] = []
    assert any("its ticks are []" in each for each in check_ticks(case))


def test_given_data_that_a_tick_would_have_met_then_it_must_not_have_expired(case: Case) -> None:
    row, entry = a_tick_without_its_data(case)
    assert any(each.startswith("I3: meet gave up its tick") for each in check_ticks(case))
    # One of after the deadline lets it pass, whatever another topic partition still has.
    case.entries_of["meet"]["later"] = [{**entry, "at": row.at}]
    assert not any(each.startswith("I3: meet gave up its tick") for each in check_ticks(case))


@pytest.mark.parametrize(
    ("is_lost", "gone_before_ms", "is_wrong"),
    [
        pytest.param(True, 0, False, id="gone with its topic by then"),
        pytest.param(True, -60_000, True, id="its topic was there"),
    ],
)
def test_given_data_of_a_topic_that_is_gone_then_a_tick_may_have_expired_without_it(
    case: Case, monkeypatch: pytest.MonkeyPatch, is_lost: bool, gone_before_ms: int, is_wrong: bool
) -> None:
    """Seed 21008016: its reader had it from the old topic, and was frozen: it came to the inbox once the time-out had asked the new one."""
    row, entry = a_tick_without_its_data(case)
    monkeypatch.setattr(case.world.producers.announced[entry["event_id"]], "lost", is_lost)
    gone_at = row.at - gone_before_ms - START
    case.swarm = replace(case.swarm, topics=replace(case.swarm.topics, recreated=gone_at))
    assert any(each.startswith("I3: meet gave up its tick") for each in check_ticks(case)) == is_wrong


@pytest.mark.parametrize(
    ("held_before_ms", "is_wrong"), [(-1_000, False), (120_000, True)], ids=["held meanwhile", "held long before"]
)
def test_given_data_that_a_tick_would_have_met_then_only_a_hold_amid_its_wait_explains_that_it_expired(
    case: Case, monkeypatch: pytest.MonkeyPatch, held_before_ms: int, is_wrong: bool
) -> None:
    row, _ = a_tick_without_its_data(case)
    at = row.nominal - held_before_ms
    steps = [a_step("apply", min(at, START)), a_step("suspend", at, mode="hold"), a_step("resume", at + 1_000)]
    monkeypatch.setattr(case, "steps", lambda _: steps)
    assert any(each.startswith("I3: meet gave up its tick") for each in check_ticks(case)) == is_wrong
