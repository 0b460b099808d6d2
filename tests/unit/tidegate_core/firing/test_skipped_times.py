"""What a clock change leaves out is in the ledger, once, with the next occurrence (SEMANTICS 2.1, 2.3)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders import HOUR, SECOND, Doc, a_definition, a_request, a_schedule, a_spec, an_apply, every
from tests.support.harness.actor_harness import ActorHarness
from tests.support.harness.decision_harness import DecisionHarness
from tidegate_core.firing.fire import FireSchedule
from tidegate_core.language.values.instants import format_instant, parse_instant
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.trigger_rows import TimerRow

REF = "flights/nightly"
BEFORE, AFTER = parse_instant("2026-03-28T01:30:00Z"), parse_instant("2026-03-30T00:30:00Z")
"""The occurrences beside the night in which Rome has no 02:30."""


def nightly(**more: Any) -> Doc:
    return {"type": "cron", "expression": "30 2 * * *", "zone": "Europe/Rome", "dst_gap": "skip", **more}


def a_desk(trigger: Doc, next_nominal: int = AFTER, **state: Any) -> DecisionHarness:
    desk = DecisionHarness(a_definition(a_spec(trigger=trigger)))
    state = {"fired_through": BEFORE, "activated_at": BEFORE - 1, **state}
    desk.lay(a_schedule(next_nominal=next_nominal, **state), TimerRow(at=next_nominal, kind="S", ref=REF))
    return desk


def fire(desk: DecisionHarness, at: int = AFTER) -> list[LedgerRow]:
    desk.decide(FireSchedule(TimerRow(at=at, kind="S", ref=REF)), at)
    return desk.records(LedgerRow, "L#")


def test_given_a_time_that_the_gap_left_out_then_the_next_occurrence_tells_it() -> None:
    desk = a_desk(nightly())
    (told,) = fire(desk)

    assert (told.disposition, told.reason, told.trigger) == ("skipped", "dst_gap", "time")
    assert format_instant(told.nominal) == "2026-03-29T01:00:00Z"
    assert told.detail == ("local time 2026-03-29 02:30:00 does not exist: the clock was set forward; dst_gap is skip")
    assert [job.nominal for job in desk.records(Job, "J#")] == [AFTER]


def test_given_the_occurrence_after_that_then_it_is_not_told_again() -> None:
    desk = a_desk(nightly())
    fire(desk)
    following = AFTER + 86_400_000

    assert len(fire(desk, following)) == 1


def test_given_a_shifted_time_then_it_is_an_occurrence_and_nothing_was_skipped() -> None:
    desk = a_desk(nightly(dst_gap="shift"), parse_instant("2026-03-29T01:00:00Z"))

    assert fire(desk, parse_instant("2026-03-29T01:00:00Z")) == []


def test_given_an_occurrence_at_the_end_of_the_gap_then_both_are_told_apart() -> None:
    """Rome's 03:00 is the first instant after the gap, and an occurrence of its own."""
    end = parse_instant("2026-03-29T01:00:00Z")
    desk = a_desk(nightly(expression="0 2,3 * * *"), end)
    (told,) = fire(desk, end)
    (job,) = desk.records(Job, "J#")

    assert told.nominal == job.nominal == end
    assert told.job_id != job.id


def test_given_activation_after_the_gap_then_it_is_none_of_the_schedules() -> None:
    desk = a_desk(nightly(), activated_at=AFTER - 1000, fired_through=0)

    assert fire(desk) == []


def test_given_a_day_that_the_zone_left_out_then_it_is_a_zone_jump_by_any_policy() -> None:
    noon = parse_instant("2011-12-30T22:00:00Z")
    before = noon - 86_400_000
    desk = a_desk(
        {"type": "cron", "expression": "0 12 * * *", "zone": "Pacific/Apia"},
        noon,
        fired_through=before,
        activated_at=before - 1,
    )
    (told,) = fire(desk, noon)

    assert (told.disposition, told.reason) == ("skipped", "zone_jump")
    assert "2011-12-30 12:00:00" in str(told.detail)


@pytest.mark.parametrize("by", ["resume", "until", "on_create", "after_update", "nothing"])
def test_given_a_gap_in_a_span_that_is_made_up_for_then_it_is_told_with_that(by: str) -> None:
    """Found in review: the days beside it had their entries, and the night in between had none, as if nothing had been made up for."""
    bench = ActorHarness(shards=1)
    bench.passes_over_routine = True
    bench.now = BEFORE - HOUR
    bench.run(SECOND)
    back = AFTER + 7 * HOUR
    first = every("5000h") if by == "after_update" else nightly()
    if by != "on_create":
        bench.request(an_apply(a_spec(trigger=first, catchup={"after_pause": "none" if by == "nothing" else "all"})))
        bench.run(SECOND)
    if by in {"resume", "until", "nothing"}:
        bench.request(a_request("suspend", **({"until": format_instant(back)} if by == "until" else {})))
    bench.run(back + SECOND - bench.now)
    if by in {"resume", "nothing"}:
        bench.request(a_request("resume"))
    elif by in {"on_create", "after_update"}:
        trigger = nightly(start=format_instant(BEFORE))
        bench.request(an_apply(a_spec(trigger=trigger, catchup={by: "all"}), "made"))
    bench.run(24 * HOUR)
    told = [(what, nominal) for what, _, nominal, _ in bench.ledger() if nominal < back]
    gap = parse_instant("2026-03-29T01:00:00Z")
    assert told == ([] if by == "nothing" else [("launched", BEFORE), ("launched", AFTER), ("skipped/dst_gap", gap)])
