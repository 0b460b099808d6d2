"""The list of what may meet names real faults and real calls, and nothing of production is missing in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import tidegate_core
from tests.simulation.faults.fault_kinds import INJECTED
from tests.simulation.runner import fault_coverage
from tests.simulation.world.transaction_names import HARDLY_SENT, NOT_SENT_HERE, TRANSACTIONS

CORE = Path(tidegate_core.__file__).parent
NOT_TRANSACTIONS = {"request", "until", "upstream_gone", "relisten", "mark"}
"""Names of work of the shard writer that writes by other decisions."""


def names_in_production() -> Iterator[str]:
    """Yields the names of decisions, and those under which a transaction is made outright."""
    for file in CORE.glob("**/*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            match node:
                case ast.AnnAssign(target=ast.Name(id="name"), value=ast.Constant(value=str(name))):
                    yield name
                case ast.Call(func=ast.Name(id="Transaction"), args=[ast.Constant(value=str(name)), *_]):
                    yield name
                case _:
                    pass


def test_given_productions_transactions_then_each_is_listed_or_its_absence_has_a_reason() -> None:
    elsewhere = {**NOT_SENT_HERE, **HARDLY_SENT}
    assert {"admit", "checkpoint"} <= set(names_in_production())
    assert set(names_in_production()) - NOT_TRANSACTIONS <= set(TRANSACTIONS) | elsewhere.keys()
    assert not set(TRANSACTIONS) & elsewhere.keys()
    assert all(elsewhere.values())


def test_given_the_kinds_that_are_injected_then_each_has_its_places() -> None:
    listed = {kind for family in fault_coverage.FAMILIES for kind in family.kinds}
    assert {fault_coverage.kind_of(kind) for kind in INJECTED} == listed


def test_given_pairs_that_met_then_the_rare_and_the_unknown_ones_are_named() -> None:
    met = dict.fromkeys(fault_coverage.cells(), 1_000)
    assert fault_coverage.below(met, 1_000) == []
    assert fault_coverage.below({**met, ("late", "fire"): 999}, 1_000) == [("late", "fire")]
    assert fault_coverage.unlisted({**met, ("late", "new"): 1}) == [("late", "new")]
    assert fault_coverage.unlisted({("late", "idle"): 1, ("crash", "on idle"): 1}) == []
