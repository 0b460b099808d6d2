"""Overlap policies and priorities from the request to the ledger (SEMANTICS 4 and 7.3; rows CD-031, CD-034, CD-037)."""

from __future__ import annotations

import itertools
from collections import Counter
from typing import Any

import pytest

from tests.support import tier
from tests.support.builders import HOUR, MINUTE, NOW, SECOND, a_request, a_spec, an_apply, at_most, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.commands import end_pending
from tidegate_core.language.definitions.schedule_validation import schedule_warnings
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.triggers import TimeTrigger
from tidegate_core.language.values.instants import format_instant
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.shard.job_order import flexible_until

LONG = Behaviour(runs_for=35 * SECOND)
CLOSED = {"type": "time_window", "opens": "03:00", "closes": "04:00"}


def a_bench(overlap: str, behaviour: Behaviour = LONG, **more: Any) -> ActorHarness:
    """A schedule that fires each 10 s, with runs of 35 s."""
    bench = ActorHarness(shards=1, behaviour=behaviour)
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap=overlap, **more)))
    return bench


def entries(bench: ActorHarness) -> list[LedgerRow]:
    return sorted((from_item(LedgerRow, item) for item in bench.rows("L#")), key=lambda row: row.nominal)


def waiting(bench: ActorHarness) -> list[Job]:
    jobs = [from_item(Job, item) for item in bench.rows("J#")]
    return sorted((job for job in jobs if job.state == "pending_constraint"), key=lambda job: job.nominal)


def ends(bench: ActorHarness) -> Counter[str]:
    return Counter(f"{row.disposition}/{row.reason}".rstrip("/") for row in entries(bench))


def most_at_a_time(bench: ActorHarness) -> int:
    marks = [(row.started_at or 0, 1) for row in entries(bench) if row.started_at]
    marks += [(row.ended_at or 0, -1) for row in entries(bench) if row.started_at]
    running, most = 0, 0
    for _, change in sorted(marks):
        running += change
        most = max(most, running)
    return most


def test_given_skip_then_what_comes_beside_a_run_is_skipped_with_its_blocker() -> None:
    bench = a_bench("skip")
    bench.run(5 * MINUTE)
    assert most_at_a_time(bench) == 1
    assert len(bench.started) == 8
    assert ends(bench) == Counter({"launched": 7, "skipped/overlap": 22})
    runs = {order.run_id for order in bench.started}
    assert all((row.detail or "").removeprefix("still open: ") in runs for row in entries(bench) if row.reason)
    assert waiting(bench) == []


def test_given_skip_and_a_limit_of_its_own_then_as_many_run_as_that_allows() -> None:
    bench = a_bench("skip", constraints=[at_most(3)])
    bench.run(5 * MINUTE)
    assert most_at_a_time(bench) == 3
    assert ends(bench)["skipped/overlap"] > 3


def test_given_keep_latest_then_one_waits_and_it_is_the_newest() -> None:
    bench = a_bench("keep_latest")
    for _ in range(30):
        bench.run(10 * SECOND)
        assert len(waiting(bench)) <= 1
    assert most_at_a_time(bench) == 1
    assert set(ends(bench)) == {"launched", "skipped/replaced"}
    launched = [row for row in entries(bench) if row.disposition == "launched"]
    # What runs next is what came last before the one before it ended.
    for before, after in itertools.pairwise(launched):
        assert before.ended_at is not None
        assert after.nominal <= before.ended_at < after.nominal + 10 * SECOND


def test_given_coalesce_then_each_run_stands_for_all_that_came_meanwhile() -> None:
    bench = a_bench("coalesce")
    bench.run(5 * MINUTE)
    bench.request(a_request("suspend"))
    bench.run(MINUTE)
    rows = entries(bench)
    instants = [row.nominal for row in rows]
    assert instants == sorted(set(instants))  # Each instant has its own entry.
    merged = [row for row in rows if row.disposition == "coalesced"]
    stood_for = [row.covered or 1 for row in rows if row.disposition == "launched"]
    assert max(stood_for) >= 4
    assert sum(stood_for) + sum(row.covered or 1 for row in rows if row.disposition == "cancelled") == len(rows)
    told = {order.run_id: order.context["covered"] for order in bench.started}
    runs = {row.job_id: row for row in rows}
    for row in merged:
        into = runs[(row.detail or "").removeprefix("into ")]
        assert into.covered is not None
        assert into.covered_from is not None
        assert into.covered_from <= row.nominal < into.nominal
        assert into.disposition != "launched" or format_instant(row.nominal) in str(told[into.job_id])


@pytest.mark.parametrize("overlap", ["keep_latest", "coalesce"])
def test_given_what_waits_is_renewed_again_and_again_then_it_still_waits_too_long(overlap: str) -> None:
    """Whoever stands for others has their pending time-out: with one of its own each it would never come."""
    bench = a_bench(overlap, constraints=[CLOSED], pending_timeout="45s")
    bench.run(3 * MINUTE)
    expired = [row for row in entries(bench) if row.disposition == "expired"]
    assert len(expired) == 3
    assert {row.reason for row in expired} == {"constraint_timeout"}
    assert len(waiting(bench)) == 1


@pytest.mark.parametrize("overlap", ["keep_latest", "coalesce"])
def test_given_a_delay_then_the_one_that_takes_the_place_of_others_waits_for_its_own(overlap: str) -> None:
    bench = a_bench(overlap, constraints=[{"type": "delay", "after": "8s"}])
    bench.run(5 * MINUTE)
    launched = [row for row in entries(bench) if row.disposition == "launched"]
    assert len(launched) >= 4
    assert all((row.admitted_at or 0) >= row.nominal + 8 * SECOND for row in launched)


def test_given_a_queue_that_overflows_then_it_stays_as_long_as_it_may_and_nothing_is_uncovered() -> None:
    bench = a_bench("queue", Behaviour(runs_for=None), max_pending=5)
    bench.run(3 * MINUTE)
    jobs = waiting(bench)
    assert len(jobs) == 5
    made = 1 + sum(job.stands_for for job in jobs)
    assert made == 18
    assert ends(bench) == Counter({"coalesced/max_pending": 12})


def test_given_a_queue_that_rejects_then_the_newest_has_an_entry_that_says_so() -> None:
    bench = a_bench("queue", Behaviour(runs_for=None), max_pending=5, on_overflow="reject")
    bench.run(3 * MINUTE)
    assert len(waiting(bench)) == 5
    assert ends(bench) == Counter({"skipped/max_pending": 12})


def test_given_cancel_running_then_the_newest_takes_the_place_of_what_runs() -> None:
    bench = a_bench("cancel_running")
    bench.run(2 * MINUTE)
    rows = entries(bench)
    assert most_at_a_time(bench) == 1
    assert {row.state for row in rows} == {"killed"}
    assert len(bench.started) >= 11
    assert waiting(bench) == []


def test_given_cancel_running_before_the_gate_then_the_run_is_closed_and_the_ledger_says_why() -> None:
    bench = a_bench("cancel_running", Behaviour(starts_after=None))
    bench.run(MINUTE)
    assert ends(bench) == Counter({"cancelled/overlap": 5})


def test_given_cancel_running_and_a_closed_window_then_what_runs_is_left_alone() -> None:
    bench = a_bench("cancel_running", Behaviour(runs_for=None))
    bench.run(5 * SECOND)
    bench.now = NOW + 20 * SECOND
    bench.run(5 * SECOND)
    (first,) = bench.started
    spec = a_spec(trigger=every("10s"), overlap="cancel_running", constraints=[CLOSED])
    bench.request(an_apply(spec, "again"))
    bench.run(5 * MINUTE)
    assert [order.run_id for order in bench.started] == [first.run_id]
    assert len(waiting(bench)) == 1


@pytest.mark.parametrize("crash_after", range(1, 25, tier.at_night(1, else_=3)))
@pytest.mark.parametrize("overlap", ["skip", "keep_latest", "coalesce", "cancel_running"])
def test_given_a_crash_between_any_two_effects_then_each_instant_is_accounted_for_once(
    overlap: str, crash_after: int
) -> None:
    bench = a_bench(overlap, Behaviour(runs_for=25 * SECOND))
    bench.run(SECOND)
    first = bench.now - bench.now % (10 * SECOND) + 10 * SECOND
    bench.effects_outside, bench.crash_after = 0, crash_after
    bench.run(2 * MINUTE)
    bench.request(a_request("suspend"))
    stopped = bench.now
    bench.run(MINUTE)
    assert most_at_a_time(bench) == 1
    accounted = [row.nominal for row in entries(bench)]
    assert accounted == list(range(first, stopped + 1, 10 * SECOND))
    assert waiting(bench) == []


def test_given_a_run_by_hand_then_overlap_holds_for_it_unless_it_is_forced() -> None:
    """SEMANTICS 4: a manual trigger skips the trigger only."""
    bench = ActorHarness(shards=1, behaviour=Behaviour(runs_for=None))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("100h"), overlap="skip")))
    bench.request(a_request("trigger", request_id="first"))
    bench.run(SECOND)
    bench.request(a_request("trigger", request_id="second"))
    bench.run(SECOND)
    bench.request(a_request("trigger", request_id="forced", force_overlap=True))
    bench.run(SECOND)
    ids = {name: bench.receipts()[name]["id"] for name in ("first", "second", "forced")}
    assert [order.run_id for order in bench.started] == [ids["first"], ids["forced"]]
    assert [(row.job_id, row.reason) for row in entries(bench)] == [(ids["second"], "overlap")]


def test_given_a_forced_run_then_the_next_occurrence_does_not_run_beside_it() -> None:
    bench = a_bench("skip", Behaviour(runs_for=None))
    bench.request(a_request("trigger", force_overlap=True))
    bench.run(15 * SECOND)
    assert len(bench.started) == 1
    assert ends(bench)["skipped/overlap"] == 1


def test_given_as_many_waiting_as_may_then_a_run_by_hand_is_refused_and_the_answer_says_why() -> None:
    bench = a_bench("queue", Behaviour(runs_for=None), max_pending=3)
    bench.run(35 * SECOND)
    bench.request(a_request("trigger", request_id="soon"))
    bench.run(10 * SECOND)
    bench.request(a_request("trigger", request_id="late"))
    receipts = bench.receipts()
    assert (receipts["soon"]["status"], receipts["late"]["status"]) == ("accepted", "rejected")
    (error,) = receipts["late"]["errors"]
    assert "max_pending" in error["problem"]
    assert "raise max_pending" in error["hint"]


def test_given_jobs_that_an_update_has_ended_and_cannot_remove_yet_then_a_run_by_hand_does_not_wait_behind_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = a_bench("queue", constraints=[CLOSED], max_pending=1)
    bench.run(15 * SECOND)
    monkeypatch.setattr(end_pending, "end", cannot_be_ended)
    bench.request(an_apply(a_spec(trigger=every("100h"), overlap="queue", max_pending=1), "anew", on_update="restart"))
    bench.run(SECOND)
    (old,) = waiting(bench)
    bench.request(a_request("trigger", request_id="first"))
    bench.run(SECOND)
    assert bench.receipts()["first"]["status"] == "accepted"
    assert [order.run_id for order in bench.started] == [bench.receipts()["first"]["id"]]
    assert [job.id for job in waiting(bench)] == [old.id]
    monkeypatch.undo()
    bench.run(11 * MINUTE)
    assert waiting(bench) == []


def cannot_be_ended(*_: object) -> None:
    raise RuntimeError


def test_given_runs_by_hand_under_allow_then_they_alone_are_counted() -> None:
    bench = a_bench("allow", constraints=[CLOSED])
    for number in range(101):
        bench.request(a_request("trigger", request_id=f"t-{number:03d}"))
    bench.run(SECOND)
    statuses = [str(receipt["status"]) for name, receipt in sorted(bench.receipts().items()) if name.startswith("t-")]
    assert statuses == ["accepted"] * 100 + ["rejected"]


@pytest.mark.parametrize(
    ("overlap", "more", "parked"),
    [
        pytest.param("queue", {"max_pending": 5}, 5, id="queue"),
        pytest.param("allow", {}, 100, id="allow"),
        pytest.param("skip", {}, 100, id="skip"),
        pytest.param("keep_latest", {}, 1, id="keep_latest"),
    ],
)
def test_given_a_hold_then_what_it_parks_has_its_bound_and_nothing_is_uncovered(
    overlap: str, more: dict[str, Any], parked: int
) -> None:
    bench = a_bench(overlap, **more)
    bench.run(SECOND)
    bench.request(a_request("suspend", mode="hold"))
    bench.run(20 * MINUTE)
    jobs = waiting(bench)
    assert len(jobs) == parked
    merged = sum(row.disposition == "coalesced" for row in entries(bench))
    replaced = sum(row.reason == "replaced" for row in entries(bench))
    assert sum(job.stands_for for job in jobs) == len(jobs) + merged
    assert merged + replaced + len(jobs) >= 119


def test_given_old_jobs_that_may_finish_then_each_version_has_its_own_overlap() -> None:
    bench = a_bench("keep_latest", constraints=[CLOSED])
    bench.run(25 * SECOND)
    (old,) = waiting(bench)
    bench.request(
        an_apply(a_spec(trigger=every("10s"), overlap="queue", constraints=[CLOSED]), "second", on_update="finish_old")
    )
    bench.run(MINUTE)
    assert [job.version for job in waiting(bench)] == [1, *[2] * 6]
    assert old.id in {job.id for job in waiting(bench)}


@pytest.mark.parametrize(
    ("overlap", "more"),
    [
        pytest.param("skip", {}, id="skip"),
        pytest.param("allow", {"constraints": [{**at_most(1), "on_unmet": "abort"}]}, id="a limit that aborts"),
    ],
)
def test_given_a_flexible_window_then_what_is_in_the_way_ends_no_occurrence_before_its_own_instant(
    overlap: str, more: dict[str, Any]
) -> None:
    """What is open at its nominal may be over by then."""
    bench = ActorHarness(shards=1, behaviour=Behaviour(runs_for=20 * SECOND))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("10m", flexible="5m"), overlap=overlap, **more)))
    nominal = -(-bench.now // (10 * MINUTE)) * 10 * MINUTE
    bench.run(nominal - bench.now - 10 * SECOND)
    bench.request(a_request("trigger"))
    bench.run(9 * MINUTE)
    (row,) = [row for row in entries(bench) if row.nominal == nominal]
    assert row.disposition == "launched"


@pytest.mark.parametrize(
    ("overlap", "longest", "too_long"),
    [
        pytest.param({"overlap": "keep_latest"}, "10m", "12m", id="keep_latest"),
        pytest.param({"overlap": "coalesce"}, "10m", "12m", id="coalesce"),
        pytest.param({"overlap": "cancel_running"}, "10m", "12m", id="cancel_running"),
        pytest.param({"overlap": "queue", "max_pending": 2}, "20m", "25m", id="queue"),
        pytest.param({"overlap": "queue", "max_pending": 2, "on_overflow": "reject"}, "20m", "25m", id="reject"),
    ],
)
def test_given_overlap_that_counts_what_waits_then_a_longer_flexible_window_than_it_bears_is_what_an_apply_warns_of(
    overlap: dict[str, Any], longest: str, too_long: str
) -> None:
    """With `keep_latest`, a period of 10 minutes and a window of 10 hours 2 of 143 ran in a day, and nobody was told."""
    for window, crowded in ((longest, False), (too_long, True)):
        document = a_spec(trigger=every("10m", flexible=window), **overlap)
        spec = parse_schedule(document)
        assert isinstance(spec.trigger, TimeTrigger)
        bench = ActorHarness(shards=1, behaviour=Behaviour(runs_for=20 * SECOND))
        bench.passes_over_routine = True
        bench.run(SECOND)
        bench.request(an_apply(document))
        bench.run(4 * HOUR)
        places = {row: flexible_until(spec.trigger, "flights/nightly", row.nominal) for row in entries(bench)}
        early = [row for row, place in places.items() if row.disposition != "launched" and row.at < place]
        assert bool(early) is crowded
        assert bool(schedule_warnings(spec, NOW)) is crowded


# -- priorities -----------------------------------------------------------------------------------------------------------


def a_program_of_one(bench: ActorHarness, **priorities: str) -> None:
    for name, priority in priorities.items():
        limits = [at_most(1, "program")]
        spec = a_spec(name, every("100h"), file="/jobs/same.py", constraints=limits, overlap="allow", priority=priority)
        bench.request(an_apply(spec))


def test_given_a_shared_limit_then_classes_go_in_their_order_and_within_one_who_came_first() -> None:
    bench = ActorHarness(shards=4, behaviour=Behaviour(runs_for=2 * MINUTE))
    bench.run(SECOND)
    a_program_of_one(bench, a="lowest", b="low", c="medium", d="high", e="highest", busy="medium")
    bench.run(SECOND)
    bench.request(a_request("trigger", "busy"))
    bench.run(5 * SECOND)
    for number in (1, 2):
        for name in "abcde":
            bench.request(a_request("trigger", name, f"{name}-{number}"))
            bench.run(SECOND)
    bench.run(60 * MINUTE)
    ids = {str(receipt["id"]): request for request, receipt in bench.receipts().items()}
    ran = [ids[order.run_id] for order in bench.started]
    assert ran == ["trigger-busy", *(f"{name}-{number}" for name in "edcba" for number in (1, 2))]


def test_given_a_stream_of_higher_ones_then_a_lower_one_ages_past_them() -> None:
    bench = ActorHarness(shards=1, behaviour=Behaviour(runs_for=4 * MINUTE))
    bench.passes_over_routine = True
    bench.run(SECOND)
    a_program_of_one(bench, low="low")
    spec = a_spec("stream", every("3m"), file="/jobs/same.py", overlap="allow", priority="high")
    bench.request(an_apply({**spec, "constraints": [at_most(1, "program")]}))
    bench.run(10 * MINUTE)
    bench.request(a_request("trigger", "low"))
    asked = bench.now
    bench.run(150 * MINUTE)
    (started,) = [row.started_at for row in entries(bench) if row.name == "low"]
    assert started is not None
    # Two classes, and those that came before it and in its first hour.
    assert 60 * MINUTE <= started - asked <= 150 * MINUTE


# -- runs from before -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["carry", "restart", "finish_old"])
@pytest.mark.parametrize(
    ("overlap", "constraints", "most"),
    [("queue", [], 1), ("skip", [], 1), ("allow", [at_most(2)], 2), ("queue", [at_most(2)], 2)],
)
def test_given_an_update_that_bounds_the_runs_then_those_that_are_open_count(
    how: str, overlap: str, constraints: list[Any], most: int
) -> None:
    """Admitted under `allow` they hold no permit: what came after the update went beside them."""
    bench = ActorHarness(behaviour=Behaviour(starts_after=10, runs_for=10 * MINUTE))
    bench.run(SECOND)
    bounded = a_spec(trigger=every("100h"), overlap=overlap, constraints=constraints, on_update=how)
    for request in (
        an_apply(a_spec(trigger=every("100h"), overlap="allow"), "first"),
        *(a_request("trigger", request_id=f"before-{number}") for number in range(2)),
        an_apply(bounded, "second"),
        a_request("trigger", request_id="after"),
    ):
        bench.request(request)
        bench.run(SECOND)
    bench.crash()
    bench.run(9 * MINUTE)
    job = bench.receipts()["after"]["id"]
    assert len(bench.started) == 2
    bench.run(MINUTE)
    outcome = "skipped/overlap" if overlap == "skip" else "launched"
    assert [order.run_id for order in bench.started][2:] == ([] if overlap == "skip" else [job])
    bench.run(11 * MINUTE)
    assert ends(bench) == Counter(["launched", "launched"]) + Counter([outcome])
    assert len(bench.rows("J#")) == len(bench.rows("LIMIT")) == 0


def test_given_cancel_running_since_an_update_then_the_run_from_before_it_is_cancelled() -> None:
    bench = ActorHarness(behaviour=Behaviour(starts_after=10, runs_for=10 * MINUTE))
    bench.run(SECOND)
    for overlap in ("allow", "cancel_running"):
        bench.request(an_apply(a_spec(trigger=every("100h"), overlap=overlap), f"apply-{overlap}"))
        bench.request(a_request("trigger", request_id=f"now-{overlap}"))
        bench.run(SECOND)
    bench.run(MINUTE)
    assert [mark.begins for mark in bench.marks] == [True, False, True]
