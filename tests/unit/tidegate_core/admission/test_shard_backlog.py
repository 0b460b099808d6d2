"""Ten thousand jobs that wait for one instant: they cost nothing until it comes, and then they go in order (issue 5; CD-037, CD-100).

`make test-all` has a hundred jobs of each of a hundred schedules; `make test` has fewer.
"""

from __future__ import annotations

from collections import defaultdict

import pytest

from tests.support import tier
from tests.support.builders import (
    HOUR,
    MINUTE,
    NOW,
    SECOND,
    Doc,
    a_definition,
    a_job,
    a_schedule,
    a_spec,
    an_apply,
    at_most,
    every,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows.effects import Commit, Read, ReadRange, Write
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.schedule import Definition, ScheduleState
from tidegate_core.rows.store_operations import Put
from tidegate_core.writes import read_cache

OPENS = parse_instant("2025-11-13T22:00:00Z")
NIGHT = {"type": "time_window", "opens": "22:00", "closes": "23:59"}
FOR_EVER = Behaviour(runs_for=None)
SCHEDULES = tier.at_night(100, else_=10)
JOBS = tier.at_night(100, else_=15)
"""Of each schedule."""
AT_A_TIME = tier.at_night(50, else_=5)
"""Runs of the program that all of them share."""


def a_backlog(schedules: int, jobs: int, behaviour: Behaviour, *constraints: Doc) -> ActorHarness:
    """So many schedules with so many jobs each, as a former owner has left them; the new one has just recovered."""
    bench = ActorHarness(shards=1, behaviour=behaviour)
    rows: list[Put] = []
    for number in range(schedules):
        name = f"s{number:03d}"
        spec = a_spec(name, every("24h"), file="/jobs/same.py", constraints=[NIGHT, *constraints])
        waiting = [a_job(each, name=name, due=NOW + each * SECOND) for each in range(jobs)]
        records: list[Definition | ScheduleState | Job] = [a_definition(spec), a_schedule(name), *waiting]
        rows += [Put(record.key(0), {**to_item(record, record.key(0)), "rev": 1}) for record in records]
    bench.store.write(rows)
    bench.now = OPENS - 5 * MINUTE
    bench.run(MINUTE)
    return bench


def calls(bench: ActorHarness, milliseconds: int) -> int:
    """Returns how often the store is asked meanwhile."""
    bench.asked.clear()
    bench.run(milliseconds)
    return sum(isinstance(each, Read | ReadRange | Commit | Write) for each in bench.asked)


def most_at_a_time(bench: ActorHarness) -> int:
    """Returns how many programs ran at the same time, at most."""
    running = most = 0
    for mark in bench.marks:
        running += 1 if mark.begins else -1
        most = max(most, running)
    return most


def test_given_many_jobs_that_wait_for_22_00_then_they_cost_no_more_than_none() -> None:
    """CD-100: look-ahead and sweep are all that is read; at 22:00 the first of each schedule go, as many as may."""
    bench = a_backlog(SCHEDULES, JOBS, FOR_EVER, at_most(2))
    assert calls(bench, 3 * MINUTE) == calls(a_backlog(0, 0, FOR_EVER), 3 * MINUTE)
    bench.run(OPENS - bench.now + SECOND)
    began: defaultdict[str, list[str]] = defaultdict(list)
    for order in bench.started:
        began[str(order.context["schedule"]["name"])].append(order.run_id)  # type: ignore[index,call-overload]
    assert len(began) == SCHEDULES
    assert all(began[name] == [a_job(each, name=name).id for each in (0, 1)] for name in began)
    # And those behind them cost nothing either.
    bench.run(MINUTE)
    idle = calls(a_backlog(0, 0, FOR_EVER), MINUTE)
    assert calls(bench, MINUTE) <= idle + 2 * SCHEDULES * 7  # Each open run is looked at in each sweep.


@pytest.mark.parametrize("most", [1, 3, 50])
def test_given_a_window_that_opens_then_all_are_admitted_in_order_within_their_limit(most: int) -> None:
    schedules, jobs = tier.at_night(10, else_=5), tier.at_night(12, else_=6)
    bench = a_backlog(schedules, jobs, Behaviour(starts_after=10, runs_for=100), at_most(most, "program"), at_most(2))
    assert bench.started == []
    for _ in range(40):
        bench.run(10 * SECOND)
        if len(bench.ledger()) == schedules * jobs and bench.rows("J#") == []:
            break
    assert most_at_a_time(bench) <= most
    assert [entry[0] for entry in bench.ledger()] == ["launched"] * schedules * jobs
    ids = [order.run_id for order in bench.started]
    for number in range(schedules):
        mine = [a_job(each, name=f"s{number:03d}").id for each in range(jobs)]
        assert [each for each in ids if each in mine] == mine


@pytest.mark.timeout(900)
def test_given_many_jobs_that_wait_for_22_00_then_all_are_admitted_in_order_within_their_limits() -> None:
    """Issue 5: a hundred of each of a hundred schedules, two of a schedule and fifty of the program at a time."""
    bench = a_backlog(
        SCHEDULES, JOBS, Behaviour(starts_after=10, runs_for=SECOND), at_most(AT_A_TIME, "program"), at_most(2)
    )
    bench.run(OPENS - bench.now)
    while len(bench.started) < SCHEDULES * JOBS and bench.now < OPENS + HOUR:
        bench.run(10 * SECOND)
    bench.run(MINUTE)
    assert most_at_a_time(bench) == AT_A_TIME
    assert len(bench.started) == SCHEDULES * JOBS
    began: defaultdict[str, list[int]] = defaultdict(list)
    numbers = {a_job(each, name=f"s{n:03d}").id: each for n in range(SCHEDULES) for each in range(JOBS)}
    for order in bench.started:
        began[str(order.context["schedule"]["name"])].append(numbers[order.run_id])  # type: ignore[index,call-overload]
    assert all(found == sorted(found) for found in began.values())
    assert bench.rows("J#") == []
    assert bench.rows("IW#") == []


def test_given_more_to_make_up_for_than_is_kept_of_a_shard_then_what_waits_for_its_turn_is_not_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found in review: each look read them all, one by one; of three schedules with 1,000 each a look took a thousand reads, each time."""
    monkeypatch.setattr(read_cache, "ITEMS_MAX", 100)
    bench = ActorHarness(shards=1, behaviour=Behaviour(runs_for=50 * SECOND))
    bench.run(SECOND)
    for name in ("a", "b", "c"):
        catch_up = {"mode": "all", "max_runs": 100}
        bench.request(an_apply(a_spec(name, every("1m"), overlap="allow", catchup=catch_up), f"apply-{name}"))
    bench.run(MINUTE)
    bench.away(2 * HOUR)
    bench.crash()
    assert calls(bench, 10 * MINUTE) < 2_000
    assert len(bench.rows("J#")) > 200
    assert len(bench.started) >= 3 * 20
