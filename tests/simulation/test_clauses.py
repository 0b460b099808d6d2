"""Every clause of every condition expression has a planted bug that spoils it, and that is found (`test_mutants.py`).

A new builder, or a new clause of an old one, fails here until it has one. How to add one: a scenario, the smallest story in
which only this clause stands between us and the violation, and an entry in one of the lists in `mutants/clauses_of_*.py`. Where
another layer refuses as well, that one is switched off beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.simulation.mutants import MUTANTS
from tests.simulation.mutants.clauses.clause_finder import Clause, builders, clauses_of

UNOBSERVABLE: Mapping[Clause, str] = {}
"""Clauses that no story can show, each with the reason. None so far."""

CLAUSES = [clause for builder in builders() for clause in clauses_of(builder)]
SPOILT = {mutant.clause: mutant.name for mutant in MUTANTS.values() if mutant.clause is not None}


@pytest.mark.parametrize("clause", CLAUSES, ids=str)
def test_given_a_clause_then_a_planted_bug_spoils_it(clause: Clause) -> None:
    assert clause in SPOILT or clause in UNOBSERVABLE, f"no mutant spoils `{clause}`"


def test_given_a_planted_bug_in_a_clause_then_there_is_such_a_clause() -> None:
    assert sorted(str(clause) for clause in {*SPOILT, *UNOBSERVABLE} - {*CLAUSES}) == []


def test_given_a_clause_that_cannot_be_observed_then_the_reason_is_written_down() -> None:
    assert all(UNOBSERVABLE.values())
    assert not UNOBSERVABLE.keys() & SPOILT.keys()
