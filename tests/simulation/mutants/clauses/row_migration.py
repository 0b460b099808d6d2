"""Bugs in the two rules that keep releases apart which misread each other (decision 26)."""

from __future__ import annotations

from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, instead, returning
from tidegate_core.commands import schedule_commands
from tidegate_core.explain import migration_blockers
from tidegate_core.firing import fire
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.schema_version import StoreSchema
from tidegate_core.writes import unit_of_work
from tidegate_core.writes.unit_of_work import UnitOfWork

STORIES = "simulation/stories/clauses/test_row_migration.py"


def leaving_bounds(unit: UnitOfWork, state: ScheduleState, trigger: object) -> ScheduleState:
    return state


MIGRATION = (
    Mutant(
        "no version asked",
        "a node of an older release takes shards over while the version of rows is raised",
        breaks="I6",
        patches=(Patch(StoreSchema, "refusal", returning(None)),),
        killed_by=f"{STORIES}::test_given_a_version_that_is_being_raised_then_an_older_node_takes_no_shard_over",
    ),
    Mutant(
        "no gate",
        "a bound is written while nodes of an older release may take it for an instant",
        breaks="I6",
        patches=(
            Patch(fire, "as_all_read_it", instead(leaving_bounds)),
            Patch(schedule_commands, "as_all_read_it", instead(leaving_bounds)),
        ),
        beside=(Patch(unit_of_work, "newer_fields", instead(lambda record, version: iter(()))),),
        killed_by=f"{STORIES}::"
        "test_given_a_search_that_was_cut_when_an_older_node_takes_over_then_nothing_fires_at_the_cut",
    ),
    Mutant(
        "leases unread",
        "a stopped node of an older release is not counted, and goes on before another node has taken over its shards",
        breaks="I6",
        patches=(Patch(migration_blockers, "_by_owner", returning({})),),
        killed_by=Seeds(within=30, directed=(6,), trap="two_releases"),
    ),
)
