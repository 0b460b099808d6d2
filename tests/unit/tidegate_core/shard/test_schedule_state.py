"""What a schedule's state lets happen, and what it makes of pending jobs and evidence without writing them."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import MINUTE, NOW, Doc, a_job, a_schedule, some_evidence
from tidegate_core.commands.suspend_resume import SPANS_KEPT
from tidegate_core.rows.item_codec import from_item, to_item
from tidegate_core.rows.job import Job
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.shard.schedule_state import (
    STRETCHES_MAX,
    admits,
    awaits_backlog_cut,
    backlog_through,
    carried_on,
    clocks_stopped,
    fires,
    is_cut,
    keeps_pending,
    launches,
    oldest_kept_generation,
    present_evidence,
    rebind_job,
    stopped,
    stopped_by,
    version_of,
)

NEW_FIELDS = (
    "mode",
    "suspended_at",
    "until",
    "stopped_ms",
    "last_stops",
    "kept_from",
    "carried",
    "shedding",
    "backlog_through",
    "cut_through",
    "unmade_through",
    "missed_by_update",
    "made_up",
    "made_up_to",
)


@pytest.mark.parametrize(
    ("status", "mode", "expected"),
    [
        #                          fires  admits still  keeps
        ("active", "drop", (True, True, False, True)),
        ("suspended", "drop", (False, False, False, False)),
        ("suspended", "drain", (False, True, False, True)),
        ("suspended", "hold", (True, False, True, True)),
        ("suspended", "freeze", (False, False, True, True)),
        ("deleted", "hold", (False, False, False, False)),
        # Mode of an earlier suspension: it says nothing of an active one.
        ("active", "hold", (True, True, False, True)),
    ],
)
def test_given_status_and_mode_then_this_may_happen(
    status: str, mode: str, expected: tuple[bool, bool, bool, bool]
) -> None:
    state = a_schedule(status=status, mode=mode)
    assert (fires(state), admits(state), clocks_stopped(state), keeps_pending(state)) == expected


@pytest.mark.parametrize("suspended", [{}, {"status": "suspended", "mode": "drain"}])
def test_given_a_backlog_that_is_being_cut_then_nothing_is_admitted_and_what_was_goes_on(suspended: Doc) -> None:
    state = a_schedule(shedding="last", **suspended)
    assert (admits(state), launches(state)) == (False, True)


@pytest.mark.parametrize(
    ("shedding", "expected"),
    [
        #        (awaits, is cut): of before the earlier cut, of before the later one, of since
        ("none", [(True, True), (True, True), (False, False)]),
        ("last", [(True, True), (True, False), (False, False)]),
        (None, [(False, False), (False, False), (False, False)]),
    ],
)
def test_given_two_resumes_then_a_job_is_cut_by_the_one_that_it_waited_at(
    shedding: str | None, expected: list[tuple[bool, bool]]
) -> None:
    state = a_schedule(shedding=shedding, backlog_through=NOW, cut_through=NOW - MINUTE)
    jobs = [a_job(satisfied_at=at) for at in (NOW - MINUTE, NOW, NOW + 1)]
    assert [(awaits_backlog_cut(state, job), is_cut(state, job)) for job in jobs] == expected


def test_given_records_of_an_older_version_then_they_load_and_mean_what_they_meant() -> None:
    state = a_schedule(generation=7)
    item = {name: value for name, value in to_item(state, state.key(0)).items() if name not in NEW_FIELDS}
    loaded = from_item(ScheduleState, item)
    assert (oldest_kept_generation(loaded), stopped(loaded, NOW), version_of(loaded, 3)) == (7, 0, 3)
    assert (backlog_through(loaded), loaded.missed_by_update, loaded.unmade_through) == (loaded.changed_at, None, None)
    job = a_job()
    old = {name: value for name, value in to_item(job, job.key(0)).items() if name not in {"stopped", "free_attempts"}}
    assert rebind_job(loaded, from_item(Job, old), NOW) == job


@given(st.lists(st.tuples(st.sampled_from(["hold", "freeze", "drain"]), st.integers(1, 500), st.integers(1, 500))))
def test_given_any_suspensions_then_a_deadline_moves_by_exactly_the_time_in_which_the_clock_stood_still(
    spans: list[tuple[str, int, int]],
) -> None:
    state, now, still = a_schedule(), NOW, 0
    job = a_job(deadline=NOW + MINUTE)
    evidence = some_evidence(deadline=NOW + MINUTE)
    for mode, active, length in spans:
        now += active
        state = replace(state, status="suspended", mode=mode, suspended_at=now)
        now += length // 2
        job = rebind_job(state, job, now)  # Written in the middle, by whatever: it makes no difference.
        now += length - length // 2
        state = replace(state, status="active", stopped_ms=stopped(state, now))
        still += length if mode != "drain" else 0
    assert rebind_job(state, job, now).deadline == NOW + MINUTE + still
    assert present_evidence(state, evidence, now).deadline == NOW + MINUTE + still


@given(
    st.integers(0, 9),
    st.lists(st.tuples(st.integers(1, 9), st.integers(0, 9)), min_size=1, max_size=SPANS_KEPT),
    st.booleans(),
    st.integers(0, 160),
)
def test_given_an_instant_since_the_last_stops_began_then_it_is_known_how_long_clocks_had_stood_still_by_then(
    earlier: int, spans: list[tuple[int, int]], stands: bool, after: int
) -> None:
    """Seed 27000317: what had come amid an earlier one of two suspensions, and was read late, stood for as long as if it had come after it."""
    stood: list[tuple[int, int]] = []
    now = NOW
    for length, active in spans:
        stood.append((now, now + length))
        now += length + active
    total = earlier + sum(length for length, _ in spans)
    state = a_schedule(stopped_ms=total, last_stops=tuple(chain(*stood)))
    if stands:
        state = replace(state, status="suspended", mode="freeze", suspended_at=now)
        stood.append((now, NOW + 999))
    at = NOW + after
    assert stopped_by(state, at) == earlier + sum(
        begin <= each < end for each in range(NOW, at) for begin, end in stood
    )


@given(st.lists(st.sampled_from(["carry", "finish_old"]), max_size=2 * STRETCHES_MAX - 2))
def test_given_any_updates_then_a_job_goes_along_with_those_that_carry_up_to_the_first_that_does_not(
    updates: list[str],
) -> None:
    state = a_schedule(version=1)
    for how in updates:
        carried = carried_on(state) if how == "carry" else state.carried
        state = replace(state, carried=carried, version=state.version + 1)
    for made in range(1, state.version + 1):
        expected = made
        while expected < state.version and updates[expected - 1] == "carry":
            expected += 1
        assert version_of(state, made) == expected


def test_given_endless_updates_then_the_state_stays_small() -> None:
    state = a_schedule(version=1)
    for _ in range(100):
        state = replace(state, carried=carried_on(state), version=state.version + 1)
        state = replace(state, version=state.version + 1)
    assert len(state.carried) == 2 * STRETCHES_MAX
    assert version_of(state, state.version - 2) == state.version - 1
