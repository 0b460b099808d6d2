"""Constraints from the event to the program, on a virtual clock: rows of the seeds' features, and what waiting costs."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

import pytest

from tests.support import tier
from tests.support.builders import (
    DAY,
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    Doc,
    a_request,
    a_spec,
    all_of,
    an_apply,
    an_event,
    at_most,
    every,
    on_data,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.shard_bench import CLOSED, OPENS, a_bench
from tidegate_core.language.triggers import EveryTrigger
from tidegate_core.rows.effects import Read, ReadRange, Submit
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.shard.job_order import flexible_until

SHORT = Behaviour(starts_after=10, runs_for=500)
DELAY: Doc = {"type": "delay", "after": "10m"}


def since(of: str = "start", at_least: str = "5m", **more: Any) -> Doc:
    return {"type": "since_last_run", "at_least": at_least, "of": of, **more}


def window(opens: str, closes: str) -> Doc:
    return {"type": "time_window", "opens": opens, "closes": closes}


def hour_of(hour: int) -> int:
    """Of the day on which the bench begins."""
    return NOW - NOW % DAY + hour * HOUR


def place_of(trigger: Doc, hour: int) -> int:
    """Where in its flexible window that starts whose nominal is the hour."""
    return flexible_until(EveryTrigger.model_validate(trigger), "flights/nightly", hour_of(hour))


def applied(bench: ActorHarness, trigger: Doc, *constraints: Doc, **more: Any) -> ActorHarness:
    bench.request(an_apply(a_spec(trigger=trigger, constraints=list(constraints), **more)))
    bench.run(SECOND)
    return bench


def events(bench: ActorHarness, *names: str, apart: int = 0) -> None:
    for name in names:
        bench.event(an_event(name))
        bench.run(apart)


def starts(bench: ActorHarness) -> int:
    return len(bench.all_asked(Submit))


def until(bench: ActorHarness, instant: int) -> None:
    bench.run(instant - bench.now)


# -- rows of the seeds ----------------------------------------------------------------------------------------------------


def test_given_five_data_partitions_and_a_delay_then_it_starts_that_long_after_the_fifth() -> None:
    """CD-082."""
    bench = applied(a_bench(SHORT), on_data(count=5), DELAY)
    events(bench, "a", "b", "c", "d", apart=15 * MINUTE)
    events(bench, "e", apart=10 * MINUTE - SECOND)
    assert starts(bench) == 0
    bench.run(2 * SECOND)
    assert starts(bench) == 1


def test_given_any_new_data_and_a_minimum_interval_that_aborts_then_one_run_and_the_others_are_dropped() -> None:
    """TS-01, CD-080, CD-084: five data partitions spread over five minutes."""
    bench = applied(a_bench(SHORT), on_data(), since("finish", on_unmet="abort"))
    events(bench, "a", "b", "c", "d", "e", apart=MINUTE)
    bench.run(20 * MINUTE)
    dispositions = [entry[0] for entry in bench.ledger()]
    assert dispositions.count("launched") == 1
    assert dispositions.count("skipped/ran_recently") == 4


def test_given_any_new_data_and_a_minimum_interval_that_waits_then_the_others_become_one_run() -> None:
    """TS-01, the variant that waits."""
    bench = applied(a_bench(SHORT), on_data(), since("finish"))
    events(bench, "a", "b", "c", "d", "e", apart=MINUTE)
    bench.run(20 * MINUTE)
    assert [entry[0] for entry in bench.ledger()] == ["launched"] * 2
    manifests = [json.dumps(each.order.context["manifest"]) for each in bench.all_asked(Submit)]
    assert [re.findall(r'"partition": "(\w)"', each) for each in manifests] == [["a"], ["b", "c", "d", "e"]]


def test_given_an_update_while_a_job_is_delayed_then_the_old_job_never_runs() -> None:
    """TS-05: needs 5 and a delay of 10 minutes; after the update 3 and 100 ms."""
    bench = applied(a_bench(SHORT), on_data(count=5), DELAY, args=["old"])
    events(bench, "a", "b", "c", "d", "e", apart=SECOND)
    quick = a_spec(trigger=on_data(count=3), constraints=[{**DELAY, "after": "100ms"}], args=["new"])
    bench.request(an_apply(quick, "update"))
    bench.run(SECOND)
    events(bench, "f", "g", "h")
    bench.run(HOUR)
    assert [each.order.args for each in bench.all_asked(Submit)] == [("new",)]
    assert sorted(entry[0] for entry in bench.ledger()) == ["cancelled/superseded", "launched"]


@pytest.mark.parametrize("gap", [-500, -50, -1, 50])
def test_given_a_delete_close_to_the_end_of_the_delay_then_no_run_or_one_that_came_before_it(gap: int) -> None:
    """TS-07; CD-102: a delete 1 ms before the launch, and no run."""
    bench = applied(a_bench(SHORT), on_data(count=5), {**DELAY, "after": "40s"})
    events(bench, "a", "b", "c", "d", "e")
    bench.run(40 * SECOND + gap)
    before = starts(bench)
    bench.request(a_request("delete"))
    bench.run(MINUTE)
    assert starts(bench) == before == (1 if gap > 0 else 0)


def test_given_several_constraints_then_the_job_runs_when_all_of_them_hold_at_the_same_look() -> None:
    """TS-08: a window, a limit and the last run, each the last one to hold in turn."""
    bench = applied(a_bench(Behaviour(starts_after=10, runs_for=30 * MINUTE)), every("1h"), since("start", "20m"))
    bench.request(a_request("trigger"))
    bench.run(SECOND)
    bench.request(an_apply(a_spec(trigger=every("1h"), constraints=[CLOSED, at_most(1), since("start", "3h")]), "u"))
    bench.request(a_request("trigger", request_id="t2"))
    bench.run(MINUTE)
    assert starts(bench) == 1
    (job,) = [row for row in bench.rows("J#") if row["state"] == "pending_constraint"]
    assert all(code in str(job["unmet"]) for code in ("window_closed", "concurrency", "ran_recently"))
    until(bench, OPENS + MINUTE)
    assert starts(bench) == 1, "the window is open and the limit free; the last run is too recent"
    (job,) = [row for row in bench.rows("J#") if row["nominal"] == job["nominal"]]
    assert "window_closed" not in str(job["unmet"])


@pytest.mark.parametrize("action", ["wait", "abort"])
@pytest.mark.parametrize(
    ("constraint", "code"),
    [
        pytest.param(at_most(1), "concurrency", id="concurrency"),
        pytest.param(since("finish"), "still_running", id="last run"),
        pytest.param({"type": "rate", "max": 1, "per": "1h"}, "rate_reached", id="rate"),
        pytest.param(CLOSED, "window_closed", id="window"),
    ],
)
def test_given_a_constraint_that_does_not_hold_then_the_job_waits_or_is_dropped_by_its_own_word(
    constraint: Doc, code: str, action: str
) -> None:
    """CD-080: the matrix. (A delay can only be waited for: test_delay.)"""
    bench = applied(
        a_bench(Behaviour(runs_for=HOUR)), every("12h"), {**constraint, "on_unmet": action}, overlap="allow"
    )
    bench.request(a_request("trigger"))
    bench.run(SECOND)
    bench.request(a_request("trigger", request_id="again"))
    bench.run(SECOND)
    waiting = [row for row in bench.rows("J#") if row["state"] == "pending_constraint"]
    skipped = [entry[0] for entry in bench.ledger()]
    many = 2 if code == "window_closed" else 1
    assert len(waiting) == (many if action == "wait" else 0)
    assert skipped == ([] if action == "wait" else [f"skipped/{code}"] * many)


@pytest.mark.parametrize(
    ("constraint", "launched", "skipped"),
    [
        pytest.param(window("06:00", "07:00"), [6], "window_closed", id="window"),
        pytest.param(since("start", "150m"), [3, 6], "ran_recently", id="last run"),
        pytest.param({"type": "rate", "max": 1, "per": "150m"}, [3, 6], "rate_reached", id="rate"),
    ],
)
def test_given_a_place_in_a_flexible_window_then_what_aborts_ends_the_job_there(
    constraint: Doc, launched: list[int], skipped: str
) -> None:
    """It waited for the constraint instead, and then ran: its own instant is before that, and nobody looked."""
    trigger = every("1h", flexible="10m")
    bench = applied(a_bench(SHORT), trigger, {**constraint, "on_unmet": "abort"}, overlap="allow")
    bench.passes_over_routine = True
    bench.run(5 * HOUR)
    rows = sorted((from_item(LedgerRow, row) for row in bench.rows("L#")), key=lambda row: row.nominal)
    hours = range(3, 8)
    assert [row.nominal for row in rows] == [hour_of(each) for each in hours]
    told = [row.reason or row.disposition for row in rows]
    assert told == ["launched" if each in launched else skipped for each in hours]
    assert [row.at for row in rows if row.reason] == [place_of(trigger, each) for each in hours if each not in launched]


def test_given_what_aborts_and_what_is_waited_for_then_a_place_in_a_flexible_window_is_where_it_counts() -> None:
    """The one that aborts holds at the nominal, and again when the other one does."""
    trigger = every("24h", phase="3h", flexible="10m")
    spans = [{"opens": "02:00", "closes": "03:01"}, {"opens": "06:00", "closes": "07:00"}]
    aborts = {"type": "time_window", "windows": spans, "on_unmet": "abort"}
    bench = applied(a_bench(SHORT), trigger, aborts, window("06:00", "07:00"))
    place = place_of(trigger, 3)
    assert place > hour_of(3) + MINUTE
    until(bench, place - 1)
    assert bench.ledger() == []
    (job,) = bench.rows("J#")
    assert json.loads(str(job["unmet"]))["until"] == place
    bench.run(1)
    assert [entry[0] for entry in bench.ledger()] == ["skipped/window_closed"]


def test_given_nothing_that_aborts_then_a_place_in_a_flexible_window_that_is_closed_costs_no_look() -> None:
    trigger = every("24h", phase="3h", flexible="10m")
    bench = applied(a_bench(SHORT), trigger, window("06:00", "07:00"))
    bench.passes_over_routine = True
    until(bench, hour_of(3) + SECOND)
    before = bench.rows("J#")
    until(bench, hour_of(6) - SECOND)
    assert bench.rows("J#") == before
    bench.run(2 * SECOND)
    assert starts(bench) == 1


@pytest.mark.parametrize("outcome", ["succeeded", "failed"])
def test_given_a_run_that_failed_then_the_time_since_the_last_success_holds_nothing_back(outcome: str) -> None:
    """CD-084."""
    behaviour = Behaviour(starts_after=10, runs_for=500, outcome=outcome)
    bench = applied(a_bench(behaviour), every("12h"), since("success", "1h"))
    for request_id in ("first", "second"):
        bench.request(a_request("trigger", request_id=request_id))
        bench.run(5 * SECOND)
    assert starts(bench) == (1 if outcome == "succeeded" else 2)
    bench.run(HOUR)
    assert starts(bench) == 2


NIGHT: Doc = {"type": "time_window", "opens": "22:00", "closes": "06:00"}
ONCE: Doc = {"type": "rate", "max": 1, "per": "1d"}


def test_given_a_run_a_night_if_there_is_new_data_then_it_waits_for_the_night_and_runs_once() -> None:
    """US-07: data at 21:00 waits until 22:00; data at 05:59 starts; two batches in a night are one run; no data, no run."""
    bench = applied(a_bench(SHORT), on_data(), NIGHT, {**ONCE, "per": "16h"})
    bench.passes_over_routine = True
    nine = NOW - NOW % (24 * HOUR) + 21 * HOUR
    until(bench, nine)
    assert starts(bench) == 0, "there was no data"
    events(bench, "evening")
    until(bench, nine + HOUR - SECOND)
    assert starts(bench) == 0
    until(bench, nine + HOUR + SECOND)
    assert starts(bench) == 1
    events(bench, "later in the night", apart=MINUTE)
    assert starts(bench) == 1, "once a night"
    until(bench, nine + 25 * HOUR + MINUTE)
    assert starts(bench) == 2, "the next night takes what came"
    until(bench, nine + 57 * HOUR - MINUTE)
    events(bench, "at 05:59", apart=SECOND)
    assert starts(bench) == 3


# -- crashes and costs ----------------------------------------------------------------------------------------------------


def test_given_a_successor_then_it_knows_what_constraints_remember() -> None:
    bench = applied(a_bench(SHORT), every("12h"), since("finish", "1h"), {"type": "rate", "max": 2, "per": "3h"})
    for request_id in ("one", "two", "three"):
        bench.request(a_request("trigger", request_id=request_id))
        bench.run(10 * SECOND)
        bench.crash()
        bench.run(10 * SECOND)
    assert starts(bench) == 1
    bench.run(HOUR)
    assert starts(bench) == 2
    bench.crash()
    bench.run(HOUR + 30 * MINUTE)
    assert starts(bench) == 2
    bench.run(45 * MINUTE)
    assert starts(bench) == 3


def test_given_jobs_that_wait_for_an_instant_then_nothing_is_read_of_them_before_it() -> None:
    """CD-100: a sweep of the shard goes on at its pace, whatever waits."""
    pairs = all_of(on_data("a"), on_data("b"), correlate="data_partition")
    idle = _reads_of_an_hour(applied(a_bench(SHORT), pairs, {**DELAY, "after": "3h"}))
    bench = applied(a_bench(SHORT), pairs, {**DELAY, "after": "3h"})
    jobs = tier.at_night(100, else_=30)
    for number in range(jobs):
        for dataset in ("a", "b"):
            bench.event(an_event(f"d{number}", dataset))
    bench.run(10 * SECOND)
    assert len(bench.rows("J#")) == jobs
    assert _reads_of_an_hour(bench) <= idle + 2
    bench.passes_over_routine = True
    bench.run(3 * HOUR)
    assert starts(bench) == jobs


def _reads_of_an_hour(bench: ActorHarness) -> int:
    before = len(bench.all_asked(Read)) + len(bench.all_asked(ReadRange))
    bench.run(HOUR)
    return len(bench.all_asked(Read)) + len(bench.all_asked(ReadRange)) - before


# -- an API whose clock is wrong ------------------------------------------------------------------------------------------


def test_given_an_end_that_an_api_dates_a_year_ahead_then_the_next_run_waits_no_longer_than_its_constraint() -> None:
    """Found in review: nobody checks an API's clock, and the last end was remembered as it said, also when its clock was right again."""
    bench = applied(a_bench(SHORT), every("10m"), since("finish", "15m"))
    bench.api_ahead = 365 * 24 * HOUR
    bench.run(11 * MINUTE)
    bench.api_ahead = 0
    bench.run(2 * HOUR)
    assert starts(bench) == 9


def test_given_ends_that_an_api_dates_before_their_beginning_then_the_constraint_holds_all_the_same() -> None:
    bench = applied(a_bench(SHORT), every("10m"), since("finish", "15m"))
    bench.api_ahead = -HOUR
    bench.run(2 * HOUR)
    admitted = [at for _, at in bench.submitted_at]
    assert len(admitted) > 3
    assert all(later - earlier >= 15 * MINUTE for earlier, later in itertools.pairwise(admitted))


@pytest.mark.parametrize("state", ["started", "succeeded"])
def test_given_a_run_that_an_api_dates_ahead_then_who_waits_for_more_times_out_as_ever(state: str) -> None:
    bench = applied(a_bench(Behaviour(starts_after=10, runs_for=MINUTE)), every("1h"))
    upstream = {"type": "run_status", "schedule": "nightly", "states": [state]}
    bench.request(an_apply(a_spec(name="behind", trigger=all_of(upstream, on_data(), timeout="10m"))))
    bench.api_ahead = 365 * 24 * HOUR
    bench.request(a_request("trigger"))
    bench.run(15 * MINUTE)
    assert ("expired/trigger_timeout", "behind") in [entry[:2] for entry in bench.ledger()]
