"""Follows the demo's runs until all have ended, shows how far they are, and kills a node half-way."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tidegate_cli.demo.demo_plan import NAMESPACE, DemoPlan
from tidegate_client.client import Client
from tidegate_client.errors import ApiUnavailable, ApiUnreachable
from tidegate_client.views import OccurrenceView, RunView

LOOK_INTERVAL_S = 0.5
RUNS_ASKED_FOR = 50
"""The newest ones: far more than are open at once, four schedules with one run each."""

PATIENCE_BASE_S = 240.0
"""Start of the stack's work, take-over and all that does not grow with the number of days."""

PATIENCE_PER_DAY_S = 90.0
"""A day is four runs of about 10 s of processor time each, on two cores that may be busy."""


class Cluster(Protocol):
    """The part of a stack that is needed here."""

    @property
    def node_names(self) -> tuple[str, ...]: ...

    def look(self) -> None: ...

    def kill_node(self, name: str) -> int | None: ...


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the pipeline is."""

    runs: tuple[RunView, ...]
    ended: int


@dataclass(slots=True)
class Watcher:
    """Watches until each expected occurrence has its ledger entry."""

    cluster: Cluster
    client: Client
    plan: DemoPlan
    console: Console
    killed: str | None = None

    def until_all_ended(self) -> list[OccurrenceView]:
        """Returns the ledger; where time has run out it says so, and the ledger has what was decided until then."""
        deadline = time.monotonic() + PATIENCE_BASE_S + PATIENCE_PER_DAY_S * len(self.plan.days)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console, disable=not self.console.is_terminal) as bar:
            task = bar.add_task("runs", total=self.plan.occurrences)
            before: Sequence[str] = ()
            while time.monotonic() < deadline:
                self.cluster.look()
                standing = self._standing()
                if standing is not None:
                    now = _lines(standing.runs)
                    bar.update(task, completed=standing.ended, description=_open_words(standing.runs))
                    self._tell(now, before, standing.ended)
                    before = now
                    self._kill_half_way(standing)
                    if standing.ended >= self.plan.occurrences:
                        return self.ledger()
                time.sleep(LOOK_INTERVAL_S)
        self.console.print(f"Time is up: {self._what_is_open()}", style="bold red", soft_wrap=True)
        return self.ledger()

    def _standing(self) -> Standing | None:
        """Asks the API; None while it does not answer, which is no reason to give up."""
        try:
            runs = self.client.runs(namespace=NAMESPACE, limit=RUNS_ASKED_FOR)
            return Standing(tuple(runs), len(self.ledger()))
        except (ApiUnreachable, ApiUnavailable):
            return None

    def ledger(self) -> list[OccurrenceView]:
        """Returns what became of each occurrence, as the API has it now."""
        return list(self.client.occurrences(NAMESPACE))

    def _kill_half_way(self, standing: Standing) -> None:
        if self.killed is not None or standing.ended * 2 < self.plan.occurrences:
            return
        at_work = [run for run in standing.runs if not run.is_ended and run.node in self.cluster.node_names]
        # Preferably one in the middle of something: that is what its survivor has to find and go on with.
        if not at_work and standing.ended < self.plan.occurrences:
            return
        victim = (at_work[0].node if at_work else None) or self.cluster.node_names[0]
        pid = self.cluster.kill_node(victim)
        self.killed = victim
        open_there = ", ".join(run.schedule for run in at_work if run.node == victim) or "no run"
        self.console.print(
            f"Half-way: {victim} (process {pid}) was killed with kill -9 while it had {open_there} under way. It is not "
            "started again; the other node takes over its shards and what runs within some seconds.",
            style="bold red",
            soft_wrap=True,
        )

    def _tell(self, now: Sequence[str], before: Sequence[str], ended: int) -> None:
        """Prints what has changed, for those who cannot see the bar."""
        for line in now:
            if line not in before:
                self.console.print(
                    f"{ended:>3} of {self.plan.occurrences} ended  {line}", soft_wrap=True, highlight=False
                )

    def _what_is_open(self) -> str:
        standing = self._standing()
        if standing is None:
            return "the API does not answer"
        missing = self.plan.occurrences - standing.ended
        return (
            f"{missing} of {self.plan.occurrences} occurrences are undecided; open runs: {_open_words(standing.runs)}"
        )


def _lines(runs: Sequence[RunView]) -> list[str]:
    """Returns one line for each run and state, the oldest run first."""
    return [f"{run.schedule:<13} {run.state:<10} {run.node or ''}  {run.id}" for run in reversed(runs)]


def _open_words(runs: Sequence[RunView]) -> str:
    names = sorted(run.schedule for run in runs if not run.is_ended)
    return ", ".join(names) or "waiting"
