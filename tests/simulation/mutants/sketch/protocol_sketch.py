"""The planted bugs of the protocol's first sketch, in the protocol as built.

Some layers hide each other: such a bug is planted with the other layer off (`beside`).
"""

from __future__ import annotations

from tests.simulation.mutants.clauses.clause_finder import always
from tests.simulation.mutants.clauses.clause_table import LEASE, REVISIONS, killer_of
from tests.simulation.mutants.clauses.weakened_conditions import without
from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, around, instead, returning
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
from tests.support.harness.scripted_programs import Programs
from tidegate_core.engine.shard_writer import ShardWriter
from tidegate_core.firing import fire
from tidegate_core.ownership.partition_actor import PartitionActor
from tidegate_core.ownership.shard_actor import ShardActor
from tidegate_core.runs.attempts import Attempts
from tidegate_core.writes import settlement

STORIES = "simulation/stories/sketch/test_protocol_sketch.py"


EPOCHS = tuple(
    always(builder, "#epoch = :epoch") for builder in ("holds_lease", "holds_progress", "fired_through", "cursor_at")
)

SKETCH = (
    Mutant(
        "window only",
        "timer rows are read from now on, and what is overdue never fires",
        breaks="I1",
        patches=(Patch(ShardActor, "_read_timers", instead(reading_from_now)),),
        killed_by=f"{STORIES}::test_given_nobody_for_a_while_then_each_instant_of_that_time_has_its_run",
    ),
    Mutant(
        "next from now",
        "the next instant is computed from the present, and those in between are left out",
        breaks="I1",
        patches=from_now(),
        killed_by=f"{STORIES}::test_given_nobody_for_a_while_then_each_instant_of_that_time_has_its_run",
    ),
    Mutant(
        "split dedupe",
        "an event's id is written down before the event is handed out",
        breaks="I3",
        patches=(torn("cursor", lambda action: action.key.sk == "DD"),),
        killed_by=f"{STORIES}::test_given_an_owner_that_crashes_while_it_reads_an_event_then_the_event_counts",
    ),
    Mutant(
        "position first",
        "the position moves before what the records become is there",
        breaks="I3",
        patches=(torn("cursor", lambda action: action.key.sk == "TP"),),
        killed_by=f"{STORIES}::test_given_an_owner_that_crashes_while_it_reads_an_event_then_the_event_counts",
    ),
    Mutant(
        "two writes",
        "the schedule moves to its next instant before the job is there",
        breaks="I1",
        patches=(torn("fire", lambda action: not action.key.sk.startswith("J#")),),
        killed_by=f"{STORIES}::test_given_an_owner_that_crashes_during_a_fire_then_the_program_runs",
    ),
    Mutant(
        "random run id",
        "two owners that fire the same instant make two jobs of it",
        breaks="I2",
        patches=(Patch(fire, "time_job", with_random_ids),),
        killed_by=f"{STORIES}::test_given_two_owners_that_fire_one_instant_then_there_is_one_job",
        beside=(LEASE, *REVISIONS),
    ),
    Mutant(
        "launch before commit",
        "a program is launched whose admission is then refused",
        breaks="I4",
        patches=(Patch(ShardWriter, "_commit", around(launching_before_the_commit)),),
        killed_by=f"{STORIES}::test_given_two_shards_that_launch_at_once_then_the_limit_holds",
        beside=(UNGATED,),
    ),
    Mutant(
        "no recovery of runs",
        "a run that was admitted by an owner that fell is launched by nobody",
        breaks="I1",
        patches=(Patch(Attempts, "recover", returning(None)),),
        killed_by=f"{STORIES}::test_given_an_owner_that_crashes_after_its_admission_then_the_program_runs",
    ),
    Mutant(
        "no revisions",
        "whatever changed since it was read is overwritten",
        breaks="I7",
        patches=REVISIONS,
        killed_by=killer_of("unchanged", "#rev = :rev_seen"),
    ),
    Mutant(
        "fenced by the clock",
        "no write checks an epoch, because an owner that is late knows it by its clock",
        breaks="I5",
        patches=EPOCHS,
        killed_by=killer_of("holds_lease", "#epoch = :epoch"),
    ),
    Mutant(
        "no fence, no revisions, no gate",
        "nothing is left that keeps two owners apart",
        breaks="I2",
        patches=(*EPOCHS, *REVISIONS, without("may_start", clauses="attribute_exists(#state)", values=(":driver",))),
        killed_by=Seeds(within=10, directed=(2,)),
    ),
    Mutant(
        "stale status",
        "an admission trusts what its owner read of the schedule",
        breaks="I7",
        patches=(without("schedule_is"),),
        killed_by=killer_of("schedule_is", "#status = :status"),
        beside=(LEASE, *REVISIONS),
    ),
    Mutant(
        "random name",
        "an artefact that a former owner has submitted is not found under its name, and submitted again",
        breaks="I2",
        patches=(
            Patch(Programs, "_submit", around(under_another_name)),
            Patch(Attempts, "_adopt", instead(launching_again)),
        ),
        killed_by=f"{STORIES}::test_given_an_owner_that_crashes_after_its_submission_then_each_attempt_runs_once",
        beside=(UNGATED,),
    ),
    Mutant(
        "trusted refusal",
        "one's own success, met as a failed condition, counts as somebody else's",
        breaks="I1",
        patches=(Patch(settlement, "_cancelled", around(forgetting_its_echo)),),
        beside=(NOTHING_LATE,),
        killed_by=f"{STORIES}::test_given_a_fire_whose_answer_is_lost_then_the_program_runs",
    ),
    Mutant(
        "no second acquire",
        "an owner that a late acquire has fenced gives up, although the shard is its own",
        breaks="I1",
        patches=(Patch(PartitionActor, "_start_again", instead(giving_up)),),
        killed_by=f"{STORIES}::test_given_an_owner_that_a_late_acquire_has_fenced_then_it_serves_on",
    ),
)
