"""Runs per time of a program, a group or a key, across shards: never more than may in any span, in order, nothing leaks (issue 5)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.tidegate_core.decisions.test_admission_in_crowds import (
    CROWD,
    FILE,
    LATENCY_MS,
    SHARDS,
    USED_WITHIN_MS,
    apart,
    due_together,
    schedule_of,
)

from tidegate_core.decisions.run_plane.asking import ASK_AGAIN_MS
from tidegate_core.effects import Commit, Read
from tidegate_core.records.codec import from_item
from tidegate_core.records.limits import EXPIRED_MAX, GONE_MAX, SharedLimit
from tidegate_core.records.run_plane import Job
from tidegate_core.store import keys
from tidegate_core.store.values import Transaction
from tidegate_core.transactions.rates import Counted, count_admission
from tidegate_testkit.bench import Behaviour, Bench
from tidegate_testkit.builders import HOUR, MINUTE, NOW, SECOND, Doc, a_request, a_spec, an_apply, at_most, every

QUICK = Behaviour(starts_after=10, runs_for=50)
NEVER_STARTS = Behaviour(starts_after=None)


def rate(most: int, scope: str = "group", per: str = "1m", **more: Any) -> Doc:
    named = {"group": {"group": "crowd"}, "key": {"key": "day"}}.get(scope, {})
    return {"type": "rate", "max": most, "per": per, "scope": scope, **named, **more}


def a_bench(behaviour: Behaviour = QUICK, shards: int = 8) -> Bench:
    bench = Bench(shards=shards, behaviour=behaviour)
    bench.store_answers_after = LATENCY_MS
    bench.run(5 * SECOND)
    return bench


def schedules(bench: Bench, names: Sequence[str], *constraints: Doc, **more: Any) -> None:
    for name in names:
        spec = a_spec(name, every("10h"), file=FILE, constraints=list(constraints), **more)
        bench.request(an_apply(spec, f"apply-{name}-{bench.now}"))
    bench.run(SECOND)


def trigger(bench: Bench, *names: str) -> list[str]:
    """Runs the schedules by hand, 50 ms apart; returns the jobs."""
    made: list[str] = []
    for name in names:
        request_id = f"now-{name}-{bench.now}"
        bench.request(a_request("trigger", name, request_id=request_id))
        bench.run(50)
        made.append(str(bench.receipts()[request_id]["id"]))
    return made


def begun(bench: Bench) -> list[int]:
    return [mark.at for mark in bench.marks if mark.begins]


def started(bench: Bench) -> list[str]:
    return [order.run_id for order in bench.started]


def admitted(bench: Bench) -> list[int]:
    """Returns when the runs were admitted, as their own items say."""
    return sorted(int(str(run["admitted_at"])) for run in bench.rows("R#"))


def the_rate(bench: Bench) -> SharedLimit:
    rows = [row for row in bench.rows("LIMIT") if "#rate-" in str(row["pk"])]
    assert len(rows) <= 1
    return SharedLimit.of(rows[0] if rows else None)


def unmet(bench: Bench) -> list[Doc]:
    jobs = [from_item(Job, row) for row in bench.rows("J#")]
    return [json.loads(job.unmet) for job in jobs if job.unmet]


# -- crowds -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", ["program", "group"])
@pytest.mark.parametrize("most", [1, 3, 50])
def test_given_50_schedules_on_as_many_shards_due_at_once_then_no_minute_has_more_than_the_rate(
    scope: str, most: int
) -> None:
    """SEMANTICS 7.5, issue 5: and what time gives back is used within two seconds."""
    bench = a_bench(shards=SHARDS)
    due_together(bench, apart(CROWD), rate(most, scope), overlap="allow", pending_timeout="2h")
    bench.asked.clear()
    bench.run(CROWD // most * 63 * SECOND + MINUTE)
    instants = admitted(bench)
    assert len(instants) == CROWD
    spans = [later - first for first, later in zip(instants, instants[most:], strict=False)]
    assert all(MINUTE <= span <= MINUTE + USED_WITHIN_MS for span in spans)
    assert bench.rows("W#") == []


@pytest.mark.parametrize("most", [3, 20])
def test_given_a_crowd_then_what_is_refused_is_bounded_by_who_came(most: int) -> None:
    """No storm: who is refused once knows that it has to wait, and then goes when it is told to."""
    bench = a_bench(shards=SHARDS)
    due_together(bench, apart(CROWD), rate(most), overlap="allow", pending_timeout="2h")
    bench.asked.clear()
    bench.run(CROWD // most * 63 * SECOND + MINUTE)
    admissions = [each.transaction for each in bench.all_asked(Commit) if each.transaction.name == "admit"]
    tried = sum(any(action.key.sk.startswith("R#") for action in each.actions) for each in admissions)
    assert len(admitted(bench)) == CROWD
    assert tried <= 2 * CROWD


def test_given_a_wait_of_hours_then_nobody_asks_the_store_for_the_rate_but_now_and_then() -> None:
    """CD-109: a rate's home knows when it has room again."""
    bench = a_bench()
    names = apart(4)
    schedules(bench, names, rate(1, per="6h"), pending_timeout="9h")
    trigger(bench, *names)
    bench.run(SECOND)
    bench.asked.clear()
    bench.run(HOUR)
    reads = [read for read in bench.all_asked(Read) if any("#rate-" in key.pk for key in read.keys)]
    # Three jobs look after their rows, and the home's sweep after its queues.
    assert len(reads) <= 4 * (HOUR // ASK_AGAIN_MS) + 10
    assert bench.all_asked(Commit) == []
    bench.run(6 * HOUR)
    assert len(begun(bench)) == 2


def test_given_jobs_of_several_shards_then_they_go_in_the_order_in_which_they_were_satisfied() -> None:
    bench = a_bench()
    names = apart(6)
    schedules(bench, names, rate(2))
    made = trigger(bench, *names)
    bench.run(5 * MINUTE)
    assert started(bench) == made


def test_given_classes_then_the_highest_goes_first() -> None:
    bench = a_bench()
    low, high = apart(4)[:2], apart(4)[2:]
    schedules(bench, low, rate(1), priority="low")
    schedules(bench, high, rate(1), priority="high")
    made = trigger(bench, *low, *high)
    bench.run(5 * MINUTE)
    assert started(bench) == [made[0], made[2], made[3], made[1]]


# -- whose runs, and which span -------------------------------------------------------------------------------------------------


def test_given_a_key_then_each_value_has_a_rate_of_its_own() -> None:
    bench = a_bench()
    for name, day in (("a", "mon"), ("b", "mon"), ("c", "tue")):
        spec = a_spec(name, every("10h"), constraints=[rate(1, "key") | {"key": f"day {day}"}])
        bench.request(an_apply(spec))
    bench.run(SECOND)
    trigger(bench, "a", "b", "c")
    bench.run(SECOND)
    assert sorted(map(schedule_of, bench.started)) == ["a", "c"]
    bench.run(MINUTE)
    assert sorted(map(schedule_of, bench.started)) == ["a", "b", "c"]


def test_given_a_calendar_then_each_hour_has_its_own_count() -> None:
    """NOW is 02:13:20."""
    bench = a_bench()
    names = apart(3)
    schedules(bench, names, rate(1, per="1h", window="calendar", zone="Asia/Kolkata"))
    trigger(bench, *names)
    bench.run(2 * HOUR)
    half_past = NOW - (13 * MINUTE + 20 * SECOND) + 30 * MINUTE
    assert [instant - half_past for instant in admitted(bench)[1:]] == [
        pytest.approx(0, abs=USED_WITHIN_MS),
        pytest.approx(HOUR, abs=USED_WITHIN_MS),
    ]


def test_given_schedules_with_other_bounds_then_each_is_admitted_by_its_own_and_counts_all() -> None:
    bench = a_bench()
    wide, narrow = apart(2)
    schedules(bench, [wide], rate(3), overlap="allow")
    schedules(bench, [narrow], rate(1))
    trigger(bench, wide, wide)
    trigger(bench, narrow)
    bench.run(50 * SECOND)
    assert list(map(schedule_of, bench.started)) == [wide, wide]
    bench.run(MINUTE)
    assert list(map(schedule_of, bench.started)) == [wide, wide, narrow]


def test_given_two_spans_of_one_group_then_both_hold() -> None:
    bench = a_bench()
    names = apart(5)
    schedules(bench, names, rate(2), rate(3, per="1h"))
    trigger(bench, *names)
    bench.run(30 * MINUTE)
    assert len(begun(bench)) == 3
    bench.run(40 * MINUTE)
    assert len(begun(bench)) == 5


def test_given_a_limit_beside_the_rate_then_who_waits_for_time_to_pass_keeps_nobody_from_a_slot() -> None:
    """SEMANTICS 7.2: the rate is asked for before the limit."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=SECOND))
    first, second, other = apart(3)
    door = at_most(1, "group", group="door")
    schedules(bench, [first, second], door, rate(1, per="1h"))
    schedules(bench, [other], door)
    made = trigger(bench, first, second)
    bench.run(MINUTE)
    made += trigger(bench, other, other)
    bench.run(10 * SECOND)
    assert started(bench) == [made[0], *made[2:]]
    bench.run(HOUR)
    assert started(bench) == [made[0], *made[2:], made[1]]


def test_given_two_spans_then_who_waits_for_the_longer_one_keeps_nobody_from_the_shorter_one() -> None:
    bench = a_bench()
    first, second, other = apart(3)
    schedules(bench, [first, second], rate(1), rate(1, per="1h"))
    schedules(bench, [other], rate(1))
    made = trigger(bench, first, second)
    bench.run(2 * MINUTE)
    made += trigger(bench, other)
    bench.run(SECOND)
    assert started(bench) == [made[0], made[2]]
    bench.run(HOUR)
    assert started(bench) == [made[0], made[2], made[1]]


# -- not in order to run --------------------------------------------------------------------------------------------------------


def test_given_abort_then_what_the_rate_does_not_let_go_at_once_ends() -> None:
    """CD-080: decided by the very write that counts."""
    bench = a_bench(shards=SHARDS)
    due_together(bench, apart(CROWD), rate(2, on_unmet="abort"))
    bench.run(2 * MINUTE)
    ended = sorted(entry[0] for entry in bench.ledger())
    assert ended == ["launched"] * 2 + ["skipped/rate_reached"] * (CROWD - 2)


def test_given_a_pending_time_out_that_forces_then_the_rate_is_ignored_and_counts_it() -> None:
    """SEMANTICS 7.7: a rate is soft."""
    bench = a_bench()
    first, forced, last = apart(3)
    schedules(bench, [first, last], rate(1, per="1h"))
    schedules(bench, [forced], rate(1, per="1h"), pending_timeout="10m", pending_timeout_action="force")
    made = trigger(bench, first, forced)
    bench.run(30 * MINUTE)
    assert started(bench) == made
    assert the_rate(bench).in_use == 2
    made += trigger(bench, last)
    bench.run(35 * MINUTE)
    assert started(bench) == made[:2]
    bench.run(6 * MINUTE)
    assert started(bench) == made


@pytest.mark.parametrize("how", ["cancel", "suspend", "delete", "update"])
def test_given_a_run_that_ends_before_its_start_then_who_waits_has_its_place_at_once(how: str) -> None:
    """SEMANTICS 7.5: a run cancelled before its start refunds."""
    bench = a_bench(NEVER_STARTS)
    first, second = apart(2)
    schedules(bench, [first, second], rate(1, per="1h"))
    made = trigger(bench, first)
    bench.behaves = lambda order: QUICK
    made += trigger(bench, second)
    bench.run(MINUTE)
    assert started(bench) == []
    stop(bench, how, first, made[0])
    bench.run(USED_WITHIN_MS)
    assert started(bench) == made[1:]
    assert the_rate(bench).in_use == 1


def stop(bench: Bench, how: str, name: str, run_id: str) -> None:
    match how:
        case "cancel":
            bench.request({"id": "c", "type": "run.cancel", "namespace": "flights", "run_id": run_id})
        case "suspend":
            bench.request(a_request("suspend", name, mode="hold"))
        case "update":
            bench.request(an_apply(a_spec(name, every("11h"), file=FILE, constraints=[rate(1, per="1h")]), "u"))
        case _:
            bench.request(a_request(how, name))


def test_given_several_runs_of_one_rate_that_are_parked_together_then_all_are_taken_back_in_one_write() -> None:
    bench = a_bench(NEVER_STARTS)
    schedules(bench, ["a"], rate(5, per="1h"), overlap="allow")
    trigger(bench, "a", "a", "a", "a")
    assert the_rate(bench).in_use == 4
    bench.request(a_request("suspend", "a", mode="freeze"))
    bench.run(SECOND)
    assert (the_rate(bench).in_use, the_rate(bench).counts) == (0, {})
    bench.behaves = lambda order: QUICK
    bench.request(a_request("resume", "a", backlog="all"))
    bench.run(SECOND)
    assert (len(begun(bench)), the_rate(bench).in_use) == (4, 4)


def test_given_a_run_that_has_started_then_nothing_is_taken_back_whatever_becomes_of_it() -> None:
    bench = a_bench(Behaviour(starts_after=10, runs_for=None))
    first, second = apart(2)
    schedules(bench, [first, second], rate(1, per="1h"))
    made = trigger(bench, first, second)
    stop(bench, "cancel", first, made[0])
    bench.run(30 * MINUTE)
    assert started(bench) == made[:1]


# -- what is told ---------------------------------------------------------------------------------------------------------------


def test_given_a_job_before_a_rate_then_it_is_told_what_counts_and_when_there_is_room() -> None:
    bench = a_bench()
    first, second = apart(2)
    schedules(bench, [first, second], rate(1, per="1h"))
    trigger(bench, first, second)
    (told,) = unmet(bench)
    (verdict,) = told["verdicts"]
    free_at = admitted(bench)[0] + HOUR
    assert (verdict["code"], verdict["until"]) == ("rate_reached", free_at)
    assert {key: verdict["values"][key] for key in ("scope", "name", "max", "per", "admitted", "window")} == {
        "scope": "group",
        "name": "crowd",
        "max": 1,
        "per": HOUR,
        "admitted": 1,
        "window": "sliding",
    }
    assert verdict["values"]["frees_at"] in verdict["reason"]


def test_given_a_large_rate_then_its_item_stays_small() -> None:
    """Above 50 the instants are counted by slices of the span."""
    bench = a_bench(shards=4)
    schedules(bench, ["a"], rate(300, per="10m"), overlap="allow")
    for _ in range(30):
        for number in range(10):
            bench.request(a_request("trigger", "a", request_id=f"t-{bench.now}-{number}"))
        bench.run(10 * SECOND)
    state = the_rate(bench)
    assert (state.in_use, sum(state.counts.values())) == (300, 300)
    assert len(state.counts) <= 101
    bench.request(a_request("trigger", "a", request_id="one more"))
    bench.run(SECOND)
    assert len(admitted(bench)) == 300
    bench.run(5 * MINUTE + 15 * SECOND)
    assert len(admitted(bench)) == 301


def test_given_a_rate_whose_admissions_are_all_forced_then_its_item_stays_small_and_others_pass_once_there_is_room() -> (
    None
):
    """From a review: nobody took out what had expired, until no write could name it all, and the rate stood still for ever."""
    bench = a_bench()
    forced = {"pending_timeout": "1s", "pending_timeout_action": "force", "overlap": "allow"}
    spec = a_spec("a", every("10s"), file=FILE, constraints=[rate(1)], **forced)
    bench.request(an_apply(spec, "apply-a"))
    for _ in range(30):
        bench.run(MINUTE)
        assert len(the_rate(bench).counts) <= 8 + EXPIRED_MAX
    bench.request(a_request("suspend", "a", mode="drop"))
    schedules(bench, ["b"], rate(1))
    bench.run(2 * MINUTE)
    trigger(bench, "b")
    bench.run(USED_WITHIN_MS)
    assert schedule_of(bench.started[-1]) == "b"
    assert bench.notices("decision_failed") == []


def test_given_more_expired_counts_than_a_write_takes_out_then_the_home_sees_to_it_for_who_waits() -> None:
    bench = a_bench()
    schedules(bench, ["a"], rate(1), overlap="allow")
    key = keys.shared_rate("flights", "group", "crowd", MINUTE, None)
    for number in range(3 * GONE_MAX):
        counted = Counted(key, bench.now - number)
        forced = count_admission(counted, f"old-{number}", 1, SharedLimit(), bench.now, forced=True)
        bench.store.transact(Transaction("admit", (forced,), f"old-{number}", None))
    trigger(bench, "a")
    bench.run(5 * SECOND)
    assert len(begun(bench)) == 1
    assert the_rate(bench).in_use == 1
    assert bench.notices("decision_failed") == []


# -- whatever falls -------------------------------------------------------------------------------------------------------------


def a_hard_day(bench: Bench) -> None:
    """Runs that start, one that is cancelled before, several that are parked, and jobs that wait for what comes of it."""
    schedules(bench, ["a"], rate(2, per="20s"), overlap="allow")
    schedules(bench, ["b", "c"], rate(2, per="20s"))
    trigger(bench, "b")
    bench.behaves = lambda order: NEVER_STARTS
    made = trigger(bench, "a", "c")
    stop(bench, "cancel", "a", made[0])
    bench.run(SECOND)
    stop(bench, "suspend", "c", "")
    trigger(bench, "a", "b")
    bench.behaves = lambda order: QUICK
    bench.run(25 * SECOND)
    bench.request(a_request("resume", "c", backlog="all"))
    bench.run(30 * SECOND)


def counted_by_runs(bench: Bench) -> dict[int, int]:
    """Returns how many runs say that they count until when, as far as that is still to come."""
    found: dict[int, int] = {}
    for run in bench.rows("R#"):
        came_to_nothing = (
            "started_at" not in run and run.get("outcome") in {None, "closed", "killed"} and "ended_at" in run
        )
        texts = run.get("limits", [])
        assert isinstance(texts, list)
        for until in (int(str(text).partition("|RATE#")[2]) for text in texts if "|RATE#" in str(text)):
            if until > bench.now and not came_to_nothing:
                found[until] = found.get(until, 0) + 1
    return found


@pytest.mark.parametrize("late_writes_after", [None, 700], ids=["", "late-writes"])
def test_given_a_crash_after_any_effect_then_a_rate_counts_what_its_runs_say_and_nothing_leaks(
    late_writes_after: int | None,
) -> None:
    def begun_bench() -> Bench:
        bench = Bench(behaviour=QUICK)
        bench.run(SECOND)
        return bench

    undisturbed = begun_bench()
    a_hard_day(undisturbed)
    for effects in range(begun_bench().effects_outside + 1, undisturbed.effects_outside + 1):
        bench = begun_bench()
        bench.crash_after, bench.late_writes_after = effects, late_writes_after
        a_hard_day(bench)
        state = the_rate(bench)
        live = {until: count for until, count in state.counts.items() if until > bench.now}
        assert (live, state.in_use) == (counted_by_runs(bench), sum(state.counts.values())), effects
        instants = admitted(bench)
        assert all(later - first >= 20 * SECOND for first, later in spans(bench)), (effects, instants)
        assert sorted(started(bench)) == sorted(started(undisturbed)), effects
        assert bench.rows("W#") == [], effects


def spans(bench: Bench) -> list[tuple[int, int]]:
    """Returns the admissions that the rate has to keep apart: those that came to something."""
    runs = [run for run in bench.rows("R#") if "started_at" in run]
    instants = sorted(int(str(run["admitted_at"])) for run in runs)
    return list(zip(instants, instants[2:], strict=False))
