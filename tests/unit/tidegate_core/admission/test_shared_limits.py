"""Jobs of several shards before one limit: free slots go to who waits longest, whatever is lost and whoever falls (DESIGN 6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.builders import (
    MINUTE,
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
    on_run_of,
)
from tests.support.harness.actor_harness import ActorHarness, Behaviour
from tests.support.harness.shard_bench import a_bench
from tidegate_core.admission.limit_coordinator import OFFER_MS
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Commit, Effect, Read, WakeUp
from tidegate_core.rows.shared_limit import SharedLimit
from tidegate_core.rows.store_operations import Delete, Key, Put
from tidegate_core.shard.limits.limit_queue_entry import ASK_AGAIN_MS
from tidegate_core.writes.limit_permits import HOLDERS_INLINE_MAX

FILE = "/jobs/same.py"
LIMIT = keys.shared_limit("flights", "program", f"python:{FILE}")
NAMES = tuple(f"s-{number}" for number in range(6))
APART = tuple({schedule_shard("flights", name, 4): name for name in NAMES}.values())[:3]
"""Schedules of different shards."""
LONG = 5 * SECOND


def the_limit(bench: ActorHarness) -> SharedLimit:
    rows = [row for row in bench.rows("LIMIT") if str(row["pk"]).startswith("LIMIT#")]
    return SharedLimit.of(rows[0] if rows else None)


def schedules(bench: ActorHarness, most: int = 1, names: tuple[str, ...] = NAMES) -> None:
    for name in names:
        limits = [at_most(most, "program")]
        spec = a_spec(name, every("10h"), file=FILE, constraints=limits, overlap="allow")
        bench.request(an_apply(spec, f"apply-{name}-{bench.now}"))
    bench.run(SECOND)


def trigger(bench: ActorHarness, *names: str) -> list[str]:
    """Runs the schedules by hand, one a millisecond; returns the jobs."""
    made: list[str] = []
    for number, name in enumerate(names):
        request_id = f"now-{name}-{bench.now}-{number}"
        bench.request(a_request("trigger", name, request_id=request_id))
        made.append(str(bench.receipts()[request_id]["id"]))
        bench.run(1)
    return made


def started(bench: ActorHarness) -> list[str]:
    return [order.run_id for order in bench.started]


def waves(runs: list[str], most: int) -> list[set[str]]:
    """What starts at one instant has no order."""
    return [set(runs[first : first + most]) for first in range(0, len(runs), most)]


def a_poke(effect: Effect) -> bool:
    """About a queue: to the home of a limit, or to a job's shard."""
    return isinstance(effect, WakeUp) and effect.run_id is not None


def a_busy_bench(most: int = 1) -> ActorHarness:
    bench = a_bench(Behaviour(starts_after=10, runs_for=LONG))
    schedules(bench, most)
    return bench


# -- order ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [1, 2, 4])
def test_given_jobs_of_several_shards_then_they_start_in_the_order_in_which_they_were_satisfied(most: int) -> None:
    bench = a_busy_bench(most)
    made = trigger(bench, *NAMES[::-1], *NAMES[:3])
    assert len({job[:4] for job in made}) > 1
    bench.run(MINUTE)
    assert waves(started(bench), most) == waves(made, most)
    assert the_limit(bench) == SharedLimit()


def test_given_a_newcomer_at_the_moment_at_which_a_slot_is_free_then_it_passes_nobody() -> None:
    bench = a_busy_bench()
    made = trigger(bench, "s-0", "s-1")
    bench.answer_with(a_poke, None, times=1_000)
    while the_limit(bench).in_use:
        bench.run(50)
    made += trigger(bench, "s-2")
    bench.as_usual()
    bench.run(MINUTE)
    assert started(bench) == made


def test_given_a_limit_that_nobody_waits_for_then_an_admission_is_one_write_and_tells_nobody() -> None:
    bench = a_busy_bench(most=16)
    bench.asked.clear()
    trigger(bench, *NAMES)
    bench.run(MINUTE)
    assert len(bench.started) == len(NAMES)
    admissions = [each.transaction for each in bench.all_asked(Commit) if each.transaction.name == "admit"]
    assert all(sum(action.key.pk.startswith("LIMIT#") for action in each.actions) == 1 for each in admissions)
    assert [poke for poke in bench.all_asked(WakeUp) if poke.run_id and poke.run_id.startswith("LIMIT#")] == []
    assert bench.commits("offer") == []


def test_given_jobs_that_wait_then_they_look_once_in_ten_seconds_and_only_the_home_looks_each_second() -> None:
    bench = a_bench(Behaviour(runs_for=None))
    schedules(bench)
    trigger(bench, *NAMES)
    bench.asked.clear()
    bench.run(MINUTE)
    looks = [read for read in bench.all_asked(Read) if any(key.pk.startswith("LIMIT#") for key in read.keys)]
    waiting = len(NAMES) - 1
    assert len(looks) <= 60 + 2 + waiting * (MINUTE // ASK_AGAIN_MS + 1)
    assert bench.all_asked(Commit) == []


def test_given_a_schedule_with_a_narrow_limit_then_wider_ones_do_not_keep_it_waiting_for_ever() -> None:
    bench = a_bench(Behaviour(starts_after=10, runs_for=LONG))
    schedules(bench, 3, ("wide-1", "wide-2"))
    schedules(bench, 1, ("narrow",))
    trigger(bench, "wide-1", "wide-2")
    bench.run(2 * SECOND)
    (narrow,) = trigger(bench, "narrow")
    for _ in range(10):
        trigger(bench, "wide-1", "wide-2")
        bench.run(SECOND)
    bench.run(MINUTE)
    assert started(bench)[2] == narrow


# -- what is lost, and who falls --------------------------------------------------------------------------------------------


def test_given_that_every_poke_is_lost_then_the_queue_moves_all_the_same() -> None:
    bench = a_busy_bench()
    bench.answer_with(a_poke, None, times=100_000)
    made = trigger(bench, *NAMES[:3])
    bench.run(3 * MINUTE)
    assert started(bench) == made


def test_given_a_waiter_row_that_is_lost_then_the_job_writes_it_again_at_its_old_place() -> None:
    bench = a_busy_bench()
    made = trigger(bench, *NAMES[:4])
    (row,) = [row for row in bench.rows("IW#") if row["job_id"] == made[1]]
    bench.store.write([Delete(Key(str(row["pk"]), str(row["sk"])))])
    bench.behaves = lambda order: Behaviour(starts_after=10, runs_for=20 * SECOND)
    bench.run(2 * MINUTE)
    assert sorted(started(bench)) == sorted(made)
    assert started(bench).index(made[1]) < started(bench).index(made[3])


@pytest.mark.parametrize("how", ["cancel", "suspend", "delete"])
def test_given_a_job_that_ends_while_its_offer_stands_then_the_slot_goes_to_the_next_one(how: str) -> None:
    bench = a_busy_bench()
    made = trigger(bench, "s-0", "s-1", "s-2")
    bench.answer_with(a_poke, None, times=1_000)
    while made[1] not in the_limit(bench).offered:
        bench.run(50)
    if how == "cancel":
        bench.request({"id": "c", "type": "job.cancel", "namespace": "flights", "job_id": made[1]})
    else:
        bench.request(a_request(how, "s-1"))
    bench.as_usual()
    bench.run(2 * SECOND)
    assert started(bench) == [made[0], made[2]]
    assert bench.rows("IW#") == []
    bench.run(MINUTE)
    assert the_limit(bench).in_use == 0


def test_given_an_owner_that_falls_with_offers_standing_then_the_successor_goes_on_in_the_same_order() -> None:
    bench = a_busy_bench()
    made = trigger(bench, *NAMES[:4])
    bench.answer_with(a_poke, None, times=1_000)
    while not the_limit(bench).offered:
        bench.run(50)
    bench.crash()
    bench.as_usual()
    bench.run(MINUTE)
    assert started(bench) == made


def test_given_an_offer_that_nobody_answers_for_long_then_others_go_first_and_the_job_still_has_its_turn() -> None:
    bench = a_busy_bench()
    made = trigger(bench, *APART)
    its_run = keys.run(int(made[1][:4]), made[1])

    def its_admission(effect: Effect) -> bool:
        return isinstance(effect, Commit) and its_run in {action.key for action in effect.transaction.actions}

    bench.hold_back(its_admission, times=1_000)
    bench.run(LONG + OFFER_MS + 5 * SECOND)
    assert started(bench) == [made[0], made[2]]
    bench.as_usual()
    bench.run(MINUTE)
    assert sorted(started(bench)) == sorted(made)


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 3)], ids=["lowered", "raised"])
def test_given_an_update_of_the_limit_then_who_comes_under_it_is_bound_by_it(before: int, after: int) -> None:
    bench = a_busy_bench(before)
    trigger(bench, *NAMES[:4])
    bench.run(SECOND)
    assert the_limit(bench).in_use == before
    schedules(bench, after)  # What waits under the older version ends with it.
    made = trigger(bench, *NAMES)
    bench.run(LONG)
    assert the_limit(bench).in_use == after
    most = 0
    for _ in range(600):
        bench.run(100)
        most = max(most, the_limit(bench).in_use)
    assert most == after
    assert waves(started(bench)[before:], after) == waves(made, after)


def of_limit(most: int) -> Doc:
    return at_most(most, "program")


def of_rate(most: int) -> Doc:
    return {"type": "rate", "max": most, "per": "1d", "scope": "program"}


@pytest.mark.parametrize("bound", [of_limit, of_rate])
@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 1)], ids=["raised", "lowered"])
def test_given_an_update_that_carries_what_waits_then_its_rows_bear_the_new_limit(
    bound: Callable[[int], Doc], before: int, after: int
) -> None:
    """Their rows bore the limit of before: what was raised was offered to nobody as long as one run was open."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=None))
    for most, request_id in ((before, "first"), (after, "second")):
        spec = a_spec("one", every("10h"), file=FILE, constraints=[bound(most)], overlap="allow", on_update="carry")
        bench.request(an_apply(spec, request_id))
        bench.run(SECOND)
        if request_id == "first":
            trigger(bench, *["one"] * (before + 4))
    bench.run(5 * SECOND)
    assert (len(started(bench)), len(bench.rows("IW#"))) == (max(before, after), before + 4 - max(before, after))
    assert {row["most"] for row in bench.rows("IW#")} == {after}


@pytest.mark.parametrize("limits", [1, 15])
def test_given_jobs_of_one_schedule_whose_window_closes_then_all_of_them_leave_the_queue_at_once(limits: int) -> None:
    """Only the first one left: each of the others was offered the slot for ten seconds, and whoever else waited waited on."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=10 * MINUTE))
    until_0220 = {"type": "time_window", "opens": "01:00", "closes": "02:20"}
    shared = [at_most(1, "group", group=f"g{number}") for number in range(limits)]
    for name, constraints in {"a": [*shared, until_0220], "b": shared}.items():
        bench.request(an_apply(a_spec(name, every("100h"), constraints=constraints, overlap="allow")))
    bench.run(SECOND)
    trigger(bench, "b", *"aaaaaaaa")
    made = trigger(bench, "b")
    bench.run(11 * MINUTE)
    _, ended, *begun = bench.marks
    assert [(mark.run_id, mark.begins) for mark in begun] == [(made[0], True)]
    assert begun[0].at - ended.at <= 2 * SECOND


# -- several limits ---------------------------------------------------------------------------------------------------------


def in_groups(bench: ActorHarness, members: dict[str, tuple[str, ...]]) -> None:
    """Applies schedules that are in groups of one run each, named in this order."""
    for name, groups in members.items():
        limits = [at_most(1, "group", group=group) for group in groups]
        bench.request(an_apply(a_spec(name, every("10h"), constraints=limits, overlap="allow")))
    bench.run(SECOND)


def test_given_jobs_that_need_the_same_two_limits_then_they_run_one_after_another_in_order() -> None:
    bench = a_bench(Behaviour(starts_after=10, runs_for=LONG))
    in_groups(bench, {name: ("x", "y") if name[-1] in "024" else ("y", "x") for name in NAMES})
    made = trigger(bench, *NAMES)
    bench.run(2 * MINUTE)
    assert started(bench) == made
    assert {row.get("in_use") for row in bench.rows("LIMIT")} == {0}


def test_given_a_job_that_has_the_word_of_one_limit_then_it_keeps_it_while_it_waits_for_the_other() -> None:
    """Offers lapse after ten seconds, and the other limit is busy for longer."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=30 * SECOND))
    in_groups(bench, {"s-0": ("y",), "s-1": ("x", "y"), "s-2": ("x",)})
    made = trigger(bench, *NAMES[:3])
    bench.run(25 * SECOND)
    assert started(bench) in ([made[0]], [made[0], made[2]])
    bench.run(2 * MINUTE)
    assert sorted(started(bench)) == sorted(made)


def test_given_a_word_that_is_renewed_then_the_job_is_written_with_it_so_that_a_late_repeat_is_refused() -> None:
    """Found by worlds in which writes come again: the row of a job that had ended came back, and took an offer for nobody."""
    bench = a_bench(Behaviour(starts_after=10, runs_for=30 * SECOND))
    asked_last = max("xy", key=lambda group: keys.shared_limit("flights", "group", group))
    in_groups(bench, {"s-0": (asked_last,), "s-1": ("x", "y")})
    trigger(bench, *NAMES[:2])
    bench.asked.clear()
    bench.run(25 * SECOND)
    with_rows = [
        {action.key.sk[:2] for action in each.actions if isinstance(action, Put)}
        for each in bench.commits("admit")
        if any(isinstance(action, Put) and action.key.sk.startswith("IW#") for action in each.actions)
    ]
    assert len(with_rows) >= 3
    assert all("J#" in kinds for kinds in with_rows)


# -- keys -------------------------------------------------------------------------------------------------------------------


def by_day(most: int = 1, **more: Any) -> Doc:
    return at_most(most, "key", key="day ${correlation}", **more)


def of_a_day(*names: str, **more: Any) -> list[Doc]:
    """Returns schedules that load a day's data partition each, of datasets called as they are."""
    return [
        a_spec(
            name,
            all_of(on_data(f"{name}.a"), on_data(f"{name}.b"), correlate="data_partition"),
            overlap="allow",
            **more,
        )
        for name in names
    ]


def arrives(bench: ActorHarness, name: str, day: str) -> None:
    for dataset in (f"{name}.a", f"{name}.b"):
        bench.event(an_event(day, dataset))


def test_given_a_key_then_runs_of_one_value_go_one_after_another_whichever_schedule_they_are_of() -> None:
    bench = a_bench(Behaviour(starts_after=10, runs_for=LONG))
    for spec in of_a_day("s-0", "s-1", constraints=[by_day()]):
        bench.request(an_apply(spec))
    bench.run(SECOND)
    for name in ("s-0", "s-1"):
        for day in ("2013-01-01", "2013-01-02"):
            arrives(bench, name, day)
    bench.run(SECOND)
    assert sorted(str(order.context["correlation"]) for order in bench.started) == ["2013-01-01", "2013-01-02"]
    bench.run(LONG + 2 * SECOND)
    assert sorted(str(order.context["correlation"]) for order in bench.started[2:]) == ["2013-01-01", "2013-01-02"]
    bench.run(MINUTE)
    assert {row.get("in_use") for row in bench.rows("LIMIT")} == {0}
    assert bench.rows("IW#") == []


def test_given_a_job_without_the_value_of_its_key_then_it_is_skipped_and_says_so() -> None:
    bench = a_bench()
    (spec,) = of_a_day("s-0", constraints=[by_day()])
    bench.request(an_apply(spec))
    trigger(bench, "s-0")
    bench.run(SECOND)
    assert bench.ledger()[0][0] == "skipped/unresolved_template"


def test_given_two_keys_that_come_to_the_same_text_then_the_narrower_bound_counts_and_one_permit_is_held() -> None:
    bench = a_bench(Behaviour(starts_after=10, runs_for=LONG))
    limits = [at_most(2, "key", key="kit"), at_most(1, "key", key="${upstream.outputs.tool}")]
    for name in ("s-0", "s-1"):
        bench.request(an_apply(a_spec(name, on_run_of("tools"), constraints=limits, overlap="allow")))
    bench.request(an_apply(a_spec("tools", every("10h"))))
    bench.behaves = lambda order: Behaviour(starts_after=10, runs_for=LONG, outputs={"tool": "kit"})
    trigger(bench, "tools")
    bench.run(LONG + SECOND)
    assert len(bench.started) == 2
    (limit,) = bench.rows("LIMIT")
    assert limit["in_use"] == 1
    bench.run(MINUTE)
    assert len(bench.started) == 3


def test_given_a_limit_that_another_schedule_has_read_long_ago_then_it_is_read_anew_before_a_job_is_dropped_for_it() -> (
    None
):
    bench = a_busy_bench()
    neighbour = next(name for name in (f"n-{n}" for n in range(99)) if same_shard(name, "s-0"))
    trigger(bench, "s-1", "s-0")  # s-0 has seen it full.
    bench.request(a_request("delete", "s-0"))
    bench.run(MINUTE)
    limits = [at_most(1, "program", on_unmet="abort")]
    bench.request(an_apply(a_spec(neighbour, every("10h"), file=FILE, constraints=limits)))
    (made,) = trigger(bench, neighbour)
    bench.run(SECOND)
    assert started(bench)[-1] == made


def same_shard(one: str, other: str) -> bool:
    return schedule_shard("flights", one, 4) == schedule_shard("flights", other, 4)


# -- wide limits, and permits that are stuck ------------------------------------------------------------------------------------


def test_given_a_wide_limit_then_each_open_run_has_an_item_and_none_is_left() -> None:
    most = HOLDERS_INLINE_MAX + 2
    bench = a_busy_bench(most)
    made = trigger(bench, *(NAMES * 4))
    bench.run(SECOND)
    assert sorted(str(row["run_id"]) for row in bench.rows("PERMIT#")) == sorted(made[:most])
    assert the_limit(bench).in_use == most
    bench.run(MINUTE)
    assert waves(started(bench), most) == waves(made, most)
    assert bench.rows("PERMIT#") == []
    assert the_limit(bench) == SharedLimit()


def test_given_a_permit_without_a_run_then_it_is_told_and_never_freed() -> None:
    bench = a_busy_bench()
    (first,) = trigger(bench, "s-0")
    bench.run(MINUTE)
    (row,) = bench.rows("LIMIT")
    stuck = {**row, "in_use": 1, "holders": frozenset({first})}
    bench.store.write([Put(Key(str(row["pk"]), "LIMIT"), stuck)])
    trigger(bench, "s-1")
    bench.run(3 * MINUTE)
    assert {(note.fields["limit"], note.fields["run_id"]) for note in bench.notices("permit_stuck")} == {
        (str(row["pk"]), first)
    }
    assert the_limit(bench).holders == {first}
    assert started(bench) == [first]
