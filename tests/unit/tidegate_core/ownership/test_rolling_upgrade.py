"""Nodes of two releases take turns on one store: the older one knows of no bounds, and takes one for an instant (I6, decision 26)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any
from unittest.mock import patch

import pytest

from tests.support.builders import HOUR, MINUTE, SECOND, Doc, a_request, a_schedule, a_spec, an_apply
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.decision_harness import DecisionHarness
from tests.support.harness.two_releases import NEWER_FIELDS, TwoReleases
from tidegate_core.engine.actor_inputs import Migrated
from tidegate_core.language.triggers.search import Search
from tidegate_core.language.values.instants import Instant
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.schema_version import BOUNDS, FIELDS, FIRST, Readable, StoreSchema
from tidegate_core.rows.store_operations import Put
from tidegate_core.writes.unit_of_work import TooNew

LEFT_OUT: list[Doc] = [{"type": "cron", "expression": "10-39 * * * *"}, {"type": "cron", "expression": "* 4,7 * * *"}]
SEVENS: Doc = {"type": "cron", "dialect": "unix6", "expression": "30 */7 * * * *", "exclude": LEFT_OUT}
"""Searches that are cut end at the begin of a minute, and nothing is due there."""
STEPS = 3
"""Of each decision: every search is cut, as those over years are."""


@pytest.fixture(autouse=True)
def cut_searches() -> Iterator[None]:
    with patch.object(Search, "of_a_decision", lambda parts=1: Search(STEPS)):
        yield


def told(bench: TwoReleases, *, to_older: bool | None) -> tuple[set[tuple[str, Instant]], bool]:
    """Hours of a schedule with its requests, during which holders take turns; what came of it, and whether bounds were written.

    Args:
        bench: Not begun yet.
        to_older: Whether the older release is the first to take over; None: nobody does.
    """
    bounds = False
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=SEVENS), "a"))
    for number in range(1, 15):
        bench.run(25 * MINUTE + number * SECOND)
        bounds = bounds or any(NEWER_FIELDS & row.keys() for row in bench.rows("S#"))
        if to_older is not None:
            bench.is_taken_over(to_older=to_older == bool(number % 2))
        if number == 7:
            bench.request(a_request("schedule.suspend", request_id="s"))
        if number == 9:
            bench.request(a_request("schedule.resume", request_id="r"))
        if number == 13:
            bench.request(an_apply({**a_spec(trigger=SEVENS), "labels": {"version": "two"}}, "b"))
    bench.run(HOUR)
    rows = [from_item(LedgerRow, row) for row in bench.rows("L#")]
    return {(f"{row.disposition}/{row.reason}", row.nominal) for row in rows}, bounds


@cache
def told_by_the_newer_alone() -> tuple[frozenset[tuple[str, int]], bool]:
    alone, bounds = told(TwoReleases(StoreSchema(writes=BOUNDS, rows_from=BOUNDS)), to_older=None)
    return frozenset(alone), bounds


def test_given_the_newer_release_alone_then_it_writes_bounds() -> None:
    alone, bounds = told_by_the_newer_alone()
    assert bounds
    assert len(alone) > 10


@pytest.mark.parametrize("to_older", [False, True])
def test_given_two_releases_side_by_side_then_no_bound_is_written_and_nothing_fires_at_one(*, to_older: bool) -> None:
    both, bounds = told(TwoReleases(StoreSchema()), to_older=to_older)
    assert not bounds
    assert both == told_by_the_newer_alone()[0]


def test_given_no_gate_then_the_older_release_fires_where_nothing_is_due() -> None:
    """What the gate is for: this story would be told otherwise without it."""
    alone, _ = told_by_the_newer_alone()
    both, bounds = told(TwoReleases(StoreSchema(writes=BOUNDS)), to_older=True)
    assert bounds
    assert both - alone


def test_given_a_raised_version_then_a_node_that_serves_writes_it_from_now_on() -> None:
    bench = TwoReleases(StoreSchema())
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=SEVENS), "a"))
    bench.run(HOUR)
    assert bench.actor.writes == FIRST
    bench.give(Migrated(BOUNDS))
    bench.give(Migrated(FIRST))
    bench.run(SECOND)
    assert bench.actor.writes == BOUNDS
    assert any(_runs_into_a_bound(bench) for _ in range(120))


def _runs_into_a_bound(bench: TwoReleases) -> bool:
    bench.run(MINUTE)
    state = bench.state_of()
    return state is not None and bool(state.next_nominal_is_bound)


@pytest.mark.parametrize(
    "refused", [StoreSchema(writes=BOUNDS), StoreSchema(closing=BOUNDS)], ids=["written so", "about to be"]
)
def test_given_a_version_that_it_cannot_read_then_a_node_takes_nothing_over_until_that_is_taken_back(
    refused: StoreSchema,
) -> None:
    """It has fenced the shards by then, and read nothing of them: whoever raises the version looks at leases after saying so."""
    bench = ActorHarness(readable=Readable(FIRST, FIRST), writes=FIRST)
    bench.store.write([Put(keys.SCHEMA_KEY, {**to_item(refused, keys.SCHEMA_KEY), "rev": 1})])
    bench.run(30 * SECOND)
    assert not bench.actor.is_serving
    assert "newer release" in str(bench.notices("schema_refused")[0].fields["message"])
    assert not bench.rows("NODE#")
    bench.store.write([Put(keys.SCHEMA_KEY, {**to_item(StoreSchema(), keys.SCHEMA_KEY), "rev": 2})])
    bench.run(30 * SECOND)
    assert bench.actor.is_serving


def test_given_a_field_that_others_may_misread_then_a_decision_that_writes_it_is_dropped() -> None:
    state = a_schedule(next_nominal=1, next_nominal_is_bound=True)
    _, unit = DecisionHarness().prepare(_Nothing())
    unit.writes_version = FIRST
    unit._view.learn([state.key(0)], {})
    with pytest.raises(TooNew, match="next_nominal_is_bound"):
        unit.put(state, state.key(0))
    unit._view.learn([state.key(0)], {state.key(0): {**to_item(state, state.key(0)), "rev": 1}})
    unit.put(state, state.key(0))  # It stands there already: whoever misreads it does so anyway.


class _Nothing:
    name, about, stale = "nothing", "", ()

    def decide(self, unit: Any, now: int) -> None: ...


def test_given_every_versioned_field_then_it_is_one_of_its_record() -> None:
    for record, since in FIELDS.items():
        assert is_dataclass(record)
        assert since.keys() <= {field.name for field in fields(record)}
    assert ScheduleState in FIELDS
