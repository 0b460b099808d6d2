"""How a mutant of a clause is declared."""

from __future__ import annotations

from tests.simulation.mutants.clauses.clause_finder import Clause, spoilt
from tests.simulation.mutants.mutant import Mutant, Patch, Scenario


def dropped(
    builder: str,
    text: str,
    why: str,
    *,
    breaks: str,
    scenario: Scenario | None = None,
    beside: tuple[Patch, ...] = (),
    within: int = 0,
    trap: str | None = None,
) -> Mutant:
    """The clause is not demanded any more. Found by a scenario, or within so many seeds."""
    return _mutant(Clause(builder, text, always=True), why, breaks, scenario, beside, within, trap)


def withheld(
    builder: str,
    text: str,
    why: str,
    *,
    breaks: str,
    scenario: Scenario | None = None,
    beside: tuple[Patch, ...] = (),
    within: int = 0,
    trap: str | None = None,
) -> Mutant:
    """The alternative is not granted any more: what is rightful is refused."""
    return _mutant(Clause(builder, text, always=False), why, breaks, scenario, beside, within, trap)


def _mutant(
    clause: Clause,
    why: str,
    breaks: str,
    scenario: Scenario | None,
    beside: tuple[Patch, ...],
    within: int,
    trap: str | None,
) -> Mutant:
    patches = (spoilt(clause),)
    return Mutant(str(clause), why, breaks, patches, within, trap, scenario, beside, clause)
