"""What constraints remember: moved by the very transactions that admit a run, end it, or take it back."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.support.builders import HOUR, MINUTE, NOW, Doc, a_definition, a_job, a_run, a_schedule, a_spec, at_most
from tests.support.harness.decision_harness import DecisionHarness
from tidegate_core.admission.admit import AdmitNext
from tidegate_core.rows import keys
from tidegate_core.rows.job import Job
from tidegate_core.rows.run import Run
from tidegate_core.rows.run_history import PastRuns
from tidegate_core.rows.store_operations import Key, Put
from tidegate_core.runs.run_completion import park_run
from tidegate_core.runs.run_lifecycle import CheckRun, RequestCancel
from tidegate_core.writes.unit_of_work import UnitOfWork

REF = "flights/nightly"
PAST = keys.past_runs(0, "flights", "nightly")


@dataclass(frozen=True, slots=True)
class Parked:
    """What `hold` and `freeze` do to one run."""

    run: Run
    about: str = REF
    name: str = "park"
    stale: tuple[Key, ...] = ()

    def decide(self, unit: UnitOfWork, now: int) -> None:
        park_run(unit, self.run, now)


def since(of: str) -> Doc:
    return {"type": "since_last_run", "at_least": "1h", "of": of}


def rate(most: int, per: str = "1h") -> Doc:
    return {"type": "rate", "max": most, "per": per}


def a_desk(*constraints: Doc, jobs: int = 1, **spec: Any) -> DecisionHarness:
    document = a_spec(constraints=list(constraints), overlap="allow", **spec)
    return DecisionHarness(a_definition(document), a_schedule(), *(a_job(number) for number in range(1, jobs + 1)))


def admit(desk: DecisionHarness, now: int = NOW) -> list[str]:
    """Runs that are open after a look."""
    desk.decide(AdmitNext(REF, desk.memory, lambda goes_on: None), now)
    return [run.id for run in desk.records(Run, "R#") if run.ended_at is None]


def end(desk: DecisionHarness, number: int, now: int, outcome: str = "succeeded") -> None:
    """The run passed the gate, and reported."""
    run = desk.record(Run, keys.run(0, a_job(number).id))
    assert run is not None
    desk.lay(replace(run, state="running", started_at=now - 1, ended_at=now, outcome=outcome))
    desk.decide(CheckRun(0, run.id, lambda seen: None), now)


def past(desk: DecisionHarness) -> PastRuns | None:
    return desk.record(PastRuns, PAST)


def test_given_no_constraint_that_looks_back_then_nothing_is_written_for_it() -> None:
    desk = a_desk({"type": "delay", "after": "1ms"})
    admit(desk, NOW + MINUTE)
    end(desk, 1, NOW + 2 * MINUTE)
    assert past(desk) is None


def test_given_an_admission_then_it_is_remembered_in_the_same_transaction() -> None:
    desk = a_desk(since("start"))
    transaction, _ = desk.prepare(AdmitNext(REF, desk.memory, lambda goes_on: None))
    assert transaction is not None
    assert PAST in {action.key for action in transaction.actions}
    admit(desk)
    assert past(desk) == PastRuns(namespace="flights", name="nightly", incarnation="I1", admitted=(NOW,), open=1)


def test_given_jobs_that_could_go_together_then_the_second_waits_for_the_first_ones_span() -> None:
    """Also within one decision: what it has admitted counts for the next job."""
    desk = a_desk(since("start"), jobs=2)
    assert admit(desk) == [a_job(1).id]
    assert desk.memory.next_wake() == NOW + HOUR
    assert admit(desk, NOW + HOUR - 1) == [a_job(1).id]
    assert admit(desk, NOW + HOUR) == [a_job(1).id, a_job(2).id]


def test_given_a_rate_then_as_many_go_together_and_the_next_when_the_first_is_old_enough() -> None:
    """CD-086."""
    desk = a_desk(rate(3), jobs=5)
    assert len(admit(desk)) == 3
    assert desk.memory.next_wake() == NOW + HOUR
    assert len(admit(desk, NOW + HOUR)) == 5
    known = past(desk)
    assert known is not None
    # All five are open: those of them that are taken back leave the latest three.
    assert known.admitted == (NOW, NOW, NOW, NOW + HOUR, NOW + HOUR)


def test_given_runs_that_have_ended_then_one_admission_more_is_kept_than_the_rate_looks_at() -> None:
    """The last one could still be taken back as it was noted."""
    desk = a_desk(rate(1), jobs=4)
    for number in range(1, 5):
        assert admit(desk, NOW + number * HOUR) == [a_job(number).id]
        end(desk, number, NOW + number * HOUR + MINUTE)
    known = past(desk)
    assert known is not None
    assert (known.admitted, known.open) == ((NOW + 3 * HOUR, NOW + 4 * HOUR), 0)


def test_given_several_rates_then_the_largest_decides_how_much_is_kept() -> None:
    desk = a_desk(rate(2, "1m"), rate(4, "1d"), jobs=6)
    for minute in range(6):
        admit(desk, NOW + minute * MINUTE)
    assert len(desk.records(Run, "R#")) == 4
    known = past(desk)
    assert known is not None
    assert len(known.admitted) == 4


@pytest.mark.parametrize(("outcome", "succeeded"), [("succeeded", NOW + 9), ("failed", None), ("killed", None)])
def test_given_an_end_then_finish_and_success_are_remembered(outcome: str, succeeded: int | None) -> None:
    desk = a_desk(since("finish"))
    admit(desk)
    end(desk, 1, NOW + 9, outcome)
    known = past(desk)
    assert known is not None
    assert (known.open, known.finished, known.succeeded) == (0, NOW + 9, succeeded)


def test_given_a_run_that_is_still_open_then_its_end_lets_the_next_wait_for_the_span() -> None:
    desk = a_desk(since("finish"), jobs=2)
    assert admit(desk) == [a_job(1).id]
    job = desk.record(Job, a_job(2).key(0))
    assert job is not None
    assert '"still_running"' in (job.unmet or "")
    end(desk, 1, NOW + 9)
    assert admit(desk, NOW + 9) == []
    assert desk.memory.next_wake() == NOW + 9 + HOUR
    assert admit(desk, NOW + 9 + HOUR) == [a_job(2).id]


def test_given_a_run_that_was_cancelled_before_its_program_started_then_it_is_given_back() -> None:
    """SEMANTICS 7.5."""
    desk = a_desk(rate(1), jobs=2)
    assert admit(desk) == [a_job(1).id]
    desk.decide(RequestCancel(0, a_job(1).id), NOW + 5)
    known = past(desk)
    assert known is not None
    assert (known.admitted, known.open, known.finished) == ((), 0, None)
    assert admit(desk, NOW + 6) == [a_job(2).id]


def test_given_more_runs_than_the_rate_forced_at_once_then_one_that_is_given_back_leaves_the_others_counted() -> None:
    """Seed 142: what several forced runs had pushed out of memory was missing when the last of them was cancelled."""
    desk = a_desk(rate(1), jobs=4, pending_timeout_action="force")
    for number in (1, 2, 3, 4):
        desk.lay(replace(a_job(number), deadline=NOW + MINUTE))
    late = NOW + 2 * MINUTE
    assert set(admit(desk, late)) == {a_job(number).id for number in (1, 2, 3, 4)}
    desk.decide(RequestCancel(0, a_job(4).id), late + 5)
    known = past(desk)
    assert known is not None
    assert (known.admitted, known.open) == ((late,) * 3, 3)


def test_given_a_forced_run_that_is_given_back_then_the_one_that_ended_before_it_still_counts() -> None:
    """Seed 20900263: it had pushed out the only admission that the rate remembered, and the next job went at once."""
    desk = a_desk(rate(1), jobs=3, pending_timeout_action="force")
    assert admit(desk, NOW) == [a_job(1).id]
    end(desk, 1, NOW + MINUTE)
    desk.lay(replace(a_job(2), deadline=NOW + 2 * MINUTE))
    assert admit(desk, NOW + 2 * MINUTE) == [a_job(2).id]
    desk.decide(RequestCancel(0, a_job(2).id), NOW + 3 * MINUTE)
    assert admit(desk, NOW + 4 * MINUTE) == []
    known = past(desk)
    assert known is not None
    assert (known.admitted, known.open) == ((NOW,), 0)
    assert admit(desk, NOW + HOUR) == [a_job(3).id]


def test_given_a_run_that_a_suspend_takes_back_then_it_was_none() -> None:
    desk = a_desk(rate(1))
    (run_id,) = admit(desk)
    run = desk.record(Run, keys.run(0, run_id))
    assert run is not None
    desk.decide(Parked(run), NOW + 5)
    known = past(desk)
    assert known is not None
    assert (known.admitted, known.open) == ((), 0)


def test_given_a_run_that_failed_before_its_program_started_then_it_was_one_all_the_same() -> None:
    """Else a launcher that fails would be asked more often than the rate says."""
    desk = a_desk(rate(1), jobs=2)
    admit(desk)
    (run,) = desk.records(Run, "R#")
    desk.decide(CheckRun(0, run.id, lambda seen: None), run.start_by)
    assert [entry[1] for entry in desk.ledger()] == ["launched"]
    known = past(desk)
    assert known is not None
    assert (known.admitted, known.open, known.finished) == ((NOW,), 0, None)


@pytest.mark.parametrize("looks_back", [False, True])
def test_given_a_constraint_that_looks_back_then_one_job_at_a_time_is_in_the_queue_of_a_shared_limit(
    looks_back: bool,
) -> None:
    """The admission of the first would hold the second back, and the slot that it was offered would stand free."""
    desk = a_desk(at_most(1, "program"), *([since("start")] if looks_back else []), jobs=2)
    admit(desk)
    (full,) = [item for item in desk.store.items() if str(item["pk"]).startswith("LIMIT#")]
    assert full["in_use"] == 1
    other = a_desk(at_most(1, "program"), *([since("start")] if looks_back else []), jobs=2)
    other.store.write([Put(Key(str(full["pk"]), "LIMIT"), dict(full))])
    admit(other)
    asked = [bool(job.asked) for job in other.records(Job, "J#")]
    assert sum(asked) == (1 if looks_back else 2)


def test_given_a_schedule_that_was_made_anew_then_it_has_no_past_and_what_still_runs_does_not_count_down() -> None:
    """SEMANTICS 11."""
    desk = a_desk(since("finish"))
    desk.lay(PastRuns(namespace="flights", name="nightly", incarnation="I0", admitted=(NOW - 1,), open=1))
    assert admit(desk) == [a_job(1).id]
    desk.lay(a_run(7, state="running", incarnation="I0", remembered=True))
    end(desk, 7, NOW + 5)
    known = past(desk)
    assert known is not None
    assert (known.incarnation, known.open, known.finished) == ("I1", 1, None)


def test_given_a_run_from_before_the_constraint_then_its_end_counts_for_nothing() -> None:
    desk = a_desk(since("finish"))
    desk.lay(a_run(7, state="running"))
    end(desk, 7, NOW + 5)
    assert past(desk) is None
