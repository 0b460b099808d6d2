"""What a planted bug is, how it is planted, and how it is found."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock

from tidegate_testkit.simulation.drawing import swarm_of, trapped
from tidegate_testkit.simulation.outcome import Outcome, simulate
from tidegate_testkit.simulation.swarm import Swarm

NO_PROOF = ("Traceback", " raised ")
"""A mutant that only breaks the code shows nothing about the protection that it takes away."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A name that means something else while the bug is planted.

    Attributes:
        target: Module or class.
        changed: Makes of what the name means what it shall mean.
    """

    target: Any
    name: str
    changed: Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted bug: one protection is taken away, everything else is as in production.

    Attributes:
        why: What goes wrong without the protection.
        breaks: What a violation that proves it begins with, such as `I2`.
        within: Seeds below this are tried: two to three times the first that finds it, so that drift shows.
        trap: The trap to set in worlds that are calm otherwise; None = the seeds' own hostile worlds.
    """

    name: str
    why: str
    breaks: str
    patches: tuple[Patch, ...]
    within: int
    trap: str | None = None

    def simulate(self, seed: int) -> Outcome:
        """Runs a seed with the bug in it."""
        with self.planted():
            return simulate(seed, swarm=self.swarm(seed))

    def swarm(self, seed: int) -> Swarm:
        """Returns the world in which it is looked for."""
        return swarm_of(seed) if self.trap is None else trapped(swarm_of(seed, faults=False), seed, self.trap)

    def proofs(self, outcome: Outcome) -> list[str]:
        """Returns the violations that show the missing protection."""
        return [
            violation
            for violation in outcome.violations
            if violation.startswith(f"{self.breaks}:") and not any(each in violation for each in NO_PROOF)
        ]

    @contextmanager
    def planted(self) -> Generator[None]:
        """The code has the bug meanwhile."""
        with ExitStack() as stack:
            for patch in self.patches:
                original = getattr(patch.target, patch.name)
                stack.enter_context(mock.patch.object(patch.target, patch.name, patch.changed(original)))
            yield
