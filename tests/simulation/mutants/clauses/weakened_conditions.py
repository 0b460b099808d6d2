"""Bugs in the conditions of the store's writes, looked for in random worlds: a builder demands hardly anything.

Each clause by itself has its bug in `clause_table.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from tests.simulation.mutants.mutant import Mutant, Patch, Seeds, around, operation_returning
from tidegate_core.ingest.event_ingest import EventIngest
from tidegate_core.rows.store_operations import Condition, Key
from tidegate_core.writes import conditions
from tidegate_core.writes.unit_of_work import UnitOfWork

Builder: TypeAlias = Callable[..., Condition]


def without(builder: str, *, clauses: str = "", values: Sequence[str] = ()) -> Patch:
    """Leaves nothing of a condition but `clauses`; what the update itself needs stays in place.

    Args:
        builder: The production builder's name.
        clauses: What is still demanded.
        values: Placeholders that `clauses` or the action's update use.
    """

    def demanding_less(whole_of: Builder) -> Builder:
        def mutated(*arguments: Any, **named: Any) -> Condition:
            whole = whole_of(*arguments, **named)
            # Every declared name has to be used, so each one is asked for something that is always true.
            always = [f"(attribute_exists({name}) OR attribute_not_exists({name}))" for name in whole.names]
            kept: Mapping[str, Any] = {name: value for name, value in whole.values.items() if name in values}
            return Condition(" AND ".join([*always, clauses] if clauses else always), whole.names, kept)

        return mutated

    return Patch(conditions, builder, demanding_less)


def keeping_inbox_rows(delete: Callable[[UnitOfWork, Key], None], unit: UnitOfWork, key: Key) -> None:
    if not key.sk.startswith("I#"):
        delete(unit, key)


CONDITIONS = (
    Mutant(
        "lease",
        "a paused owner's fire is accepted after another one has acquired the shard",
        breaks="I5",
        patches=(without("holds_lease"),),
        killed_by=Seeds(within=30, directed=(1,)),
    ),
    Mutant(
        "cursor",
        "a repeated move takes the position back, and its records are handed out again",
        breaks="I5",
        patches=(without("cursor_at", clauses="#epoch = :epoch AND #map = :map", values=(":epoch", ":map")),),
        killed_by=Seeds(within=15, directed=(0,)),
    ),
    Mutant(
        "dedupe",
        "an event that is announced twice counts twice",
        breaks="I3",
        patches=(
            without("not_counted_before"),
            Patch(EventIngest, "_counted_before", operation_returning({})),
        ),
        killed_by=Seeds(within=3, directed=(1,)),
    ),
    Mutant(
        "inbox row",
        "what was counted stays in the inbox, and the next owner counts it again",
        breaks="I3",
        patches=(Patch(UnitOfWork, "delete", around(keeping_inbox_rows)),),
        killed_by=Seeds(within=3, directed=(2,)),
    ),
    Mutant(
        "message guard",
        "a late replacement lowers the guard that a younger one has raised",
        breaks="I5",
        patches=(without("fence_older", values=(":version",)),),
        killed_by=Seeds(within=4, trap="echoes"),
    ),
    Mutant(
        "progress",
        "a paused owner answers a cancel, or hides an inbox row, that the present one does not hear of",
        breaks="I5",
        patches=(without("holds_progress"),),
        killed_by=Seeds(within=30, directed=(1,)),
    ),
    Mutant(
        "gate",
        "two artefacts of one attempt both run",
        breaks="I2",
        patches=(without("may_start", clauses="attribute_exists(#state)", values=(":driver",)),),
        killed_by=Seeds(within=6, directed=(8,)),
    ),
    Mutant(
        "permit",
        "two shards admit at the same moment",
        breaks="I4",
        patches=(without("permit_free"),),
        killed_by=Seeds(within=30, directed=(6,), trap="contention"),
    ),
)
