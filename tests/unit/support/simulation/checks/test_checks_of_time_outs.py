"""A time-out in the ledger is judged by what came, by the brokers' clock, and by nothing else."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.simulation.checks.case import Case
from tests.simulation.checks.dispositions import check_dispositions
from tests.simulation.checks.request_history import SKEW_MS
from tests.simulation.world.world import World
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.outage import Outage
from tidegate_core.shard.events.evidence_log import forgetting

TIMEOUT_MS = 8_000


@pytest.fixture
def expired(world: World) -> LedgerRow:
    """What `count` launched last, as if it had been given up by a node whose clock is a little behind the brokers'."""
    row = [row for row in Case(world).rows_of["count"] if row.trigger == "events"][-1]
    at = row.nominal + TIMEOUT_MS - 27
    return replace(row, disposition="expired", reason="trigger_timeout", correlation=None, at=at)


def is_found(world: World, row: LedgerRow) -> bool:
    case = Case(world)
    case.rows = [row]
    (life,) = (life for life in case.lives if life.name == "count")
    trigger = {**life.definition.trigger, "timeout": f"{TIMEOUT_MS}ms", "triggers": [life.definition.trigger]}
    case.lives = [replace(life, definition=replace(life.definition, trigger=trigger))]
    return any(row.job_id in problem for problem in check_dispositions(case))


@pytest.mark.parametrize(
    ("came", "is_wrong"),
    [pytest.param(0, False, id="at the deadline"), pytest.param(-1, True, id="in time")],
)
def test_given_a_trigger_without_values_that_is_given_up_early_then_only_an_event_behind_its_deadline_explains_it(
    world: World, expired: LedgerRow, monkeypatch: pytest.MonkeyPatch, came: int, is_wrong: bool
) -> None:
    """Seed 830072: an event of another data partition, and with it the brokers' clock, was past the deadline."""
    entry = {"leaf": 0, "key": "a9", "kind": "data_partition", "partition": "a9"}
    chunk = json.dumps([{**entry, "at": expired.nominal + TIMEOUT_MS + came}])
    seen = Case(world).record.evidence[expired.job_id]
    monkeypatch.setattr(seen, "chunks", [chunk])
    assert is_found(world, expired) is is_wrong
    of_another = replace(expired, correlation="day1")
    assert is_found(world, of_another)


def test_given_a_latch_that_was_forgotten_at_the_deadline_then_it_is_no_event(
    world: World, expired: LedgerRow, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk = json.dumps([forgetting(0, expired.nominal + TIMEOUT_MS)])
    monkeypatch.setattr(Case(world).record.evidence[expired.job_id], "chunks", [chunk])
    assert is_found(world, expired)


@pytest.mark.parametrize(("ended", "is_wrong"), [(40, False), (5_000, True)])
def test_given_a_fact_that_an_owner_who_was_put_out_just_then_did_not_know_then_its_time_out_was_over(
    world: World, expired: LedgerRow, monkeypatch: pytest.MonkeyPatch, ended: int | None, is_wrong: bool
) -> None:
    """Seed 37000009: its successor had found the outage longer by all of its time, a millisecond before by its own clock."""
    at = expired.nominal + TIMEOUT_MS + SKEW_MS
    row = replace(expired, reason="constraint_timeout", at=at, detail="concurrency")
    case = Case(world)
    case.rows = [row]
    (life,) = (life for life in case.lives if life.name == "count")
    case.lives = [replace(life, definition=replace(life.definition, pending_timeout=f"{TIMEOUT_MS}ms"))]
    shard = int(row.job_id[:4])
    stint = next(each for each in case.record.stints.values() if each in case.stints_of_shard(shard))
    of_before = replace(stint, begun=row.nominal, ended=None if ended is None else at + ended)
    monkeypatch.setattr(case.record, "stints", {of_before.name: of_before})
    monkeypatch.setattr(case.record, "outages", {shard: {Outage(row.nominal - 100_000, at - 1): 0}})
    assert any(row.job_id in problem and "it waited" in problem for problem in check_dispositions(case)) is is_wrong
