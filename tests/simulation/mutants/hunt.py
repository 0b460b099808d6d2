"""Looks for a planted bug until the first proof of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.simulation.faults.small_limits import OF_MAPS, turned
from tests.simulation.mutants.mutant import Mutant, Scenario

OTHERS_SHOWN = 5
OUTGROWN = re.compile(r"raised TypeError\(.*(positional|keyword) argument")
"""What is planted is called in another way than it was written for: all that it breaks says nothing of the bug that it stands for."""


@dataclass(frozen=True, slots=True)
class Hunt:
    """What became of it.

    Attributes:
        killed_by: The seed or scenario that found it; None when it survives.
        tried: Seeds that were tried; 0 where a scenario was played.
        others: What was found instead, in words.
    """

    mutant: Mutant
    killed_by: str | None
    tried: int = 0
    others: list[str] = field(default_factory=list)

    @property
    def line(self) -> str:
        """One line, for people."""
        tried = f" ({self.tried} tried)" if self.tried else ""
        if self.killed_by is None:
            return f"{self.mutant.name}  SURVIVES{tried}  although {self.mutant.why}; found instead: {self.others}"
        return f"{self.mutant.name}  killed by {self.killed_by}{tried}  breaks {self.mutant.breaks}"

    @property
    def row(self) -> str:
        """One row of a table in Markdown."""
        name = self.mutant.name.replace("|", "\\|")
        beside = " (beside others)" if self.mutant.beside else ""
        return f"| `{name}`{beside} | {self.mutant.why} | {self.mutant.breaks} | {self.killed_by} |"


def hunt(mutant: Mutant) -> Hunt:
    """Plays the mutant's scenario, or runs its seeds until one proves it."""
    return _by_seeds(mutant) if mutant.scenario is None else _by_scenario(mutant, mutant.scenario)


def _by_seeds(mutant: Mutant) -> Hunt:
    others: list[str] = []
    for tried, seed in enumerate(mutant.seeds, start=1):
        violations = mutant.simulate(seed).violations
        if outgrown := [violation for violation in violations if OUTGROWN.search(violation)]:
            return Hunt(mutant, None, tried, outgrown[:OTHERS_SHOWN])
        if mutant.proofs(violations):
            return Hunt(mutant, f"seed {seed}", tried)
        others += [f"seed {seed}: {violation}" for violation in violations]
    return Hunt(mutant, None, len(mutant.seeds), others[:OTHERS_SHOWN])


def _by_scenario(mutant: Mutant, scenario: Scenario) -> Hunt:
    with turned(OF_MAPS), mutant.planted(bug=False):
        without = [f"without the bug: {violation}" for violation in mutant.proofs(scenario())]
    with turned(OF_MAPS), mutant.planted():
        violations = list(scenario())
    if without or not mutant.proofs(violations):
        return Hunt(mutant, None, others=[*without, *violations][:OTHERS_SHOWN])
    return Hunt(mutant, f"scenario {scenario.__name__.replace('_', ' ')}")
