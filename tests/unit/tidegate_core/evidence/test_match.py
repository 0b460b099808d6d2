"""Events become evidence, enough of it a job: each counted row is gone in the same transaction (I3, SEMANTICS 5 and 6)."""

from __future__ import annotations

import json

import pytest

from tests.support.builders import HOUR, NOW, Doc, a_match, all_of, an_inbox_row, on_data, on_run_of
from tests.support.harness.evidence_bench import BOTH, REF, a_desk, count, entries, evidence, jobs
from tidegate_core.evidence.match import MatchEvents
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence
from tidegate_core.rows.inbox import InboxRow
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.shard.events.outbox import ACTIVATION_SLACK_MS

RUN_FACT = {
    "type": "run",
    "namespace": "flights",
    "schedule": "up",
    "run_id": "0001-" + "a" * 26,
    "attempt": 1,
    "state": "succeeded",
    "args": ["x"],
    "outputs": {"rows": 3},
    "correlation": "d7",
    "admitted_at": "2025-11-13T02:13:00Z",
}


def test_given_a_matched_event_then_it_is_counted_and_its_row_is_gone() -> None:
    desk = a_desk(on_data(count=3))
    count(desk, an_inbox_row(1, a_match("d1")))
    assert evidence(desk) == {"": (1,)}
    assert desk.records(InboxRow, "I#") == []
    (opened,) = desk.records(Evidence, "E#")
    assert [entry["partition"] for entry in entries(desk, opened.id)] == ["d1"]
    assert jobs(desk) == []


def test_given_the_same_rows_again_then_nothing_is_counted() -> None:
    desk = a_desk(on_data(count=3))
    row = an_inbox_row(1, a_match("d1"))
    count(desk, row)
    assert desk.decide(MatchEvents(REF, (row.key(0),))) is None
    assert evidence(desk) == {"": (1,)}


@pytest.mark.parametrize(
    ("partitions", "counts"),
    [
        pytest.param(["a", "b"], 2, id="two"),
        pytest.param(["a", "a", "a"], 1, id="one thrice"),
        pytest.param(["a", "b", "a"], 2, id="one again later"),
    ],
)
@pytest.mark.parametrize("together", [True, False], ids=["one row", "a row each"])
def test_given_the_same_data_partition_again_then_the_count_stays(
    partitions: list[str], counts: int, together: bool
) -> None:
    desk = a_desk(on_data(count=5))
    matches = [a_match(each) for each in partitions]
    if together:
        count(desk, an_inbox_row(1, *matches))
    else:
        for number, match in enumerate(matches):
            count(desk, an_inbox_row(number, match))
    assert evidence(desk) == {"": (counts,)}


def test_given_enough_then_the_job_exists_and_absorbs_what_comes_later() -> None:
    desk = a_desk(on_data(count=2))
    count(desk, an_inbox_row(1, a_match("a"), a_match("b")), now=NOW + 5)
    (job,) = jobs(desk)
    (held,) = desk.records(Evidence, "E#")
    assert (job.id, job.evidence_id, job.chunks, job.trigger) == (held.id, held.id, None, "events")
    assert (job.nominal, job.satisfied_at, job.deadline) == (NOW + 5, NOW + 5, NOW + 5 + 24 * HOUR)
    count(desk, an_inbox_row(2, a_match("c")))
    assert evidence(desk) == {"": (3,)}
    assert len(jobs(desk)) == 1


def test_given_a_seal_then_the_next_event_opens_the_next_job() -> None:
    desk = a_desk(on_data(count=1))
    count(desk, an_inbox_row(1, a_match("a")))
    first = jobs(desk)[0]
    (held,) = desk.records(Evidence, "E#")
    from tidegate_core.rows.store_operations import Delete

    desk.store.write([Delete(held.key(0))])  # As admission does.
    count(desk, an_inbox_row(2, a_match("a")))
    assert len(jobs(desk)) == 2
    assert {job.id for job in jobs(desk)} > {first.id}


@pytest.mark.parametrize(
    "match",
    [
        pytest.param(a_match("d", generation=2), id="newer generation"),
        pytest.param(a_match("d", generation=0), id="older generation"),
        pytest.param(a_match("d", incarnation="I0"), id="another incarnation"),
        pytest.param(a_match("d", dataset="other"), id="another dataset"),
    ],
)
def test_given_a_match_that_is_not_for_this_activation_then_its_row_goes_uncounted(match: Doc) -> None:
    desk = a_desk(on_data())
    count(desk, an_inbox_row(1, match))
    assert evidence(desk) == {}
    assert desk.records(InboxRow, "I#") == []


@pytest.mark.parametrize("status", ["suspended", "deleted"])
def test_given_a_schedule_that_is_not_active_then_events_are_ignored(status: str) -> None:
    desk = a_desk(on_data(), status=status)
    count(desk, an_inbox_row(1, a_match("d")))
    assert evidence(desk) == {}
    assert desk.records(InboxRow, "I#") == []


def test_given_an_event_that_says_more_than_created_then_only_created_counts() -> None:
    desk = a_desk(on_data())
    fact = {"type": "data.partition", "namespace": "flights", "dataset": "raw", "partition": "d", "kind": "deleted"}
    count(desk, an_inbox_row(1, a_match("d", fact=json.dumps(fact))))
    assert evidence(desk) == {}


# -- composites --------------------------------------------------------------------------------------------------------


def test_given_all_of_then_each_leaf_has_its_count_and_all_have_to_hold() -> None:
    desk = a_desk(all_of(on_data("a", 2), on_data("b", 1)))
    count(desk, an_inbox_row(1, a_match("x", leaf=0, dataset="a"), a_match("y", leaf=1, dataset="b")))
    assert evidence(desk) == {"": (1, 1)}
    assert jobs(desk) == []
    count(desk, an_inbox_row(2, a_match("z", leaf=0, dataset="a")))
    assert len(jobs(desk)) == 1


def test_given_correlation_then_evidence_of_one_key_never_meets_anothers() -> None:
    desk = a_desk(BOTH)
    count(desk, an_inbox_row(1, a_match("d1", leaf=0, dataset="a"), a_match("d2", leaf=1, dataset="b")))
    assert evidence(desk) == {"d1": (1, 0), "d2": (0, 1)}
    assert jobs(desk) == []
    count(desk, an_inbox_row(2, a_match("d1", leaf=1, dataset="b")))
    (job,) = jobs(desk)
    assert job.correlation == "d1"
    state = desk.record(ScheduleState, keys.schedule_state(0, "flights", "nightly"))
    assert state is not None
    assert state.seals == 2


def test_given_an_upstream_run_then_the_job_takes_its_correlation_and_facts() -> None:
    desk = a_desk(on_run_of("up"))
    count(desk, an_inbox_row(1, a_match("-", fact=json.dumps(RUN_FACT))))
    (job,) = jobs(desk)
    assert job.correlation == "d7"
    assert json.loads(job.upstream or "{}")["outputs"] == {"rows": 3}


@pytest.mark.parametrize(
    ("activated_after_ms", "counts"),
    [(-1, True), (0, True), (ACTIVATION_SLACK_MS, True), (ACTIVATION_SLACK_MS + 1, False)],
)
def test_given_a_run_admitted_before_the_activation_then_it_counts_within_the_clocks_skew_only(
    activated_after_ms: int, counts: bool
) -> None:
    """SEMANTICS 6.8. The state says when that was: the row by which it was told may be of a former owner (seed 20500047)."""
    desk = a_desk(on_run_of("up"), activated_at=parse_instant(str(RUN_FACT["admitted_at"])) + activated_after_ms)
    count(desk, an_inbox_row(1, a_match("-", fact=json.dumps(RUN_FACT))))
    assert bool(jobs(desk)) == counts
    assert desk.records(InboxRow, "I#") == []


# -- the upstream run --------------------------------------------------------------------------------------------------


def a_run_row(number: int, leaf: int, run: str = "a", at: int = NOW) -> InboxRow:
    fact = {**RUN_FACT, "run_id": f"0001-{run * 26}"}
    return an_inbox_row(number, a_match("-", leaf=leaf, at=at, fact=json.dumps(fact)))


@pytest.mark.parametrize("run_first", [True, False])
@pytest.mark.parametrize("together", [True, False])
def test_given_a_run_among_the_leaves_then_the_job_names_it_whichever_came_last(
    run_first: bool, together: bool
) -> None:
    desk = a_desk(all_of(on_run_of("up"), on_data("a")))
    rows = [a_run_row(1, 0), an_inbox_row(2, a_match("d1", leaf=1, dataset="a"))]
    rows = rows if run_first else rows[::-1]
    if together:
        count(desk, *rows)
    else:
        for row in rows:
            count(desk, row)
    (job,) = jobs(desk)
    assert json.loads(job.upstream or "{}")["run_id"] == "0001-" + "a" * 26


def test_given_several_runs_of_a_leaf_then_the_latest_is_named() -> None:
    desk = a_desk(all_of(on_run_of("up"), on_data("a")))
    count(desk, a_run_row(1, 0, "b", at=NOW + 9), a_run_row(2, 0, "a", at=NOW + 3))
    count(desk, an_inbox_row(3, a_match("d1", leaf=1, dataset="a")))
    assert json.loads(jobs(desk)[0].upstream or "{}")["run_id"] == "0001-" + "b" * 26


def test_given_a_match_of_a_leaf_that_is_not_there_then_it_is_passed() -> None:
    """From an index row of a request that came to nothing."""
    desk = a_desk(on_data())
    count(desk, an_inbox_row(1, a_match("d", leaf=3), a_match("d")))
    assert len(jobs(desk)) == 1
