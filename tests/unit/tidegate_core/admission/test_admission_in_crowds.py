"""Many jobs before one limit, by what their programs write down: never more than may, no slot idle or lost, order (issue 5; CD-085)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import tier
from tests.support.builders import HOUR, MINUTE, SECOND, a_request, a_spec, an_apply, at_most, every
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.crowds import (
    CROWD,
    FILE,
    LATENCY_MS,
    STARTS_AFTER_MS,
    USED_WITHIN_MS,
    a_bench,
    apart,
    due_together,
    longest_idle,
    most_at_a_time,
    nothing_is_held,
    of,
    schedule_of,
)
from tidegate_core.language.values.instants import format_instant


@pytest.mark.parametrize("scope", ["program", "group"])
@pytest.mark.parametrize("most", [1, 3, CROWD])
def test_given_a_crowd_of_schedules_on_as_many_shards_due_at_once_then_their_marks_never_show_more_than_the_limit(
    scope: str, most: int
) -> None:
    """CD-085; US-06: and each slot that is given back is used within two seconds."""
    bench = a_bench(Behaviour(starts_after=STARTS_AFTER_MS, runs_for=5 * SECOND))
    due_together(bench, apart(CROWD), of(scope, most))
    bench.run(CROWD // most * 8 * SECOND + MINUTE)
    assert len([mark for mark in bench.marks if mark.begins]) == CROWD
    assert most_at_a_time(bench) == most
    assert longest_idle(bench, most, CROWD) <= USED_WITHIN_MS
    assert nothing_is_held(bench)


def test_given_a_crowd_of_schedules_that_would_rather_not_wait_then_one_goes_and_the_others_are_dropped() -> None:
    """CD-080, CD-085: `abort` decides by the very write that takes the permit."""
    bench = a_bench(Behaviour(starts_after=STARTS_AFTER_MS, runs_for=5 * SECOND))
    due_together(bench, apart(CROWD), of("group", 1, on_unmet="abort"))
    bench.run(MINUTE)
    ended = sorted(entry[0] for entry in bench.ledger())
    assert ended == ["launched"] + ["skipped/concurrency"] * (CROWD - 1)


def test_given_runs_by_hand_and_of_others_then_all_count_for_the_program() -> None:
    """CD-081: all open runs of the program, whichever schedule or hand they come from, also before the gate."""
    bench = a_bench(Behaviour(starts_after=20 * SECOND, runs_for=5 * SECOND))
    names = apart(2)
    for name in names:
        bench.request(an_apply(a_spec(name, every("10h"), file=FILE, constraints=[of("program", 1)])))
    for name in names:
        bench.request(a_request("trigger", name))
    bench.run(10 * SECOND)
    assert (len(bench.submitted_at), bench.marks) == (1, [])
    bench.run(MINUTE)
    assert most_at_a_time(bench) == 1
    assert len(bench.started) == 2


STOPS = ("kill", "cancel", "suspend", "hold", "delete", "update", "end", "crash")
MOMENTS = (0, 1, LATENCY_MS, 2 * LATENCY_MS + 1, 100, 299, 301, 320, 900, 1_290, 1_310, 1_340, 2_000)
"""After the slot of the run before came back at the latest: offered, asked for, admitted, submitted, at the gate, running, ending."""


@pytest.mark.parametrize("how", STOPS)
def test_given_a_stop_at_any_point_then_no_slot_is_lost_and_the_next_one_has_it_within_two_seconds(how: str) -> None:
    """Issue 5: no slot leaks after kill, cancel, suspend or time-out at any point."""
    for moment in MOMENTS if tier.ALL else MOMENTS[STOPS.index(how) % 3 :: 3]:
        bench = a_bench(Behaviour(starts_after=STARTS_AFTER_MS, runs_for=SECOND))
        names = apart(3)
        made = in_a_row(bench, names)
        while [mark.run_id for mark in bench.marks if not mark.begins] != made[:1]:
            bench.run(5)
        bench.run(moment)
        stop(bench, how, names[1], made[1])
        stopped_at = bench.now
        bench.run(20 * SECOND)
        assert nothing_is_held(bench), moment
        assert most_at_a_time(bench) == 1, moment
        last = next((mark.at for mark in bench.marks if mark.run_id == made[2] and mark.begins), None)
        assert last is not None, moment
        # A program that is killed before the gate is submitted again, in the same slot.
        ends = [mark.at for mark in bench.marks if mark.run_id == made[1] and not mark.begins]
        freed_at = max([stopped_at, *ends])
        if how != "crash":
            assert last - freed_at <= USED_WITHIN_MS + STARTS_AFTER_MS, (moment, last - freed_at)


@pytest.mark.parametrize("left", [0, 1, 5, 200, 320])
def test_given_a_pending_time_out_around_the_offer_then_no_slot_is_lost(left: int) -> None:
    """Issue 5: the second job's time is up just before or after the slot comes to it."""
    bench = a_bench(Behaviour(starts_after=STARTS_AFTER_MS, runs_for=5 * SECOND))
    names = apart(3)
    in_a_row(bench, names, pending_timeout=f"{5_300 + 300 - left}ms")
    bench.run(MINUTE)
    assert nothing_is_held(bench)
    assert most_at_a_time(bench) == 1
    assert all(entry[0] in {"launched", "expired/constraint_timeout"} for entry in bench.ledger())


@pytest.mark.parametrize(("starts_after", "waits"), [(None, 16 * MINUTE), (2 * HOUR, 16 * MINUTE)])
def test_given_a_run_that_never_comes_to_the_gate_then_its_slot_is_used_after_its_time_out(
    starts_after: int | None, waits: int
) -> None:
    bench = a_bench(Behaviour(starts_after=STARTS_AFTER_MS, runs_for=SECOND))
    slow = Behaviour(starts_after=starts_after, runs_for=SECOND)
    names = apart(2)
    bench.behaves = lambda order: (
        slow if schedule_of(order) == names[0] else Behaviour(starts_after=STARTS_AFTER_MS, runs_for=SECOND)
    )
    made = in_a_row(bench, names)
    bench.run(waits)
    assert [mark.run_id for mark in bench.marks if mark.begins] == made[1:]
    assert nothing_is_held(bench)


def in_a_row(bench: ActorHarness, names: list[str], **more: Any) -> list[str]:
    """Runs schedules of one group, one at a time, by hand, a millisecond apart; returns the jobs."""
    for name in names:
        spec = a_spec(name, every("10h"), file=FILE, constraints=[of("group", 1)], **more)
        bench.request(an_apply(spec))
    made: list[str] = []
    for name in names:
        bench.request(a_request("trigger", name))
        bench.run(50)
        made.append(str(bench.receipts()[f"trigger-{name}"]["id"]))
    return made


def stop(bench: ActorHarness, how: str, name: str, run_id: str) -> None:
    match how:
        case "kill":
            if (run_id, 1) in bench._processes:
                bench.vanish(run_id)
            else:
                bench.request({"id": "c", "type": "job.cancel", "namespace": "flights", "job_id": run_id})
        case "cancel":
            kind = "run" if any(row["id"] == run_id for row in bench.rows("R#")) else "job"
            bench.request({"id": "c", "type": f"{kind}.cancel", "namespace": "flights", f"{kind}_id": run_id})
        case "hold":
            bench.request(a_request("suspend", name, mode="hold"))
        case "update":
            bench.request(an_apply(a_spec(name, every("11h"), file=FILE, constraints=[of("group", 1)]), "u"))
        case "crash":
            bench.crash()
        case "end":
            pass
        case _:
            bench.request(a_request(how, name))


def test_given_a_crowd_of_all_classes_then_the_highest_ready_job_goes_first_and_none_starves() -> None:
    """CD-086, US-06: 50 at once, ten of each class, three at a time."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=SECOND))
    classes = ("lowest", "low", "medium", "high", "highest")
    names = apart(CROWD)
    wanted = {name: classes[number % 5] for number, name in enumerate(names)}
    due = (bench.now // MINUTE + 2) * MINUTE
    for name in names:
        trigger = every("1m", start=format_instant(due), end=format_instant(due + 1))
        spec = a_spec(name, trigger, file=FILE, constraints=[of("group", 3)], priority=wanted[name])
        bench.request(an_apply(spec))
    bench.run(due - 1 - bench.now)
    bench.run(2 * MINUTE)
    began = [schedule_of(order) for order in bench.started]
    assert sorted(began) == sorted(names)
    # The first three found free slots at the instant at which all became ready; from then on the classes go in order.
    queued = [classes.index(wanted[name]) for name in began[3:]]
    assert queued == sorted(queued, reverse=True)


def test_given_a_backlog_of_several_schedules_before_one_group_then_each_keeps_its_order_and_none_is_lost() -> None:
    """CD-037."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=50))
    names = apart(5)
    due = (bench.now // MINUTE + 2) * MINUTE
    for name in names:
        trigger = every("1s", start=format_instant(due), end=format_instant(due + 40 * SECOND))
        bench.request(an_apply(a_spec(name, trigger, file=FILE, constraints=[of("group", 2), at_most(2)])))
    bench.run(due + 3 * MINUTE - bench.now)
    by_schedule: dict[str, list[str]] = {}
    for order in bench.started:
        by_schedule.setdefault(schedule_of(order), []).append(str(order.context["nominal"]))
    assert {name: len(found) for name, found in by_schedule.items()} == dict.fromkeys(names, 40)
    assert all(found == sorted(found) for found in by_schedule.values())
    assert most_at_a_time(bench) <= 2
