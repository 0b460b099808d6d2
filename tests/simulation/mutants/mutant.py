"""What a planted bug is, how it is planted, and how it is found.

Random worlds find the bugs that break something soon (`Seeds`). An ordinary test of `tests/` finds each of the others: a story
in `tests/simulation/stories/`, or a unit test. Such a test passes without the bug and fails an assertion with it.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from unittest import mock

from tests.simulation.runner.outcome import Outcome, simulate
from tests.simulation.runner.swarm import Swarm
from tests.simulation.runner.world_drawing import swarm_of, trapped

if TYPE_CHECKING:
    from tests.simulation.mutants.clauses.clause_finder import Clause

NO_PROOF = ("Traceback", " raised ")
"""A mutant that only breaks the code shows nothing about the protection that it takes away."""

WITHIN_MIN = 12
"""Of a bug that two of five worlds show, any three of them may be worlds that do not."""


@dataclass(frozen=True, slots=True)
class Patch:
    """A name that means something else while the bug is planted.

    Attributes:
        target: Module or class.
        name: Function, property or constant of the target.
        changed: Turns the original value into the value with the bug; see `instead`, `around` and `returning`.
    """

    target: Any
    name: str
    changed: Callable[[Any], Any]


def instead(replacement: object) -> Callable[[Any], Any]:
    """Puts another function, property or constant in the place of the original."""
    return lambda _: replacement


def around(wrapper: Callable[..., Any]) -> Callable[[Any], Any]:
    """Calls the wrapper in the place of a function: the original is its first argument, and those of the call follow."""
    return lambda original: lambda *arguments, **named: wrapper(original, *arguments, **named)


def returning(value: object) -> Callable[[Any], Any]:
    """Makes a function return this, whatever it is called with."""
    return lambda _: lambda *arguments, **named: copy(value)


def operation_returning(value: object) -> Callable[[Any], Any]:
    """Makes an operation, which may ask store and host, ask nothing and return this."""

    def operation(*_: Any, **__: Any) -> Generator[Any, Any, Any]:
        yield from ()
        return copy(value)

    return lambda _: operation


@dataclass(frozen=True, slots=True)
class Seeds:
    """Random worlds in which a bug is looked for.

    Attributes:
        within: Seeds below this are tried, at least `WITHIN_MIN`: two to three times the first that finds it, so that drift shows.
        directed: Seeds that are tried first: they have found the bug, with the worlds as they were then.
        trap: The trap to set in worlds that are calm otherwise; None = the seeds' own hostile worlds.
    """

    within: int
    directed: tuple[int, ...] = ()
    trap: str | None = None

    def __iter__(self) -> Iterator[int]:
        """Yields the seeds in the order in which they are tried."""
        return iter(dict.fromkeys((*self.directed, *range(max(self.within, WITHIN_MIN)))))


@dataclass(frozen=True, slots=True)
class Mutant:
    """A planted bug: one protection is taken away, everything else is as in production.

    Attributes:
        why: What goes wrong without the protection.
        breaks: Invariant with which a violation that proves the bug begins, such as `I2`.
        killed_by: Id of the test that fails with the bug, relative to `tests/`; or seeds, of which one breaks the invariant.
        beside: Other layers that would hide the bug, switched off too. With only these off, the test must pass.
        clause: The clause of a condition that is spoilt, if the bug is such a one.
    """

    name: str
    why: str
    breaks: str
    patches: tuple[Patch, ...]
    killed_by: str | Seeds
    beside: tuple[Patch, ...] = ()
    clause: Clause | None = None

    @property
    def test(self) -> str | None:
        """Id of the test that finds the bug; None = seeds find it."""
        return self.killed_by if isinstance(self.killed_by, str) else None

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seeds to try, in this order; empty if a test finds the bug."""
        return () if isinstance(self.killed_by, str) else tuple(self.killed_by)

    def simulate(self, seed: int) -> Outcome:
        """Runs a seed with the bug in it."""
        with self.planted():
            return simulate(seed, swarm=self.swarm(seed))

    def swarm(self, seed: int) -> Swarm:
        """Returns the world in which it is looked for."""
        trap = self.killed_by.trap if isinstance(self.killed_by, Seeds) else None
        return swarm_of(seed) if trap is None else trapped(swarm_of(seed, faults=False), seed, trap)

    def proofs(self, violations: Iterable[str]) -> list[str]:
        """Returns the violations that show the missing protection."""
        return [
            violation
            for violation in violations
            if violation.startswith(f"{self.breaks}:") and not any(each in violation for each in NO_PROOF)
        ]

    @contextmanager
    def planted(self, *, bug: bool = True) -> Generator[None]:
        """The code has the bug meanwhile; without `bug` only the layers beside it are off."""
        with ExitStack() as stack:
            for patch in (*self.beside, *(self.patches if bug else ())):
                original = getattr(patch.target, patch.name)
                stack.enter_context(mock.patch.object(patch.target, patch.name, patch.changed(original)))
            yield
