"""Every clause of every condition has a planted bug that spoils it, and a test that fails with it (`test_mutants.py`).

A new builder, or a new clause of an old one, fails here until `mutants/clauses/clause_table.py` has a row for it. The test of that row
is the smallest story in which only this clause stands between us and the violation. Where another layer refuses as well, that
layer is switched off beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.mutants.clauses.clause_finder import Clause, builders, clauses_of
from tests.simulation.mutants.clauses.clause_table import BESIDE, KILLED_BY

UNOBSERVABLE: Mapping[Clause, str] = {}
"""Clauses that no story can show, each with the reason. None so far."""

CLAUSES = [clause for builder in builders() for clause in clauses_of(builder)]
SPOILT = {mutant.clause: mutant.name for mutant in MUTANTS.values() if mutant.clause is not None}


@pytest.mark.parametrize("clause", CLAUSES, ids=str)
def test_given_a_clause_then_a_planted_bug_spoils_it(clause: Clause) -> None:
    assert clause in SPOILT or clause in UNOBSERVABLE, f"no mutant spoils `{clause}`"


def test_given_a_row_of_the_table_then_there_is_such_a_clause() -> None:
    texts = {(clause.builder, clause.text) for clause in CLAUSES}
    rows = {(builder, text) for builder, clauses in KILLED_BY.items() for text in clauses}
    assert sorted({*rows, *BESIDE} - texts) == []
    assert UNOBSERVABLE.keys() <= {*CLAUSES}


def test_given_a_clause_that_cannot_be_observed_then_the_reason_is_written_down() -> None:
    assert all(UNOBSERVABLE.values())
    assert not UNOBSERVABLE.keys() & SPOILT.keys()
