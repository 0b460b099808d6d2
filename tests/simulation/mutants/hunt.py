"""Looks for planted bugs until the first proof of each: in random worlds, or by the test that a bug names.

`hunt_by_tests` runs such tests in this process, with a pytest plugin that plants a bug around the call of a test. Fixtures and
teardown run without the bug. Callers use a child process, because a run of pytest changes its process.
"""

from __future__ import annotations

import io
import re
import traceback
from collections import defaultdict
from collections.abc import Generator, Iterable, Sequence
from contextlib import nullcontext, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from _pytest.runner import runtestprotocol

from tests.simulation.mutants.mutant import NO_PROOF, Mutant

TESTS: Final = Path(__file__).parents[2]
STORIES: Final = "simulation/stories/"
OTHERS_SHOWN = 5
OUTGROWN = re.compile(r"raised TypeError\(.*(positional|keyword) argument")
"""Production calls what is planted with other arguments than it was written for. What breaks then says nothing about the bug."""
VIOLATION: Final = re.compile(r"\b(?:I\d|answers|dead letters|liveness|order): .*")
"""What checks and monitors report, up to the end of its line."""


@dataclass(frozen=True, slots=True)
class Hunt:
    """Result of the search for one bug.

    Attributes:
        killed_by: The seed or test that found the bug; None when it survives.
        tried: Seeds that were tried; 0 where a test was run.
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
        return f"| `{name}`{beside} | {self.mutant.why} | {self.mutant.breaks} | {self.killed_by or 'SURVIVES'} |"


# -- by seeds ---------------------------------------------------------------------------------------------------------------


def hunt_by_seeds(mutant: Mutant) -> Hunt:
    """Runs the bug's seeds until one proves it."""
    others: list[str] = []
    for tried, seed in enumerate(mutant.seeds, start=1):
        violations = mutant.simulate(seed).violations
        if outgrown := [violation for violation in violations if OUTGROWN.search(violation)]:
            return Hunt(mutant, None, tried, outgrown[:OTHERS_SHOWN])
        if mutant.proofs(violations):
            return Hunt(mutant, f"seed {seed}", tried)
        others += [f"seed {seed}: {violation}" for violation in violations]
    return Hunt(mutant, None, len(mutant.seeds), others[:OTHERS_SHOWN])


# -- by tests ---------------------------------------------------------------------------------------------------------------


def hunt_by_tests(mutants: Iterable[Mutant]) -> list[Hunt]:
    """Runs the test that each bug names, without the bug and with it; all tests in one run of pytest."""
    planter = Planter(mutants)
    output = _run_pytest(planter)
    return [
        planter.hunts.get(mutant.name) or Hunt(mutant, None, others=["no such test", *_errors_in(output)])
        for mutant in planter.mutants
    ]


def missing_tests(mutants: Iterable[Mutant]) -> list[str]:
    """Returns the bugs that name a test that does not exist, each with that name. Runs none."""
    planter = Planter(mutants)
    output = _run_pytest(planter, "--collect-only")
    missing = [mutant for mutant in planter.mutants if mutant.test not in planter.found]
    return [f"{mutant.name}: {mutant.test}" for mutant in missing] + (_errors_in(output) if missing else [])


class Planter:
    """Pytest plugin: runs the named tests only, each without and with the bugs that name it.

    Attributes:
        found: Named tests that exist, as bugs name them.
        hunts: Results, by the name of the bug.
    """

    def __init__(self, mutants: Iterable[Mutant]) -> None:
        self.mutants = list(mutants)
        self.found: set[str] = set()
        self.hunts: dict[str, Hunt] = {}
        self._killed_by: dict[str, list[Mutant]] = defaultdict(list)
        for mutant in self.mutants:
            assert mutant.test is not None, f"{mutant.name} names no test"
            self._killed_by[mutant.test].append(mutant)
        self._planted: Mutant | None = None
        self._with_bug = False
        self._raised: BaseException | None = None

    @property
    def files(self) -> list[Path]:
        """Existing files that hold the named tests: a missing one would keep pytest from running the others."""
        paths = dict.fromkeys(TESTS / name.partition("::")[0] for name in self._killed_by)
        return [path for path in paths if path.is_file()]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        named = [item for item in items if _name_of(item) in self._killed_by]
        self.found = set(map(_name_of, named))
        config.hook.pytest_deselected(items=[item for item in items if item not in set(named)])
        items[:] = named

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        unplanted: list[str] | None = None
        for mutant in self._killed_by[_name_of(item)]:
            if mutant.beside:
                without = self._run(item, nextitem, mutant, with_bug=False)
            else:
                # Nothing is switched off: all bugs of this test share the run without them.
                without = unplanted = self._run(item, nextitem, None) if unplanted is None else unplanted
            with_bug = [] if without else self._run(item, nextitem, mutant, with_bug=True)
            self.hunts[mutant.name] = self._judged(mutant, [f"without the bug: {each}" for each in without], with_bug)
        return True

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        planted = self._planted
        with nullcontext() if planted is None else planted.planted(bug=self._with_bug):
            try:
                return (yield)
            except BaseException as error:
                self._raised = error
                raise

    def _run(
        self, item: pytest.Item, nextitem: pytest.Item | None, mutant: Mutant | None, *, with_bug: bool = False
    ) -> list[str]:
        """Returns why the test did not pass; empty when it passed. Notes in `_raised` what its call raised."""
        self._planted, self._with_bug, self._raised = mutant, with_bug, None
        item._initrequest()  # type: ignore[attr-defined]  # fixtures of a test that runs a second time
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
        return [f"{report.when} {report.outcome}: {report.longreprtext}" for report in reports if not report.passed]

    def _judged(self, mutant: Mutant, without: Sequence[str], with_bug: Sequence[str]) -> Hunt:
        others = [*without, *with_bug] or ["the test passes with the bug"]
        is_killed = not without and len(with_bug) == 1 and self._raised is not None and proves(self._raised, mutant)
        return Hunt(mutant, mutant.test if is_killed else None, others=[] if is_killed else others[:OTHERS_SHOWN])


def proves(error: BaseException, mutant: Mutant) -> bool:
    """Whether a failed test shows the missing protection, and not code that only breaks.

    An assertion of the tests must have failed: the product raises `AssertionError` too where it is called wrongly. Where the message
    reports violations, one of them must be of the invariant that the bug breaks. The message of a story always reports one, because
    an assertion that only prepares the story proves nothing.
    """
    message = str(error)
    if isinstance(error, pytest.fail.Exception):
        return message.startswith("DID NOT RAISE")
    if not isinstance(error, AssertionError):
        return False
    raised_in = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
    if not raised_in.is_relative_to(TESTS):
        return False
    violations = VIOLATION.findall(message)
    if violations or (mutant.test or "").startswith(STORIES):
        return bool(mutant.proofs(violations))
    return not any(each in message for each in NO_PROOF)


def _name_of(item: pytest.Item) -> str:
    return item.nodeid.removeprefix("tests/")


def _run_pytest(planter: Planter, *options: str) -> str:
    """Returns what pytest printed. `--all`: a bug may name a test of the second tier."""
    output = io.StringIO()
    arguments = [
        "--all",
        "-q",
        "-p",
        "no:cacheprovider",
        f"--rootdir={TESTS.parent}",
        *options,
        *map(str, planter.files),
    ]
    if planter.files:
        with redirect_stdout(output), redirect_stderr(output):
            pytest.main(arguments, plugins=[planter])
    return output.getvalue()


def _errors_in(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith("ERROR") or "rror:" in line][:OTHERS_SHOWN]
