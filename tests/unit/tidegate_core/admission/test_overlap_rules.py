"""Overlap as a pure function: which of the jobs that wait end, and what takes their place (SEMANTICS 4)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import MINUTE, NOW, a_job, a_run, at_most, parsed_spec
from tidegate_core.admission.overlap_rules import SETTLED_TOGETHER, Ended, apply_policy, to_cancel
from tidegate_core.admission.permits import limits_of
from tidegate_core.language.definitions.run_policies import Overlap
from tidegate_core.rows.job import Job

RUN = "0000-run"


def jobs(*numbers: int, **more: Any) -> list[Job]:
    """Jobs of a schedule that fires each minute, in their order."""
    return [a_job(number, due=NOW + number * MINUTE, **more) for number in numbers]


def ended(*found: Ended) -> list[tuple[str, str, str]]:
    return [(each.job.id, each.disposition, each.reason) for each in found]


def as_told(spec: Any, waiting: list[Job], blockers: tuple[str, ...] = (RUN,)) -> list[Job]:
    """Returns what waits on once overlap has nothing more to say, look after look."""
    while True:
        settled = apply_policy(spec, waiting, blockers)
        if not settled.ended:
            return waiting
        gone = {each.job.id for each in settled.ended}
        kept = {} if settled.kept is None else {settled.kept.id: settled.kept}
        left = [kept.get(job.id, job) for job in waiting if job.id not in gone]
        waiting = sorted(left, key=lambda job: (job.waits_since, job.nominal))


def test_given_skip_and_a_run_that_is_open_then_the_job_ends_and_names_it() -> None:
    (end,) = apply_policy(parsed_spec(overlap="skip"), jobs(1), [RUN]).ended
    assert (end.disposition, end.reason, end.detail) == ("skipped", "overlap", f"still open: {RUN}")


def test_given_skip_and_room_for_a_run_then_what_waits_for_something_else_waits_on() -> None:
    assert apply_policy(parsed_spec(overlap="skip"), jobs(1, 2), []).ended == ()


def test_given_keep_latest_then_the_newest_takes_the_place_of_all_others() -> None:
    settled = apply_policy(parsed_spec(overlap="keep_latest"), jobs(1, 2, 3), [RUN])
    assert ended(*settled.ended) == [(job.id, "skipped", "replaced") for job in jobs(1, 2)]
    assert {end.detail for end in settled.ended} == {f"replaced by {jobs(3)[0].id}"}
    assert settled.kept is not None
    assert settled.kept.waits_since == jobs(1)[0].satisfied_at
    assert settled.kept.satisfied_at == jobs(3)[0].satisfied_at
    assert settled.kept.covered is None


@pytest.mark.parametrize("overlap", ["keep_latest", "coalesce", "cancel_running"])
def test_given_more_than_one_look_may_end_then_the_one_that_stands_for_others_stays_behind_those_that_are_left(
    overlap: Overlap,
) -> None:
    """Between two looks the run may end: what is left is admitted then, and must not come behind what is younger."""
    waiting = jobs(*range(1, SETTLED_TOGETHER + 4))
    settled = apply_policy(parsed_spec(overlap=overlap), waiting, [RUN])
    gone = {each.job.id for each in settled.ended}
    kept = settled.kept
    assert kept is not None
    left = [job for job in waiting if job.id not in gone | {kept.id}]
    assert [job.nominal for job in left] == [job.nominal for job in jobs(1, 2)]
    assert all((job.waits_since, job.nominal) < (kept.waits_since, kept.nominal) for job in left)


def test_given_coalesce_then_one_job_stands_for_all() -> None:
    hours = list(jobs(1, 2, 3))
    settled = apply_policy(parsed_spec(overlap="coalesce"), hours, [])
    assert ended(*settled.ended) == [(job.id, "coalesced", "overlap") for job in jobs(1, 2)]
    kept = settled.kept
    assert kept is not None
    assert (kept.id, kept.nominal, kept.covered, kept.covered_from) == (
        hours[2].id,
        hours[2].nominal,
        3,
        hours[0].nominal,
    )
    assert (kept.waits_since, kept.satisfied_at) == (hours[0].satisfied_at, hours[2].satisfied_at)


@pytest.mark.parametrize("overlap", ["keep_latest", "coalesce", "cancel_running"])
def test_given_a_job_that_stands_for_others_then_it_waits_no_longer_than_they_would_have(overlap: Overlap) -> None:
    """Their deadlines are compared on the schedule's clock, which stood still for some of them."""
    waiting = [
        a_job(1, due=NOW + 1, deadline=NOW + 500, stopped=0, alerted=True),
        a_job(2, due=NOW + 2, deadline=NOW + 700, stopped=300),
        a_job(3, due=NOW + 3, deadline=NOW + 900, stopped=300),
    ]
    kept = apply_policy(parsed_spec(overlap=overlap), waiting, []).kept
    assert kept is not None
    assert kept.deadline == NOW + 700
    assert kept.alerted


@pytest.mark.parametrize("older", [{"catch_up": True, "in_turn": True}, {}], ids=["in its turn", "on time"])
@pytest.mark.parametrize("overlap", ["keep_latest", "coalesce"])
def test_given_one_that_makes_up_for_the_past_in_the_place_of_one_that_waited_then_its_time_out_goes_on(
    overlap: Overlap, older: dict[str, Any]
) -> None:
    """A turn of its own would begin at its first look: with an outage now and then it would wait for ever."""
    waiting = [
        a_job(1, due=NOW + 1, deadline=NOW + 500, **older),
        a_job(2, due=NOW + 2, deadline=NOW + 900, catch_up=True),
    ]
    kept = apply_policy(parsed_spec(overlap=overlap), waiting, []).kept
    assert kept is not None
    assert (kept.deadline, kept.times_out) == (NOW + 500, True)


def test_given_one_in_the_place_of_others_that_wait_for_their_turn_then_so_does_it() -> None:
    kept = apply_policy(parsed_spec(overlap="coalesce"), jobs(1, 2, catch_up=True), []).kept
    assert kept is not None
    assert not kept.times_out


def test_given_data_intervals_then_the_merged_one_spans_them_all() -> None:
    spans = [a_job(n, due=NOW + n, interval_start=NOW + n - 1, interval_end=NOW + n) for n in (1, 2, 3)]
    kept = apply_policy(parsed_spec(overlap="coalesce"), spans, []).kept
    assert kept is not None
    assert (kept.interval_start, kept.interval_end) == (NOW, NOW + 3)


def with_data(*numbers: int) -> list[Job]:
    """The same with the data interval of each."""
    return [
        a_job(n, due=NOW + n * MINUTE, interval_start=NOW + (n - 1) * MINUTE, interval_end=NOW + n * MINUTE)
        for n in numbers
    ]


@pytest.mark.parametrize("spec", [{"overlap": "coalesce"}, {"max_pending": 1}], ids=["coalesce", "queue"])
def test_given_a_gap_between_data_intervals_then_jobs_on_either_side_are_not_merged(spec: dict[str, Any]) -> None:
    """What lies in it has run by itself, beside a catch-up it may be: the data of one occurrence were another one's as well."""
    left = as_told(parsed_spec(**spec), with_data(1, 2, 4, 5, 6, 8))
    assert [(job.interval_start, job.interval_end, job.stands_for) for job in left] == [
        (NOW, NOW + 2 * MINUTE, 2),
        (NOW + 3 * MINUTE, NOW + 6 * MINUTE, 3),
        (NOW + 7 * MINUTE, NOW + 8 * MINUTE, 1),
    ]


def test_given_a_gap_that_a_full_queue_need_not_reach_then_the_newest_that_adjoin_are_merged() -> None:
    left = as_told(parsed_spec(max_pending=3), with_data(1, 2, 4, 5, 7))
    assert [job.nominal for job in left] == [NOW + n * MINUTE for n in (2, 5, 7)]
    assert [job.stands_for for job in left] == [2, 2, 1]


def test_given_jobs_that_were_merged_before_then_counts_add_up() -> None:
    first = a_job(1, due=NOW + 9, covered=10, covered_from=NOW)
    kept = apply_policy(parsed_spec(overlap="coalesce"), [first, *jobs(2)], []).kept
    assert kept is not None
    assert (kept.covered, kept.covered_from) == (11, NOW)


def test_given_a_job_that_somebody_asked_for_then_it_is_not_merged() -> None:
    by_hand = jobs(2, trigger="manual")[0]
    left = as_told(parsed_spec(overlap="coalesce"), [*jobs(1), by_hand, *jobs(3)])
    assert sorted(job.id for job in left) == sorted([by_hand.id, jobs(3)[0].id])


def test_given_a_queue_that_is_not_full_then_nothing_ends() -> None:
    assert apply_policy(parsed_spec(max_pending=3), jobs(1, 2, 3), [RUN]).ended == ()


def test_given_a_full_queue_then_the_newest_are_merged_and_as_many_wait_as_may() -> None:
    left = as_told(parsed_spec(max_pending=3), jobs(1, 2, 3, 4, 5))
    assert [job.nominal for job in left] == [job.nominal for job in jobs(1, 2, 5)]
    assert [job.stands_for for job in left] == [1, 1, 3]


def test_given_a_full_queue_that_rejects_then_the_newest_are_skipped() -> None:
    settled = apply_policy(parsed_spec(max_pending=3, on_overflow="reject"), jobs(1, 2, 3, 4, 5), [RUN])
    assert ended(*settled.ended) == [(job.id, "skipped", "max_pending") for job in jobs(4, 5)]


def test_given_a_full_queue_of_evidence_then_it_waits_on() -> None:
    events = jobs(1, 2, 3, trigger="events")
    assert apply_policy(parsed_spec(max_pending=1), events, [RUN]).ended == ()
    assert len(apply_policy(parsed_spec(max_pending=1, on_overflow="reject"), events, [RUN]).ended) == 2


@pytest.mark.parametrize("overlap", ["skip", "keep_latest", "coalesce", "cancel_running", "queue"])
def test_given_a_job_that_was_forced_then_no_policy_ends_it(overlap: Overlap) -> None:
    forced = jobs(1, 2, 3, force_overlap=True)
    assert as_told(parsed_spec(overlap=overlap), forced) == forced


@pytest.mark.parametrize("overlap", ["keep_latest", "coalesce", "cancel_running"])
@given(numbers=st.sets(st.integers(1, 60), min_size=1, max_size=40))
def test_given_any_jobs_then_one_is_left_and_nothing_is_uncovered(overlap: Overlap, numbers: set[int]) -> None:
    waiting = jobs(*sorted(numbers))
    (left,) = as_told(parsed_spec(overlap=overlap), waiting)
    assert left.nominal == waiting[-1].nominal
    assert left.waits_since == waiting[0].satisfied_at
    assert left.stands_for == (len(waiting) if overlap == "coalesce" else 1)
    assert left.begins == (waiting[0].nominal if overlap == "coalesce" else left.nominal)


def test_given_many_jobs_then_one_look_ends_a_few_and_those_are_next_to_each_other() -> None:
    waiting = jobs(*range(1, 31))
    settled = apply_policy(parsed_spec(overlap="coalesce"), waiting, [])
    assert len(settled.ended) == SETTLED_TOGETHER
    assert settled.kept is not None
    assert settled.kept.begins == waiting[-SETTLED_TOGETHER - 1].nominal


# -- runs that have to go, and limits -------------------------------------------------------------------------------------


def test_given_cancel_running_then_the_oldest_runs_end_and_none_more_than_needed() -> None:
    runs = {run.id: run for run in (a_run(number, state="running") for number in (1, 2, 3))}
    holders = list(runs)
    assert to_cancel(a_job(9), 3, holders, runs) == holders[:1]
    assert to_cancel(a_job(9), 2, holders, runs) == holders[:2]
    assert to_cancel(a_job(9), 4, holders, runs) == []


@pytest.mark.parametrize("ending", [{"cancel_requested": True}, {"ended_at": NOW}])
def test_given_a_run_that_is_ending_already_then_no_other_has_to(ending: dict[str, Any]) -> None:
    runs = {run.id: run for run in (a_run(1, state="running"), a_run(2, state="running", **ending))}
    assert to_cancel(a_job(9), 2, list(runs), runs) == []


def test_given_a_forced_job_then_it_counts_and_waits_for_what_a_constraint_names_only() -> None:
    (job,) = jobs(1, force_overlap=True)
    free, bound = parsed_spec(), parsed_spec(constraints=[at_most(2)])
    assert [limit.max for limit in limits_of(free, job)] == [16]
    assert [limit.max for limit in limits_of(bound, job)] == [2]
