"""A schedule whose timer row has gone from the store fires again: the owner of its shard finds it and writes it anew."""

from __future__ import annotations

import pytest

from tests.support import tier
from tests.support.builders import DEFAULT_SHARDS, HOUR, MINUTE, SECOND, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.decision_harness import rows_of
from tidegate_core.ownership.repair.repair_sweep import TIMERS_CHECK_MS, TIMERS_PAGE
from tidegate_core.rows.store_operations import Delete, Key

FOUND_WITHIN_MS = TIMERS_CHECK_MS + TIMERS_CHECK_MS // 5 + SECOND


@pytest.fixture
def bench() -> ActorHarness:
    made = ActorHarness()
    made.run(SECOND)
    return made


def remove_timers(bench: ActorHarness, kind: str = "S", most: int | None = None) -> list[str]:
    """Takes timer rows out of the store, behind the back of whoever holds them in memory."""
    rows = [Key(str(row["pk"]), str(row["sk"])) for row in rows_of(bench.store, "T#") if row["kind"] == kind][:most]
    bench.store.write([Delete(key) for key in rows])
    return [key.sk for key in rows]


def test_given_a_timer_row_that_is_gone_then_it_is_written_anew_and_told(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("4h"))))
    bench.run(SECOND)
    (gone,) = remove_timers(bench)
    bench.run(FOUND_WITHIN_MS)

    assert [row["sk"] for row in rows_of(bench.store, "T#")] == [gone]
    (told,) = bench.notices("timer_row_missing")
    assert (told.fields["schedule"], told.fields["kind"]) == ("flights/nightly", "S")


def test_given_a_row_that_went_before_a_take_over_then_the_schedule_fires_all_the_same(bench: ActorHarness) -> None:
    """A successor arms itself by rows alone: without the sweep it would wait for ever."""
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.run(SECOND)
    remove_timers(bench)
    bench.crash()
    bench.run(FOUND_WITHIN_MS)
    bench.passes_over_routine = True
    bench.run(2 * HOUR)

    assert len(bench.notices("timer_row_missing")) == 1
    assert [row for row in bench.store.items("history") if str(row["sk"]).startswith("L#")]


def test_given_the_end_of_a_suspension_that_is_gone_then_it_is_written_anew(bench: ActorHarness) -> None:
    bench.request(an_apply(a_spec(trigger=every("1h"))))
    bench.run(SECOND)
    bench.request(a_request("suspend", until="2026-01-01T00:00:00Z"))
    bench.run(SECOND)
    gone = remove_timers(bench, "U")
    bench.run(FOUND_WITHIN_MS)

    assert [row["sk"] for row in rows_of(bench.store, "T#")] == gone
    assert [told.fields["kind"] for told in bench.notices("timer_row_missing")] == ["U"]


def test_given_schedules_that_fire_then_nothing_is_mended(bench: ActorHarness) -> None:
    """Their rows move between the sweep's two reads as well."""
    for number in range(5):
        bench.request(an_apply(a_spec(f"s-{number}", trigger=every("10s", phase=f"{number}s"))))
    bench.run(tier.at_night(10, else_=3) * MINUTE)

    assert bench.notices("timer_row_missing") == []
    assert bench.commits("rearm") == []


def test_given_more_schedules_than_a_page_then_each_is_looked_at_in_turn(bench: ActorHarness) -> None:
    number = DEFAULT_SHARDS * TIMERS_PAGE + TIMERS_PAGE
    for each in range(number):
        bench.request(an_apply(a_spec(f"s-{each}", trigger=every("30d"))))
    bench.run(5 * SECOND)
    gone = remove_timers(bench)
    assert len(gone) == number
    bench.run(4 * FOUND_WITHIN_MS)

    assert {row["sk"] for row in rows_of(bench.store, "T#")} == set(gone)
