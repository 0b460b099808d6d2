"""Admission: constraints, limits and order, decided by what the transaction itself demands (I4, I7)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.builders import (
    HOUR,
    NOW,
    SECOND,
    Doc,
    a_definition,
    a_job,
    a_run,
    a_schedule,
    a_spec,
    at_most,
    every,
    on_data,
    some_evidence,
)
from tests.support.harness.decision_harness import DecisionHarness
from tidegate_core.admission.admit import AdmitNext
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows import keys
from tidegate_core.rows.evidence import Evidence, EvidenceChunk
from tidegate_core.rows.job import Job
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import OwnLimit
from tidegate_core.rows.store_operations import ITEM_BYTES_MAX, Key, Put, Transaction, Update
from tidegate_core.runs.run_lifecycle import CheckRun
from tidegate_core.shard.jobs import seal
from tidegate_core.shard.launch_values import SUBMIT_WITHIN_MS
from tidegate_core.shard.limits.limit_queue_entry import ASK_AGAIN_MS
from tidegate_core.writes.limit_permits import Permit, key_of, key_text, take_permit
from tidegate_core.writes.unit_of_work import TooLarge, UnitOfWork

REF = "flights/nightly"
WINDOW = {"type": "time_window", "opens": "03:00", "closes": "04:00"}
OPEN_WINDOW = {"type": "time_window", "opens": "00:00", "closes": "23:59"}
OPENS = parse_instant("2025-11-13T03:00:00Z")
PROGRAM = keys.shared_limit("flights", "program", "python:/jobs/nightly.py")
GROUP = keys.shared_limit("flights", "group", "g")


def a_desk(*jobs: Job, spec: Doc | None = None, **state: Any) -> DecisionHarness:
    return DecisionHarness(a_definition(spec or a_spec()), a_schedule(**state), *(jobs or (a_job(1),)))


def a_look(desk: DecisionHarness) -> AdmitNext:
    """A decision on one job."""
    return AdmitNext(REF, desk.memory, lambda goes_on: None, most=1)


def admit(desk: DecisionHarness, now: int = NOW, times: int = 1) -> None:
    for _ in range(times):
        desk.decide(a_look(desk), now)


def runs(desk: DecisionHarness) -> list[str]:
    return [run.id for run in sorted(desk.records(Run, "R#"), key=lambda run: run.satisfied_at)]


def jobs(desk: DecisionHarness) -> dict[str, str]:
    return {job.id: job.state for job in desk.records(Job, "J#")}


def shared_limit(desk: DecisionHarness) -> Key:
    (row,) = [item for item in desk.store.items() if str(item["pk"]).startswith("LIMIT#")]
    return Key(str(row["pk"]), str(row["sk"]))


def test_given_nothing_in_the_way_then_the_job_becomes_a_run() -> None:
    desk = a_desk(spec=a_spec(args=["${nominal}"]))
    admit(desk, NOW + 7)
    (run,) = desk.records(Run, "R#")
    assert (run.id, run.state, run.attempt, run.admitted_at) == (a_job(1).id, "submitting", 1, NOW + 7)
    assert run.start_by == NOW + 7 + SUBMIT_WITHIN_MS
    assert json.loads(run.order)["args"] == ["2025-11-13T02:13:20Z"]
    assert jobs(desk) == {a_job(1).id: "pending_launch"}


def test_given_no_job_that_waits_then_nothing_is_written() -> None:
    desk = a_desk(a_job(1, state="pending_launch"))
    assert desk.decide(a_look(desk)) is None


@pytest.mark.parametrize(
    ("state", "generation"), [("suspended", 1), ("deleted", 1), ("active", 2)], ids=["suspended", "deleted", "updated"]
)
def test_given_a_schedule_that_does_not_want_the_job_any_more_then_it_is_not_admitted(
    state: str, generation: int
) -> None:
    desk = a_desk(status=state, generation=generation)
    assert desk.decide(a_look(desk)) is None
    assert runs(desk) == []


def test_given_a_suspend_that_commits_in_between_then_the_admission_is_refused() -> None:
    """I7: whoever commits first; the other one is refused."""
    desk = a_desk()
    transaction, _ = desk.prepare(a_look(desk))
    assert transaction is not None
    key = keys.schedule_state(0, "flights", "nightly")
    suspend = Update(key, "SET #s = :s, w = :w", {"#s": "status"}, {":s": "suspended", ":w": "s"})
    desk.store.transact(Transaction("suspend", (suspend,), "s", key))
    desk.store.transact(transaction)
    assert runs(desk) == []


def test_given_a_lease_or_controls_that_moved_then_the_admission_is_refused() -> None:
    for changed in ({"epoch": 2, "controls": 0}, {"epoch": 1, "controls": 1}):
        desk = a_desk()
        transaction, _ = desk.prepare(a_look(desk))
        assert transaction is not None
        lease = keys.lease(0)
        desk.store.write([Put(lease, {"pk": lease.pk, "sk": lease.sk, **changed})])
        desk.store.transact(transaction)
        assert runs(desk) == []


# -- order and own limit --------------------------------------------------------------------------------------------------


def test_given_several_jobs_then_the_first_satisfied_goes_first() -> None:
    desk = a_desk(a_job(3), a_job(1), a_job(2), spec=a_spec(overlap="allow"))
    admit(desk, times=2)
    assert runs(desk) == [a_job(1).id, a_job(2).id]


def test_given_overlap_queue_then_one_runs_at_a_time() -> None:
    desk = a_desk(a_job(1), a_job(2))
    admit(desk, times=3)
    assert runs(desk) == [a_job(1).id]
    (limit,) = desk.records(OwnLimit, "LIM#")
    assert limit.holders == (a_job(1).id,)
    waiting = desk.record(Job, a_job(2).key(0))
    assert waiting is not None
    assert waiting.unmet is not None
    assert json.loads(waiting.unmet)["code"] == "concurrency"


@pytest.mark.parametrize("most", [1, 2, 3])
def test_given_a_limit_of_the_schedule_then_as_many_run_and_the_rest_waits(most: int) -> None:
    desk = a_desk(*(a_job(number) for number in range(1, 6)), spec=a_spec(constraints=[at_most(most)]))
    admit(desk, times=6)
    assert runs(desk) == [a_job(number).id for number in range(1, most + 1)]


def test_given_overlap_allow_without_limit_then_all_run() -> None:
    desk = a_desk(*(a_job(number) for number in range(1, 6)), spec=a_spec(overlap="allow"))
    admit(desk, times=5)
    assert len(runs(desk)) == 5


def test_given_a_job_that_waits_then_a_second_look_writes_nothing() -> None:
    desk = a_desk(a_job(1), a_job(2))
    admit(desk, times=2)
    assert desk.decide(a_look(desk)) is None


# -- shared limits ----------------------------------------------------------------------------------------------------------


def test_given_a_limit_of_the_program_then_it_is_taken_with_the_run_and_named_by_it() -> None:
    desk = a_desk(spec=a_spec(constraints=[at_most(2, "program")], overlap="allow"))
    admit(desk)
    key = shared_limit(desk)
    item = desk.store.peek(key) or {}
    assert (item["in_use"], item["holders"]) == (1, frozenset({a_job(1).id}))
    assert desk.records(Run, "R#")[0].limits == (f"{key.pk}|{key.sk}",)


def test_given_a_full_limit_of_the_program_then_the_job_joins_its_queue_and_looks_after_its_place() -> None:
    spec = a_spec(constraints=[at_most(1, "program")], overlap="allow")
    desk = a_desk(a_job(1), a_job(2), spec=spec)
    admit(desk, times=2)
    assert runs(desk) == [a_job(1).id]
    assert desk.memory.next_wake() == NOW + ASK_AGAIN_MS
    assert desk.memory.take_held(NOW + ASK_AGAIN_MS) == [REF]


def test_given_a_permit_taken_by_another_shard_in_between_then_the_admission_is_refused() -> None:
    """I4: check and act are the same write."""
    spec = a_spec(constraints=[at_most(1, "program")], overlap="allow")
    desk = a_desk(a_job(1), spec=spec)
    transaction, _ = desk.prepare(a_look(desk))
    assert transaction is not None
    (limit,) = [action.key for action in transaction.actions if action.key.pk.startswith("LIMIT#")]
    stranger = Transaction("stranger", take_permit(Permit(limit, "0003-stranger"), 1), "x", None)
    desk.store.transact(stranger)
    desk.store.transact(transaction)
    assert runs(desk) == []
    assert jobs(desk) == {a_job(1).id: "pending_constraint"}


def test_given_own_and_shared_limit_then_both_are_taken_or_none() -> None:
    """No hold-and-wait (SEMANTICS 7.2)."""
    spec = a_spec(constraints=[at_most(2), at_most(1, "program")])
    desk = a_desk(a_job(1), a_job(2), spec=spec)
    admit(desk, times=3)
    assert runs(desk) == [a_job(1).id]
    assert desk.records(OwnLimit, "LIM#")[0].holders == (a_job(1).id,)
    assert (desk.store.peek(shared_limit(desk)) or {})["in_use"] == 1


# -- windows, deadlines, aborts -----------------------------------------------------------------------------------------------


def test_given_a_closed_window_then_the_job_waits_exactly_until_it_opens() -> None:
    desk = a_desk(spec=a_spec(constraints=[WINDOW]))
    admit(desk)
    assert runs(desk) == []
    assert desk.memory.next_wake() == OPENS
    job = desk.record(Job, a_job(1).key(0))
    assert job is not None
    assert json.loads(job.unmet or "{}")["until"] == OPENS
    admit(desk, OPENS - 1)
    assert runs(desk) == []
    admit(desk, OPENS)
    assert runs(desk) == [a_job(1).id]


def test_given_a_window_that_opens_after_the_deadline_then_the_job_is_looked_at_at_its_deadline() -> None:
    desk = a_desk(a_job(1, deadline=OPENS - 5), spec=a_spec(constraints=[WINDOW]))
    admit(desk)
    assert desk.memory.next_wake() == OPENS - 5
    admit(desk, OPENS - 5)
    assert desk.ledger() == [(a_job(1).id, "expired", "constraint_timeout")]
    assert jobs(desk) == {}


def test_given_a_deadline_that_has_passed_then_a_job_that_nothing_keeps_from_running_runs() -> None:
    """It may have waited for nothing but an owner that looks at it."""
    desk = a_desk(a_job(1, deadline=NOW - SECOND))
    admit(desk)
    assert desk.ledger() == []
    assert runs(desk) == [a_job(1).id]


@pytest.mark.parametrize(
    ("constraint", "before", "reason"),
    [
        pytest.param({**WINDOW, "on_unmet": "abort"}, 0, "window_closed", id="window"),
        pytest.param(at_most(1, on_unmet="abort"), 1, "concurrency", id="own limit"),
        pytest.param(at_most(1, "program", on_unmet="abort"), 1, "concurrency", id="shared limit"),
    ],
)
def test_given_a_constraint_that_aborts_then_the_job_is_skipped_with_the_reason(
    constraint: Doc, before: int, reason: str
) -> None:
    spec = a_spec(constraints=[constraint], overlap="allow" if constraint.get("scope") == "program" else "queue")
    desk = a_desk(a_job(1), a_job(2), spec=spec)
    admit(desk, times=before + 1)
    skipped = a_job(before + 1).id
    assert desk.ledger() == [(skipped, "skipped", reason)]
    assert skipped not in jobs(desk)


@pytest.mark.parametrize(
    "constraints",
    [
        pytest.param([at_most(4, "program", on_unmet="abort")], id="the limit of overlap queue waits"),
        pytest.param([at_most(1), at_most(4, "program", on_unmet="abort")], id="a limit that waits"),
        pytest.param([at_most(1), {**OPEN_WINDOW, "on_unmet": "abort"}], id="a limit that waits, beside a window"),
    ],
)
def test_given_another_constraint_that_would_abort_then_a_full_limit_that_waits_only_waits(
    constraints: list[Doc],
) -> None:
    desk = a_desk(a_job(1), a_job(2), spec=a_spec(constraints=constraints))
    admit(desk, times=2)
    assert runs(desk) == [a_job(1).id]
    assert desk.ledger() == []
    assert jobs(desk)[a_job(2).id] == "pending_constraint"


def test_given_an_open_window_that_would_abort_then_the_closed_one_beside_it_only_waits() -> None:
    desk = a_desk(spec=a_spec(constraints=[WINDOW, {**OPEN_WINDOW, "on_unmet": "abort"}]))
    admit(desk)
    assert desk.ledger() == []
    assert desk.memory.next_wake() == OPENS


def test_given_a_window_that_waits_before_one_that_aborts_then_both_are_closed_and_the_job_is_skipped() -> None:
    desk = a_desk(spec=a_spec(constraints=[WINDOW, {**WINDOW, "closes": "05:00", "on_unmet": "abort"}]))
    admit(desk)
    ((_, disposition, reason),) = desk.ledger()
    assert (disposition, reason) == ("skipped", "window_closed")


@pytest.mark.parametrize("ended", [False, True], ids=["waiting", "expired"])
def test_given_several_unmet_constraints_then_all_are_named_and_looked_at_when_the_last_may_hold(ended: bool) -> None:
    constraints = [WINDOW, {**WINDOW, "opens": "05:00", "closes": "06:00"}, at_most(1)]
    desk = a_desk(a_job(1, deadline=NOW + 9), spec=a_spec(constraints=constraints))
    desk.lay(OwnLimit(namespace="flights", name="nightly", holders=("0000-other",)))
    admit(desk)
    assert desk.memory.next_wake() == NOW + 9
    if ended:
        admit(desk, NOW + 9)
        (row,) = desk.records(LedgerRow, "L#")
        unmet = json.loads(row.detail or "{}")
    else:
        job = desk.record(Job, a_job(1).key(0))
        assert job is not None
        unmet = json.loads(job.unmet or "{}")
    assert unmet["codes"] == ["window_closed", "window_closed", "concurrency"]
    assert unmet["until"] == OPENS + 2 * HOUR
    assert all(part in unmet["reason"] for part in ("03:00-04:00", "05:00-06:00", "0000-other"))


def test_given_another_constraint_that_is_unmet_then_the_job_says_so() -> None:
    desk = a_desk(spec=a_spec(constraints=[WINDOW, at_most(1)]))
    admit(desk)
    desk.lay(OwnLimit(namespace="flights", name="nightly", holders=("0000-other",)))
    admit(desk, NOW + 1)
    job = desk.record(Job, a_job(1).key(0))
    assert job is not None
    assert json.loads(job.unmet or "{}")["codes"] == ["window_closed", "concurrency"]


@pytest.mark.parametrize("overlap", ["allow", "queue"])
def test_given_many_jobs_then_one_decision_goes_through_them_until_one_waits(overlap: str) -> None:
    told: list[bool] = []
    desk = a_desk(*(a_job(number) for number in range(1, 12)), spec=a_spec(overlap=overlap))
    desk.decide(AdmitNext(REF, desk.memory, told.append))
    assert len(runs(desk)) == (8 if overlap == "allow" else 1)
    assert told == [overlap == "allow"]
    desk.decide(AdmitNext(REF, desk.memory, told.append))
    assert len(runs(desk)) == (11 if overlap == "allow" else 1)
    assert told[-1] is False


def test_given_a_shared_limit_then_one_decision_takes_one_permit_of_it() -> None:
    """DynamoDB takes one action an item."""
    told: list[bool] = []
    spec = a_spec(constraints=[at_most(5, "program")], overlap="allow")
    desk = a_desk(*(a_job(number) for number in range(1, 4)), spec=spec)
    for _ in range(3):
        desk.decide(AdmitNext(REF, desk.memory, told.append))
    assert len(runs(desk)) == 3
    assert told == [True, True, True]


def test_given_texts_of_many_bytes_then_the_largest_run_that_is_admitted_fits_an_item() -> None:
    """Counted in bytes: with 3 bytes a character the same number of characters would burst it."""
    upstream = {"run_id": a_job(9).id, "args": ["数" * 21_000], "outputs": {"x": "数" * 21_000}}
    job = a_job(1, trigger="events", upstream=json.dumps(upstream, ensure_ascii=False))
    trigger = {"type": "run_status", "schedule": "up"}
    desk = a_desk(job, spec=a_spec(trigger=trigger, args=["${upstream.outputs.x}"]))
    admit(desk)
    ((key, item),) = [(row["sk"], row) for row in desk.store.items() if str(row["sk"]).startswith("R#")]
    size = sum(len(str(name)) + len(str(value).encode()) for name, value in item.items())
    outputs_to_come = 64 * 1024
    assert size + outputs_to_come < ITEM_BYTES_MAX, key

    desk = a_desk(job, spec=a_spec(trigger=trigger, args=["${upstream.outputs.x}"] * 2))
    admit(desk)
    assert runs(desk) == []
    assert desk.ledger() == [(a_job(1).id, "skipped", "unresolved_template")]


def test_given_a_template_that_cannot_be_resolved_then_the_job_is_skipped_and_blocks_nobody() -> None:
    spec = a_spec(trigger=on_data(), args=["${correlation}"], overlap="allow") | {
        "trigger": {
            "type": "all_of",
            "correlate": "data_partition",
            "triggers": [on_data("a"), on_data("b")],
        }
    }
    desk = a_desk(a_job(1), a_job(2, correlation="d1"), spec=spec)
    admit(desk, times=2)
    assert desk.ledger() == [(a_job(1).id, "skipped", "unresolved_template")]
    assert runs(desk) == [a_job(2).id]


# -- the seal -----------------------------------------------------------------------------------------------------------------


def test_given_evidence_that_still_absorbs_then_admission_seals_it_and_the_next_begins_anew() -> None:
    evidence = some_evidence((4,), chunks=3, job=True)
    job = a_job(1, id=evidence.id, trigger="events", evidence_id=evidence.id)
    desk = a_desk(job, spec=a_spec(trigger=on_data(count=3)))
    desk.lay(evidence, EvidenceChunk(evidence_id=evidence.id, chunk=0, entries="[]"))
    admit(desk)
    (run,) = desk.records(Run, "R#")
    assert (run.evidence_id, run.chunks) == (evidence.id, 3)
    assert desk.record(Job, job.key(0)) is not None
    assert desk.record(Evidence, evidence.key(0)) is None


def test_given_evidence_that_grew_in_between_then_the_admission_is_refused() -> None:
    """I3: what the run is told is exactly what the seal consumed."""
    evidence = some_evidence((4,), chunks=3, job=True)
    desk = a_desk(a_job(1, evidence_id=evidence.id), spec=a_spec(trigger=on_data(count=3)))
    desk.lay(evidence)
    transaction, _ = desk.prepare(a_look(desk))
    assert transaction is not None
    grow = Update(evidence.key(0), "SET chunks = :n, rev = :two, w = :w", {}, {":n": 4, ":two": 2, ":w": "g"})
    desk.store.transact(Transaction("grow", (grow,), "g", evidence.key(0)))
    desk.store.transact(transaction)
    assert runs(desk) == []


def test_given_a_far_deadline_then_the_job_is_not_forgotten() -> None:
    desk = a_desk(a_job(1, deadline=NOW + HOUR), a_job(2, deadline=NOW + HOUR), spec=a_spec(trigger=every("1m")))
    admit(desk, times=2)
    assert desk.memory.next_wake() == NOW + HOUR


def test_given_a_long_line_before_a_job_in_a_queue_then_its_row_there_is_read_anew_all_the_same() -> None:
    """Those before it may be passed over; its home may have taken the row away, and only a look would tell."""
    row = f"{PROGRAM.pk}|W#1"
    desk = a_desk(*(a_job(number) for number in range(20)), a_job(20, asked=(row,)))
    desk.memory.remember_shared_limits(REF, [PROGRAM])
    assert a_look(desk).stale == (PROGRAM, key_of(row))


def test_given_a_job_that_is_sealed_in_the_same_transaction_then_overlap_judges_it_in_the_next_one() -> None:
    """Found in review: the job was written as it was remembered, without the data that it had been sealed with, and was never launched."""
    spec = a_spec(trigger=on_data(), overlap="keep_latest")
    evidence = some_evidence(job=True)
    of_events = a_job(2, id=evidence.id, trigger="data_partitions", evidence_id=evidence.id, nominal=NOW + 5)
    # Of a former version, which an update lets finish; its pages are still to come.
    desk = DecisionHarness(a_definition(spec), a_definition(spec, 2), a_schedule(version=2, generation=2, kept_from=1))
    desk.lay(
        OwnLimit(namespace="flights", name="nightly", holders=("other",)),
        evidence,
        a_job(1, trigger="manual"),
        of_events,
    )
    look = AdmitNext(REF, desk.memory, lambda goes_on: None)
    with pytest.raises(TooLarge):
        desk.decide(_Behind(evidence, look=look))
    desk.decide(_Sealing(evidence))
    desk.decide(look)
    (job,) = desk.records(Job, "J#")
    assert (job.id, job.chunks, job.queued_since) == (evidence.id, 1, a_job(1).waits_since)


@dataclass
class _Sealing:
    """What comes for such a job: it counts for the next one."""

    evidence: Evidence
    stale: tuple[Key, ...] = ()
    name: str = "count"
    about: str = REF

    def decide(self, unit: UnitOfWork, now: int) -> None:
        if unit.item(self.evidence.key(0)) is not None:
            seal(unit, self.evidence)


@dataclass
class _Behind(_Sealing):
    """The same, and a look in the same transaction."""

    look: AdmitNext | None = None

    def decide(self, unit: UnitOfWork, now: int) -> None:
        super().decide(unit, now)
        unit.keep()
        assert self.look is not None
        self.look.decide(unit, now)


@pytest.mark.parametrize(
    ("spec", "limits"),
    [
        pytest.param(
            a_spec(overlap="allow", constraints=[at_most(1, "group", group="g", on_unmet="abort")]),
            (key_text(GROUP),),
            id="a shared limit",
        ),
        pytest.param(
            a_spec(overlap="skip"), (), id="the schedule's own, of a run that was admitted before there was one"
        ),
    ],
)
def test_given_a_run_that_ends_in_the_same_transaction_then_no_job_ends_because_of_it(
    spec: Doc, limits: tuple[str, ...]
) -> None:
    """Found in review: it was skipped, as if what had ended before it was looked at were still open."""
    run = a_run(state="running", external_id="e", ended_at=NOW + 5, outcome="succeeded", limits=limits)
    desk = a_desk(a_job(1, state="pending_launch"), a_job(2), spec=spec)
    desk.lay(run)
    if limits:
        desk.store.transact(Transaction("before", take_permit(Permit(GROUP, run.id), 1), "p", None))
    ends, look = CheckRun(0, run.id, lambda run: None), AdmitNext(REF, desk.memory, lambda goes_on: None)
    with pytest.raises(TooLarge):
        desk.decide(_Together(ends, look))
    desk.decide(ends)
    desk.decide(look)
    assert [job_id for job_id, *_ in desk.ledger()] == [run.id]
    assert a_job(2).id in runs(desk)


@dataclass
class _Together:
    """A look behind another decision of its transaction."""

    first: CheckRun
    look: AdmitNext
    stale: tuple[Key, ...] = ()
    name: str = "look"
    about: str = REF

    def decide(self, unit: UnitOfWork, now: int) -> None:
        self.first.decide(unit, now)
        unit.keep()
        self.look.decide(unit, now)
