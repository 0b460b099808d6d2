"""The planted bugs of the protocol's first sketch, in the protocol as built; each of them was worth a measurement then.

Two of them survived there because a second layer hid them, and are paired with the loss of that layer (`beside`).
"""

from __future__ import annotations

from collections.abc import Iterable

from tests.simulation.mutants.clauses.clause_finder import always
from tests.simulation.mutants.clauses.fencing import a_frozen_owner_goes_on_with_its_fire
from tests.simulation.mutants.clauses.runs import (
    LEASE,
    REVISIONS,
    a_program_passes_the_gate_while_its_run_is_being_closed,
    an_admission_arrives_after_a_suspend,
)
from tests.simulation.mutants.clauses.weakened_conditions import without
from tests.simulation.mutants.mutant import Mutant, Patch
from tests.simulation.mutants.sketch.replacements import (
    NOTHING_LATE,
    UNGATED,
    forgetting_its_echo,
    from_now,
    giving_up,
    launching_again,
    launching_before_the_commit,
    reading_from_now,
    torn,
    under_another_name,
    with_random_ids,
)
from tests.simulation.stories.stage import FOR_EVER, ONCE, Stage, a_commit, two_under_one_limit, writing
from tests.support.builders import SECOND, a_spec, an_apply, an_event, every, on_data
from tests.support.harness.actor_harness import Bench
from tests.support.harness.scripted_programs import Programs
from tidegate_core.decisions.lane import Lane
from tidegate_core.decisions.partition_actor import PartitionActor
from tidegate_core.decisions.run_plane import fire
from tidegate_core.decisions.run_plane.attempts import Attempts
from tidegate_core.decisions.shard_actor import ShardActor
from tidegate_core.effects import Submit
from tidegate_core.transactions import settlement

# -- stories ------------------------------------------------------------------------------------------------------------------


def ran(bench: Bench, wanted: int, what: str) -> Iterable[str]:
    if len(bench.started) < wanted:
        yield f"{what}: {len(bench.started)} of {wanted} programs ran"


def an_owner_falls_in_the_middle_of_a_fire() -> Iterable[str]:
    bench = Stage().first
    bench.request(an_apply(a_spec(trigger=ONCE)))
    bench.crash_at(lambda effect: a_commit("fire")(effect) and writing("S#")(effect))
    bench.run(20 * SECOND)
    return ran(bench, 1, "I1")


def an_owner_falls_while_it_reads_an_event() -> Iterable[str]:
    bench = Stage().first
    bench.request(an_apply(a_spec(trigger=on_data())))
    bench.run(3 * SECOND)
    bench.crash_at(a_commit("cursor"))
    bench.event(an_event("d1"))
    bench.run(20 * SECOND)
    return ran(bench, 1, "I3")


def an_owner_falls_behind_its_admission() -> Iterable[str]:
    bench = Stage().first
    bench.request(an_apply(a_spec(trigger=ONCE)))
    bench.crash_at(writing("R#"))
    bench.run(60 * SECOND)
    return ran(bench, 1, "I1")


def an_owner_falls_behind_its_submission() -> Iterable[str]:
    bench = Stage().first
    bench.request(an_apply(a_spec(trigger=ONCE)))
    bench.crash_at(lambda effect: isinstance(effect, Submit))
    bench.run(20 * SECOND)
    attempts = [(order.run_id, order.attempt) for order in bench.started]
    if len(set(attempts)) < len(attempts):
        yield f"I2: two artefacts of one attempt ran: {attempts}"


def nobody_is_there_for_a_while() -> Iterable[str]:
    bench = Stage().first
    bench.request(an_apply(a_spec(trigger=every("10s"), overlap="allow")))
    bench.run(SECOND)
    bench.away(95 * SECOND)
    bench.run(5 * SECOND)
    return ran(bench, 9, "I1")


def two_owners_fire_one_instant() -> Iterable[str]:
    stage = Stage()
    stage.first.request(an_apply(a_spec(trigger=ONCE)))
    stage.first.hold_back(a_commit("fire"))
    stage.first.run(12 * SECOND)
    stage.successor()
    stage.first.release()
    made = {str(row["id"]) for prefix in ("J#", "R#") for row in stage.first.rows(prefix)}
    if len(made) > 1:
        yield f"I2: one instant made {len(made)} jobs"


def two_shards_launch_at_once() -> Iterable[str]:
    bench = Stage(behaviour=FOR_EVER).first
    two_under_one_limit(bench)
    bench.hold_back(writing("R#"))
    bench.run(12 * SECOND)
    bench.release()
    if len(bench.started) > 1:
        yield f"I4: {len(bench.started)} programs run under a limit of 1"


def the_answer_to_a_fire_is_lost() -> Iterable[str]:
    bench = Stage().first
    bench.request(an_apply(a_spec(trigger=ONCE)))
    bench.lose_answer_of(a_commit("fire"))
    bench.run(60 * SECOND)
    return ran(bench, 1, "I1")


def a_former_holder_acquires_once_more_and_goes() -> Iterable[str]:
    stage = Stage()
    stage.first.request(an_apply(a_spec(trigger=every("10s"))))
    stage.idle_successor().run(0)
    stage.first.run(35 * SECOND)
    return ran(stage.first, 3, "I1")


EPOCHS = tuple(
    always(builder, "#epoch = :epoch") for builder in ("holds_lease", "holds_progress", "fired_through", "cursor_at")
)

SKETCH = (
    Mutant(
        "window only",
        "timer rows are read from now on, and what is overdue never fires",
        breaks="I1",
        patches=(Patch(ShardActor, "_read_timers", reading_from_now),),
        scenario=nobody_is_there_for_a_while,
    ),
    Mutant(
        "next from now",
        "the next instant is computed from the present, and those in between are left out",
        breaks="I1",
        patches=from_now(),
        scenario=nobody_is_there_for_a_while,
    ),
    Mutant(
        "split dedupe",
        "an event's id is written down before the event is handed out",
        breaks="I3",
        patches=(torn("cursor", lambda action: action.key.sk == "DD"),),
        scenario=an_owner_falls_while_it_reads_an_event,
    ),
    Mutant(
        "position first",
        "the position moves before what the records become is there",
        breaks="I3",
        patches=(torn("cursor", lambda action: action.key.sk == "TP"),),
        scenario=an_owner_falls_while_it_reads_an_event,
    ),
    Mutant(
        "two writes",
        "the schedule moves to its next instant before the job is there",
        breaks="I1",
        patches=(torn("fire", lambda action: not action.key.sk.startswith("J#")),),
        scenario=an_owner_falls_in_the_middle_of_a_fire,
    ),
    Mutant(
        "random run id",
        "two owners that fire the same instant make two jobs of it",
        breaks="I2",
        patches=(Patch(fire, "time_job", with_random_ids),),
        scenario=two_owners_fire_one_instant,
        beside=(LEASE, *REVISIONS),
    ),
    Mutant(
        "launch before commit",
        "a program is launched whose admission is then refused",
        breaks="I4",
        patches=(Patch(Lane, "_commit", launching_before_the_commit),),
        scenario=two_shards_launch_at_once,
        beside=(UNGATED,),
    ),
    Mutant(
        "no recovery of runs",
        "a run that was admitted by an owner that fell is launched by nobody",
        breaks="I1",
        patches=(Patch(Attempts, "recover", lambda _: lambda attempts: None),),
        scenario=an_owner_falls_behind_its_admission,
    ),
    Mutant(
        "no revisions",
        "whatever changed since it was read is overwritten",
        breaks="I7",
        patches=REVISIONS,
        scenario=a_program_passes_the_gate_while_its_run_is_being_closed,
    ),
    Mutant(
        "fenced by the clock",
        "no write checks an epoch, because an owner that is late knows it by its clock",
        breaks="I5",
        patches=EPOCHS,
        scenario=a_frozen_owner_goes_on_with_its_fire,
    ),
    Mutant(
        "no fence, no revisions, no gate",
        "nothing is left that keeps two owners apart",
        breaks="I2",
        patches=(*EPOCHS, *REVISIONS, without("may_start", clauses="attribute_exists(#state)", values=(":driver",))),
        within=10,
        directed=(2,),
    ),
    Mutant(
        "stale status",
        "an admission trusts what its owner read of the schedule",
        breaks="I7",
        patches=(without("schedule_is"),),
        scenario=an_admission_arrives_after_a_suspend,
        beside=(LEASE, *REVISIONS),
    ),
    Mutant(
        "random name",
        "an artefact that a former owner has submitted is not found under its name, and submitted again",
        breaks="I2",
        patches=(
            Patch(Programs, "_submit", under_another_name),
            Patch(Attempts, "_adopt", launching_again),
        ),
        scenario=an_owner_falls_behind_its_submission,
        beside=(UNGATED,),
    ),
    Mutant(
        "trusted refusal",
        "one's own success, met as a failed condition, counts as somebody else's",
        breaks="I1",
        patches=(Patch(settlement, "_cancelled", forgetting_its_echo),),
        beside=(NOTHING_LATE,),
        scenario=the_answer_to_a_fire_is_lost,
    ),
    Mutant(
        "no second acquire",
        "an owner that a late acquire has fenced gives up, although the shard is its own",
        breaks="I1",
        patches=(Patch(PartitionActor, "_start_again", giving_up),),
        scenario=a_former_holder_acquires_once_more_and_goes,
    ),
)

NAMES_IN_THE_SKETCH = {
    "window_only": "window only",
    "no_dedup": "dedupe",
    "split_dedup": "split dedupe",
    "random run id": "random run id",
    "no_gate": "gate",
    "no_fence+no_cas+no_gate": "no fence, no revisions, no gate",
    "nf_from_now": "next from now",
    "two_writes": "two writes",
    "launch_before_commit": "launch before commit",
    "no_recover": "no recovery of runs",
    "no_fence": "lease",
    "suspend_no_cancel": "before the gate",
    "commit offsets first": "position first",
    "no_cas": "no revisions",
    "clock_safety": "fenced by the clock",
    "stale_status": "stale status",
    "random_name+no_gate": "random name",
    "trust_condfail": "trusted refusal",
    "no_reacquire": "no second acquire",
}
"""What the sketch called them, and what they are called here."""
