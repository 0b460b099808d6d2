"""Lies about outages, and about the order of what is made up for after them: only what an owner missed excuses them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.checks import outages
from tests.simulation.checks.case import Case
from tests.simulation.checks.outages import check_outages
from tests.simulation.checks.overlap import check_overlap
from tests.simulation.checks.request_history import SKEW_MS
from tests.simulation.world.timeline import START
from tests.unit.support.simulation.checks.lying import MINUTE_MS, found, one_of, with_rows
from tidegate_core.rows import keys
from tidegate_core.rows.outage import Outage


@pytest.mark.parametrize(
    ("missed", "objects"),
    [("none", True), ("the older one", False), ("the newer one later", False)],
)
def test_given_a_run_that_is_admitted_after_a_newer_one_then_only_what_was_missed_may_be(
    case: Case, monkeypatch: pytest.MonkeyPatch, missed: str, objects: bool
) -> None:
    """Seed 801025: what is made up for after an outage runs one at a time, and what is due now goes beside it.

    Seeds 5001314 and 23021419: an outage goes on behind what an owner made who was there for two seconds, and never said so; it was
    admitted before the fact, or behind it.
    """
    life = next(life for life in case.lives if life.name == "tick")
    row = one_of(case, "tick", "time")
    newer = replace(row, job_id="newer", nominal=row.nominal + MINUTE_MS, admitted_at=row.nominal + MINUTE_MS)
    older = replace(row, admitted_at=row.nominal + 2 * MINUTE_MS)
    lie = with_rows(case, lambda each: None)
    lie.rows = [older, newer]
    lie.lives = [replace(life, definition=replace(life.definition, overlap="queue", most=1, constraints=()))]
    lie.made_as = {older.job_id: 0, newer.job_id: 1}
    # The ends of facts, and how many jobs had been made when they were written.
    ends = {
        "none": {0: 0},
        "the older one": {1: 0},
        "both": {MINUTE_MS + 1: 0},
        "the newer one later": {1: 0, MINUTE_MS + 1: 2},
    }
    known = {Outage(row.nominal, row.nominal + end): by_then for end, by_then in ends[missed].items()}
    monkeypatch.setattr(case.record, "outages", dict.fromkeys(range(case.swarm.shards), known))
    monkeypatch.setattr(keys, "shard_of_run", lambda _: 0)
    assert found(check_overlap(lie), "order", "tick") is objects


@pytest.mark.parametrize("frozen", [False, True])
def test_given_instants_that_were_made_one_by_one_while_nobody_was_there_then_only_a_freeze_until_then_excuses_them(
    case: Case, monkeypatch: pytest.MonkeyPatch, frozen: bool
) -> None:
    """Seed 800496: a node that goes on decides what is due by then, and its transaction may arrive in spite of all."""
    life = next(life for life in case.lives if life.name == "tick")
    rows = [row for row in case.rows_of["tick"] if row.trigger == "time" and row.covered is None]
    first, last = rows[0].nominal - SKEW_MS - 1, rows[3].nominal + SKEW_MS + 1
    changed = Case(case.world)
    changed.lives = [replace(life, definition=replace(life.definition, catch_up="last"))]
    monkeypatch.setattr(outages, "absences", lambda _: [(first - START, last - START)])
    monkeypatch.setattr(case.record, "pauses", [("node0", first - 1, last)] if frozen else [])
    assert found(check_outages(changed), "I1", "one by one") is not frozen


@pytest.mark.parametrize("frozen", [False, True])
def test_given_a_fact_that_begins_late_then_only_a_freeze_until_then_excuses_it(
    case: Case, monkeypatch: pytest.MonkeyPatch, frozen: bool
) -> None:
    """A node that goes on hears only then what the store answered before it fell silent."""
    begin, late, end = 20_000, 40_000, 90_000
    facts = {shard: {Outage(START + late, START + end): None} for shard in range(case.swarm.shards)}
    monkeypatch.setattr(outages, "absences", lambda _: [(begin, end)])
    monkeypatch.setattr(case.record, "outages", facts)
    monkeypatch.setattr(case.record, "pauses", [("node0", START + begin - 1, START + late)] if frozen else [])
    assert found(check_outages(case), "I1", "its facts are") is not frozen


@pytest.mark.parametrize(("went_on", "objects"), [(None, True), (32_000, False)])
def test_given_no_fact_then_only_a_freeze_that_leaves_less_than_the_grace_excuses_it(
    case: Case, monkeypatch: pytest.MonkeyPatch, went_on: int | None, objects: bool
) -> None:
    """Seed 20620416: a node that was frozen heard of its last answers 17 s into a silence of 75 s, and was put out then."""
    begin, end = 20_000, 90_000
    frozen = [("node0", START + begin - 1, START + went_on)] if went_on is not None else []
    monkeypatch.setattr(outages, "absences", lambda _: [(begin, end)])
    monkeypatch.setattr(case.record, "outages", {})
    monkeypatch.setattr(case.record, "pauses", frozen)
    assert found(check_outages(case), "I1", "its facts are []") is objects
