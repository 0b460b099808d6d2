"""Bugs in what an owner remembers of items that others write too (docs/internals/protocol.md)."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

from tests.simulation.mutants.mutant import Mutant, Patch, around, instead
from tidegate_core.commands import schedule_commands
from tidegate_core.commands.apply_checks import NOT_COUNTED
from tidegate_core.engine.operations import Operation
from tidegate_core.language.values.problems import Problem
from tidegate_core.language.values.states import RunState
from tidegate_core.rows.run import Run
from tidegate_core.rows.schedule import ScheduleCount
from tidegate_core.rows.store_operations import Item, Key
from tidegate_core.runs import outbox_relay
from tidegate_core.runs.attempts import Attempts
from tidegate_core.runs.run_lifecycle import BEFORE_GATE
from tidegate_core.shard.events.outbox import FanOut
from tidegate_core.shard.shard_cache import ShardCache
from tidegate_core.writes.read_cache import View


def leaving_starts_to_looks(
    follow: Callable[..., None], attempts: Attempts, before: Run | None, run: Run | None
) -> None:
    has_begun = run is not None and run.state == RunState.RUNNING
    if not (has_begun and before is not None and before.state in BEFORE_GATE):
        follow(attempts, before, run)


class RunsAsFound:
    """An owner's memory; a look-up of the run returns the run as it was found first."""

    def __init__(self, memory: ShardCache, run: Run) -> None:
        self._memory, self._run, self.runs = memory, run, self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._memory, name)

    def get(self, run_id: str) -> Run | None:
        return self._memory.runs.get(run_id)

    def __getitem__(self, _: str) -> Run:
        return self._run


def as_it_was_found(adopt: Callable[[Attempts, Run], Operation[None]], attempts: Attempts, run: Run) -> Operation[None]:
    looking: Any = copy(attempts)
    looking._memory = RunsAsFound(attempts._memory, run)
    return adopt(looking, run)


def telling_nobody(distribute: Callable[..., FanOut]) -> Any:
    """A listener is not told that the row is gone."""
    return lambda key, listeners, shard, gone: distribute(key, listeners, shard, lambda: None)


def writing_no_count_down(
    count_after: Callable[..., ScheduleCount | Problem | None], *arguments: Any
) -> ScheduleCount | Problem | None:
    found = count_after(*arguments)
    return None if isinstance(found, ScheduleCount) and found.counted_at == NOT_COUNTED else found


def for_good(view: View, key: Key, item: Item) -> None:
    """A row that is known to be absent stays absent."""
    if not view.knows(key):
        view.learn([key], {key: item})


LAUNCHING_TESTS = "unit/tidegate_core/runs/test_shard_launching.py"
ADOPTION_TESTS = "unit/tidegate_core/ownership/test_shard_adoption.py"
GONE_TESTS = "unit/tidegate_core/commands/test_upstream_deleted.py"
QUOTAS_TESTS = "unit/tidegate_core/commands/test_counted_quotas.py"
VIEW_TESTS = "unit/tidegate_core/writes/test_read_cache.py"

RULES_OF_MEMORY = (
    Mutant(
        "start left to a look",
        "a start that the transaction of the submission finds is not told before the program ends",
        breaks="I3",
        patches=(Patch(Attempts, "follow", around(leaving_starts_to_looks)),),
        killed_by=f"{LAUNCHING_TESTS}::test_given_a_start_before_the_submission_is_written_down_then_it_is_told_at_once",
    ),
    Mutant(
        "seen before it was lost",
        "a program that is seen and marked lost in one transaction stays remembered as running: nobody tells that it was found",
        breaks="answers",
        patches=(Patch(Attempts, "_as_written", instead(lambda attempts, run: run)),),
        killed_by=f"{ADOPTION_TESTS}::test_given_a_start_that_is_seen_in_the_transaction_that_takes_it_for_lost_then_the_program_is_found_again",
    ),
    Mutant(
        "looked for where it was",
        "a predecessor's run that passes the gate before its launcher can be asked is looked up on the wrong host",
        breaks="liveness",
        patches=(Patch(Attempts, "_adopt", around(as_it_was_found)),),
        killed_by=f"{ADOPTION_TESTS}::test_given_a_driver_that_passes_the_gate_while_its_launcher_cannot_be_asked_then_it_is_looked_up_on_its_host",
    ),
    Mutant(
        "row removed late",
        "a delete is never told, because it waits for a row of the outbox that a predecessor has removed",
        breaks="liveness",
        patches=(Patch(outbox_relay, "FanOut", telling_nobody),),
        killed_by=f"{GONE_TESTS}::test_given_a_record_whose_removal_comes_late_then_a_delete_is_told_all_the_same",
    ),
    Mutant(
        "counted amid a delete",
        "the first count of a namespace misses a delete that comes during the count: no schedule can take its place",
        breaks="answers",
        patches=(Patch(schedule_commands, "count_after", around(writing_no_count_down)),),
        killed_by=f"{QUOTAS_TESTS}::test_given_a_delete_amid_the_first_count_then_it_is_counted_again",
    ),
    Mutant(
        "absent for good",
        "a row that is written again after its deletion stays unseen, such as the inbox row of a run's second loss",
        breaks="liveness",
        patches=(Patch(View, "offer", instead(for_good)),),
        killed_by=f"{VIEW_TESTS}::test_given_an_item_that_is_found_where_one_was_deleted_then_others_have_put_it_there",
    ),
)
