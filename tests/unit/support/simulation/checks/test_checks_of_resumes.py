"""What a resume left out of the backlog may not start behind its answer: only what a hold had parked, and nobody made up for, counts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.checks.case import Case
from tests.simulation.checks.request_history import SKEW_MS
from tests.simulation.checks.stops import check_stops
from tests.simulation.world.observations import Body, ReceiptSeen
from tests.unit.support.simulation.checks.lying import MINUTE_MS, found
from tests.unit.support.simulation.checks.steps import a_step
from tidegate_core.rows import keys
from tidegate_core.rows.outage import Outage


def bodies_of_ticks(case: Case, number: int) -> list[Body]:
    """Returns programs of the first jobs that were made of `tick`, in the order of their nominals."""
    runs = [row.job_id for row in sorted(case.rows_of["tick"], key=lambda row: row.nominal) if row.trigger == "time"]
    return [case.bodies_by_run[run][0] for run in runs if run in case.bodies_by_run][:number]


@pytest.mark.parametrize(
    ("mode", "backlog", "started", "is_wrong"),
    [
        pytest.param("hold", "none", 1, True, id="none of them"),
        pytest.param("hold", "last", 2, True, id="more than the last one"),
    ],
)
def test_given_a_resume_that_left_a_backlog_out_then_no_more_of_it_starts_than_it_said(
    case: Case, monkeypatch: pytest.MonkeyPatch, mode: str, backlog: str, started: int, is_wrong: bool
) -> None:
    assert told(case, monkeypatch, mode=mode, backlog=backlog, started=started) is is_wrong


@pytest.mark.parametrize("excuse", ["an outage", "from its end on", "behind the resume", "past the gate before"])
def test_given_what_was_no_part_of_the_backlog_then_it_may_start(
    case: Case, monkeypatch: pytest.MonkeyPatch, excuse: str
) -> None:
    assert not told(case, monkeypatch, mode="hold", backlog="none", started=1, excuse=excuse)


def told(
    case: Case, monkeypatch: pytest.MonkeyPatch, *, mode: str, backlog: str, started: int, excuse: str | None = None
) -> bool:
    """Whether the check objects to the first so many ticks, that began long behind a resume."""
    (life,) = [life for life in case.lives if life.name == "tick"]
    first = bodies_of_ticks(case, 2)
    nominals = [case.rows_by_id[body.run_id][0].nominal for body in first]
    resumed = max(nominals) + SKEW_MS + 1
    if excuse == "behind the resume":
        resumed = nominals[0] + SKEW_MS
    if excuse == "an outage":
        fact = {Outage(nominals[0], nominals[0] + 1): 0}
        monkeypatch.setattr(case.record, "outages", dict.fromkeys(range(case.swarm.shards), fact))
        monkeypatch.setattr(keys, "shard_of_run", lambda _: 0)
    until = nominals[0] + SKEW_MS if excuse == "from its end on" else None
    suspend, resume = (
        a_step("suspend", resumed - 100, mode=mode, until=until),
        a_step("resume", resumed, backlog=backlog),
    )
    if excuse == "past the gate before":
        running = {"status": "accepted", "running": [first[0].run_id]}
        suspend = replace(suspend, asked=replace(suspend.asked, receipt=ReceiptSeen(suspend.done, running)))
    late = [replace(body, start=resumed + MINUTE_MS) for body in first[:started]]
    monkeypatch.setattr(case.record, "bodies", late)
    lie = Case(case.world)
    lie.lives = [life]
    monkeypatch.setattr(lie, "steps", lambda _: [suspend, resume])
    return found(check_stops(lie), "I7", "tick", f"the backlog {backlog}")


@pytest.mark.parametrize(
    ("taken_ms", "is_wrong"),
    [
        pytest.param(-SKEW_MS - 1, True, id="it waited by then"),
        pytest.param(1, False, id="what it counts was not there yet"),
    ],
)
def test_given_a_job_of_events_then_it_was_a_part_of_the_backlog_where_what_it_counts_was_there(
    case: Case, monkeypatch: pytest.MonkeyPatch, taken_ms: int, is_wrong: bool
) -> None:
    """A tick, which names its job, may be told of long after its instant."""
    (life,) = [life for life in case.lives if life.name == "count"]
    row = next(row for row in case.rows_of["count"] if row.trigger == "events" and row.job_id in case.bodies_by_run)
    (body,) = case.bodies_by_run[row.job_id]
    resumed = row.nominal + MINUTE_MS
    seen = case.record.evidence[row.job_id]
    monkeypatch.setattr(seen, "taken", [resumed + taken_ms for _ in seen.chunks])
    monkeypatch.setattr(case.record, "bodies", [replace(body, start=resumed + MINUTE_MS)])
    steps = [a_step("suspend", row.nominal - MINUTE_MS, mode="hold"), a_step("resume", resumed, backlog="none")]
    lie = Case(case.world)
    lie.lives = [life]
    monkeypatch.setattr(lie, "steps", lambda _: steps)
    assert found(check_stops(lie), "I7", "count", "the backlog none") is is_wrong


@pytest.mark.parametrize(
    ("on_update", "is_wrong"),
    [pytest.param("restart", False, id="brought anew"), pytest.param("carry", True, id="bound to it")],
)
def test_given_a_past_instant_that_an_apply_behind_the_resume_brings_anew_then_it_may_start(
    case: Case, monkeypatch: pytest.MonkeyPatch, on_update: str | None, is_wrong: bool
) -> None:
    """A schedule was deleted, and made anew, behind a resume without its backlog."""
    (life,) = [life for life in case.lives if life.name == "once"]
    row = next(row for row in case.rows_of["once"] if row.job_id in case.bodies_by_run)
    (body,) = case.bodies_by_run[row.job_id]
    resumed = row.nominal + MINUTE_MS
    steps = [a_step("suspend", row.nominal - MINUTE_MS, mode="hold"), a_step("resume", resumed, backlog="none")]
    if on_update is not None:
        applied = a_step("apply", resumed + MINUTE_MS)
        asked = replace(applied.asked, document={**applied.asked.document, "on_update": on_update})
        steps.append(replace(applied, asked=asked, version=row.version))
    monkeypatch.setattr(case.record, "bodies", [replace(body, start=resumed + 2 * MINUTE_MS)])
    lie = Case(case.world)
    lie.lives = [life]
    monkeypatch.setattr(lie, "steps", lambda _: steps)
    assert found(check_stops(lie), "I7", "once", "the backlog none") is is_wrong
