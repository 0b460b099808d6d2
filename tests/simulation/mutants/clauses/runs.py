"""Clauses that make one run of one occurrence, within its limits, and none after a stop."""

from __future__ import annotations

from collections.abc import Iterable

from tests.simulation.mutants.clauses.clause_finder import always
from tests.simulation.mutants.clauses.clause_mutant import dropped, withheld
from tests.simulation.stories.stage import (
    NEVER_STARTS,
    ONCE,
    Stage,
    a_commit,
    limit_of,
    run_by_hand,
    starts,
    takes,
    two_under_one_limit,
    writing,
)
from tests.support.builders import SECOND, Doc, a_request, a_spec, an_apply, every
from tests.support.harness.actor_harness import Behaviour, Bench
from tidegate_core.effects import Committed
from tidegate_core.store import keys
from tidegate_core.store.values import Transaction
from tidegate_core.transactions.limits import Permit, return_permits, take_permit
from tidegate_memory.store import MemoryStore

ONE, TWO = "0000-one", "0000-two"


# -- revisions and keys ---------------------------------------------------------------------------------------------------


def a_program_passes_the_gate_while_its_run_is_being_closed() -> Iterable[str]:
    """Suspend read the run before the gate, and its transaction arrives after the start."""
    bench = Stage().first
    bench.behaves = lambda order: NEVER_STARTS
    run = run_by_hand(bench)
    bench.hold_back(writing("R#"))
    bench.request(a_request("suspend"))
    started = bench.transact(starts(run, bench.now))
    bench.release()
    bench.run(5 * SECOND)
    listed = (bench.receipts()["suspend-nightly"]["discarded"] or {}).get("jobs", [])
    if isinstance(started, Committed) and run in listed:
        yield f"I7: run {run} goes on although its end was acknowledged"


def a_job_arrives_again_after_its_run_has_ended() -> Iterable[str]:
    """The first send of what made it was given up; it arrives when nothing of job and run is left."""
    bench = Stage().first
    bench.delay(a_commit("trigger"))
    run = run_by_hand(bench)
    bench.release()
    bench.crash()
    bench.run(20 * SECOND)
    if bench.rows("J#") or len(bench.started) > 1:
        yield f"I2: run {run} has ended, and is there again"


# -- the schedule's state -------------------------------------------------------------------------------------------------


def an_admission_arrives_after(stop: Doc) -> Iterable[str]:
    """A frozen owner's; its successor has admitted the job too, and has closed the run when the stop came."""
    stage = Stage()
    stage.first.request(an_apply(a_spec(trigger=ONCE)))
    stage.first.hold_back(writing("R#"))
    stage.first.run(12 * SECOND)
    second = stage.idle_successor(behaviour=NEVER_STARTS)
    second.run(SECOND)
    second.request(stop)
    second.run(5 * SECOND)
    assert not stage.first.rows("R#0") or "ended_at" in stage.first.rows("R#0")[0]
    stage.first.release()
    if [row for row in stage.first.rows("R#") if "ended_at" not in row]:
        yield f"I7: a run was admitted after {stop['type']} was acknowledged"


def an_admission_arrives_after_a_suspend() -> Iterable[str]:
    return an_admission_arrives_after(a_request("suspend"))


def an_admission_arrives_after_an_update() -> Iterable[str]:
    return an_admission_arrives_after(an_apply(a_spec(trigger=every("1h")), "second"))


# -- limits ---------------------------------------------------------------------------------------------------------------


def is_reckoned_right(bench: Bench) -> Iterable[str]:
    limit = limit_of(bench.store)
    if limit["in_use"] != len(limit["holders"]):
        yield f"I4: {limit['in_use']} permits are in use and {len(limit['holders'])} runs hold one"


def two_shards_admit_at_once() -> Iterable[str]:
    bench = Stage().first
    bench.behaves = lambda order: Behaviour(runs_for=None)
    two_under_one_limit(bench)
    bench.hold_back(writing("R#"))
    bench.run(12 * SECOND)
    bench.release()
    in_use = limit_of(bench.store)["in_use"]
    if in_use > 1:
        yield f"I4: {in_use} runs under a limit of 1"


def the_first_permit_is_taken() -> Iterable[str]:
    if not takes(MemoryStore(), permits("take", ONE)):
        yield "I1: nobody gets a permit of a limit that was never used"


def a_permit_is_taken_that_was_given_back() -> Iterable[str]:
    store = MemoryStore()
    assert takes(store, permits("take", ONE))
    assert takes(store, permits("return", ONE))
    if not takes(store, permits("take", TWO)):
        yield "I1: nobody gets the permit that was given back"


def permits(what: str, run: str) -> Transaction:
    limit = keys.shared_limit("flights", "program", "/jobs/same.py")
    permit = Permit.of(limit, run, 1)
    actions = take_permit(permit, 1) if what == "take" else (return_permits(limit, [permit]),)
    return Transaction(what, actions, f"{what} {run}", None)


def an_admission_arrives_twice() -> Iterable[str]:
    bench = Stage().first
    bench.behaves = lambda order: Behaviour(runs_for=None)
    two_under_one_limit(bench, most=5)
    bench.delay(writing("R#"))
    bench.run(15 * SECOND)
    bench.release()
    return is_reckoned_right(bench)


def a_return_arrives_twice() -> Iterable[str]:
    bench = Stage().first
    two_under_one_limit(bench, most=5)
    bench.delay(writing("Z#"))
    bench.run(30 * SECOND)
    bench.release()
    return is_reckoned_right(bench)


# Whatever else is conditioned on what these transactions read or make.
REVISIONS = (
    always("unchanged", "#rev = :rev_seen"),
    always("absent", "attribute_not_exists(#pk)"),
)
LEASE = always("holds_lease", "#epoch = :epoch")
IN_USE = "(attribute_not_exists(#in_use) OR #in_use < :most)"

CLAUSES_OF_RUNS = (
    dropped(
        "unchanged",
        "#rev = :rev_seen",
        "suspend closes a run that has passed the gate since it was read",
        breaks="I7",
        scenario=a_program_passes_the_gate_while_its_run_is_being_closed,
    ),
    dropped(
        "absent",
        "attribute_not_exists(#pk)",
        "a job that is made a second time, late, becomes a second run",
        breaks="I2",
        scenario=a_job_arrives_again_after_its_run_has_ended,
    ),
    dropped(
        "schedule_is",
        "#status = :status",
        "an admission that was decided before a suspend arrives after its acknowledgement",
        breaks="I7",
        scenario=an_admission_arrives_after_a_suspend,
        beside=(LEASE, *REVISIONS, always("schedule_is", "#generation = :generation")),
    ),
    dropped(
        "schedule_is",
        "#generation = :generation",
        "an admission that was decided before an update arrives after its acknowledgement",
        breaks="I7",
        scenario=an_admission_arrives_after_an_update,
        beside=(LEASE, *REVISIONS),
    ),
    dropped(
        "permit_free",
        IN_USE,
        "two shards admit at the same moment",
        breaks="I4",
        scenario=two_shards_admit_at_once,
    ),
    withheld(
        "permit_free",
        "attribute_not_exists(#in_use)",
        "nobody is the first to take a permit",
        breaks="I1",
        scenario=the_first_permit_is_taken,
    ),
    withheld(
        "permit_free",
        "#in_use < :most",
        "a limit that was ever used is never free again",
        breaks="I1",
        scenario=a_permit_is_taken_that_was_given_back,
    ),
    dropped(
        "permit_free",
        "NOT contains(#holders, :run)",
        "a run takes two permits, and gives one back",
        breaks="I4",
        scenario=an_admission_arrives_twice,
        beside=REVISIONS,
    ),
    dropped(
        "permits_held",
        "contains(#holders, :run)",
        "a permit is given back twice, so that one run more passes",
        breaks="I4",
        scenario=a_return_arrives_twice,
        beside=REVISIONS,
    ),
)
