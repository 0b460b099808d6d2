"""An admission that is carried out after it was taken for refused: each rule against it switched off (docs/protocol.md)."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.mutant_harness import Stage, a_commit, writing
from tests.simulation.mutants.sketch.protocol_sketch import ran
from tests.simulation.mutants.sketch.replacements import NOTHING_LATE
from tests.support.builders import SECOND, a_request, a_spec, an_apply, at_most, every
from tests.support.harness.actor_harness import Behaviour
from tidegate_core.decisions.lane import Lane
from tidegate_core.effects import Commit, Effect
from tidegate_core.store.values import Key, Transaction
from tidegate_core.transactions.limits import lapse_offers, offer_slots


def trusting_a_refusal(_: Any) -> Any:
    def not_applied(*_: Any) -> Generator[Any, Any, bool]:
        yield from ()
        return False

    return not_applied


def an_admission_arrives_when_its_offer_is_there_again() -> Iterable[str]:
    """Its first send got no answer, the second one was refused: a late repeat had taken the offer back in between.

    The job waits on at its place, so that nothing else changes what the admission consumes.
    """
    bench = Stage(behaviour=Behaviour(runs_for=10 * SECOND)).first
    for name in ("one", "two"):
        shared = [at_most(1, "program")]
        bench.request(an_apply(a_spec(name, every("1h"), file="/jobs/same.py", constraints=shared)))
        bench.request(a_request("trigger", name))
        bench.run(SECOND)
    row = bench.rows("IW#")[0]
    limit, waiting = Key(str(row["limit"]), "LIMIT"), [str(row["job_id"])]
    bench.delay(an_admission)
    while not bench.holds_something:
        bench.run(5)
    bench.transact(Transaction("offer", (lapse_offers(limit, waiting),), "node-b/0.0/1", None))
    asked = len(bench.asked)
    while not any(map(an_admission, bench.asked[asked:])):
        bench.run(5)
    bench.transact(Transaction("offer", (offer_slots(limit, waiting),), "node-b/0.0/2", None))
    bench.release()
    bench.run(60 * SECOND)
    return ran(bench, 2, "I1")


def a_copy_of_a_refused_admission_arrives_when_a_slot_is_free() -> Iterable[str]:
    """The job is about to wait in the limit's queue, which gets no answer meanwhile. Then its schedule is suspended, and its owner falls
    (seed 33000291).
    """
    bench = Stage(behaviour=Behaviour(runs_for=10 * SECOND)).first
    shared = [at_most(1, "program")]
    for name in ("one", "two"):
        bench.request(an_apply(a_spec(name, every("1h"), file="/jobs/same.py", constraints=shared)))
    bench.hold_back(an_admission)
    bench.request(a_request("trigger", "two"))
    bench.run(SECOND)
    bench.request(a_request("trigger", "one"))
    bench.run(SECOND)
    bench.hold_back(writing("IW#"))
    bench.release()
    bench.run(20 * SECOND)
    refused = next(each.transaction for each in bench.asked if isinstance(each, Commit) and an_admission(each))
    bench.transact(refused)
    bench.release()
    bench.request(a_request("suspend", "two"))
    bench.run(SECOND)
    started = len(bench.started)
    bench.crash()
    bench.run(60 * SECOND)
    if len(bench.started) > started:
        yield "I7: a program started after its schedule's suspend was acknowledged"


def an_admission(effect: Effect) -> bool:
    return a_commit("admit")(effect) and writing("R#")(effect)


LATE_ADMISSIONS = (
    Mutant(
        "no void",
        "a transaction whose first send is on its way counts as refused, and takes effect when nobody expects it",
        breaks="I1",
        patches=(Patch(Lane, "_void", trusting_a_refusal),),
        beside=(NOTHING_LATE,),
        scenario=an_admission_arrives_when_its_offer_is_there_again,
    ),
    Mutant(
        "refused for good",
        "a run whose admission was refused, and carried out by a second copy when there was a slot, is nobody's: a suspend does not end it",
        breaks="I7",
        patches=(NOTHING_LATE,),
        scenario=a_copy_of_a_refused_admission_arrives_when_a_slot_is_free,
    ),
)
