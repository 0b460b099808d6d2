"""Planted bugs that tests must find: what a check cannot find, it does not prove.

A new bug is an entry in a tuple of a topic's file, with the invariant that it breaks and the test that fails with it. Each such tuple is
found by itself. `--mutant NAME` plants a bug in worlds of `python -m tests.simulation`; `make mutants` hunts them all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from tests.simulation.mutants.mutant import Mutant


def _lists() -> Iterator[tuple[Mutant, ...]]:
    """Yields the tuples of bugs in the files of all topics."""
    for path in sorted(Path(__file__).parent.glob("*/*.py")):
        module = import_module(f"{__name__}.{path.parent.name}.{path.stem}")
        values: list[Any] = list(vars(module).values())
        yield from (each for each in values if isinstance(each, tuple) and each and isinstance(each[0], Mutant))


LISTS: Final = tuple(_lists())
MUTANTS: Final[Mapping[str, Mutant]] = {mutant.name: mutant for mutants in LISTS for mutant in mutants}
