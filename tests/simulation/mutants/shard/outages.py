"""Bugs in the facts that owners write about outages, and in the time-outs of runs and jobs around an outage."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, around, instead
from tidegate_core.admission import pending_timeout
from tidegate_core.admission.pending_timeout import CatchUpThrottle
from tidegate_core.engine.actor_context import ActorContext
from tidegate_core.ownership import acquisition
from tidegate_core.ownership.partition_actor import PartitionActor
from tidegate_core.rows import keys
from tidegate_core.rows.effects import Items, Read
from tidegate_core.rows.job import Job
from tidegate_core.rows.store_operations import Item
from tidegate_core.runs import run_lifecycle
from tidegate_core.shard.outages.outage_recorder import SERVED, OutageRecorder

Signs = Generator[Any, Any, dict[int, int]]


def taking_any_sign(
    read: Callable[[ActorContext, Mapping[int, Item | None]], Signs],
    host: ActorContext,
    leases: Mapping[int, Item | None],
) -> Signs:
    """The last sign of life for any shard of an owner counts for shards without a sign."""
    signs = yield from read(host, leases)
    owners = {shard: str(lease["owner"]) for shard, lease in leases.items() if lease is not None}
    for shard in owners.keys() - signs.keys():
        answer = yield from host.read_for_good(Read((keys.node(owners[shard]),)))
        assert isinstance(answer, Items)
        served = answer.found.get(keys.node(owners[shard]), {}).get(SERVED)
        if isinstance(served, dict) and served:
            signs[shard] = max(int(str(each)) for each in served.values())
    return signs


def handing_on_the_turn(
    in_turn: Callable[[CatchUpThrottle, Job, int, int], Job],
    pacing: CatchUpThrottle,
    job: Job,
    pending_timeout: int,
    now: int,
) -> Job:
    """Also to a job that was made long after the turn began."""
    mine = in_turn(pacing, job, pending_timeout, now)
    return mine if job.times_out or pacing.turn is None else replace(mine, deadline=pacing.turn.deadline)


def speaking_amid_its_acquires(actor: PartitionActor, now: int) -> int | None:
    """For the shards that are acquired so far, although leases of further shards name the same owner."""
    if not actor.shards:
        return None
    return min(actor._host.store_seen, *(shard.outages.complete_until(now) for shard in actor.shards.values()))


def beginning_as_it_is_noticed(
    away_since: Callable[[OutageRecorder, int], None], watch: OutageRecorder, instant: int
) -> None:
    """The outage forgets until when the shard was served before."""
    complete, watch._complete = watch._complete, None
    away_since(watch, instant)
    watch._complete = complete


def running_in_outages(begin: int, deadline: int, outages: object) -> int:
    return deadline


OUTAGE_FACTS_TESTS = "unit/tidegate_core/ownership/test_outage_facts.py"
PENDING_TIMEOUT_TESTS = "unit/tidegate_core/admission/test_pending_timeout.py"
CATCH_UP_TESTS = "unit/tidegate_core/firing/test_shard_catch_up.py"

RULES_OF_OUTAGES = (
    Mutant(
        "time-outs in an outage",
        "a run whose program could not begin during an outage is given up as soon as a node is back",
        breaks="I1",
        patches=(Patch(run_lifecycle, "served_deadline", instead(running_in_outages)),),
        killed_by=f"{OUTAGE_FACTS_TESTS}::test_given_a_program_that_does_not_start_then_its_time_out_runs_only_while_the_shard_is_served[600000-1]",
    ),
    Mutant(
        "pending time-outs in an outage",
        "a job that waited when all nodes fell expires as soon as a node is back",
        breaks="I1",
        patches=(Patch(pending_timeout, "served_deadline", instead(running_in_outages)),),
        killed_by=f"{PENDING_TIMEOUT_TESTS}::test_given_a_job_that_was_made_right_before_a_fall_then_it_goes_behind_the_outage",
    ),
    Mutant(
        "signs amid acquires",
        "a heartbeat between two acquires hides that nobody served the remaining shards since their owner lost them",
        breaks="I1",
        patches=(Patch(PartitionActor, "served_until", instead(speaking_amid_its_acquires)),),
        killed_by=f"{OUTAGE_FACTS_TESTS}::test_given_a_process_that_takes_over_again_what_it_had_then_no_sign_of_life_amid_its_acquires_hides_the_outage[goes on]",
    ),
    Mutant(
        "begun with the silence",
        "instants missed before a store fell silent during a take-over are made one by one, whatever `catchup` says",
        breaks="I1",
        patches=(Patch(OutageRecorder, "unserved_since", around(beginning_as_it_is_noticed)),),
        killed_by=f"{OUTAGE_FACTS_TESTS}::test_given_a_silence_amid_a_take_over_that_was_none_so_far_then_the_outage_lasts_from_the_last_sign_of_life",
    ),
    Mutant(
        "signs of others",
        "an owner's heartbeats for other shards hide that nobody served this shard since the owner lost it",
        breaks="I1",
        patches=(Patch(acquisition, "read_signs", around(taking_any_sign)),),
        killed_by=f"{OUTAGE_FACTS_TESTS}::test_given_an_owner_that_lost_it_within_a_beat_and_lives_on_then_its_other_signs_of_life_hide_no_outage",
    ),
    Mutant(
        "turn handed on",
        "jobs of a second outage expire with the jobs of the first one, long before their own time-out",
        breaks="I1",
        patches=(Patch(CatchUpThrottle, "start_turn", around(handing_on_the_turn)),),
        killed_by=f"{CATCH_UP_TESTS}::test_given_another_outage_within_a_turn_then_what_it_brings_waits_for_as_long_as_its_own_time_out_says",
    ),
)
