"""Follows the demo's runs until all have ended, shows their progress, and kills a node half-way."""

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

POLL_INTERVAL_S = 0.5
RUNS_LISTED = 50
"""Newest runs to list. Far fewer are open at the same time: four schedules with one run each."""

PATIENCE_BASE_S = 240.0
"""Seconds for the first runs, the take-over, and other work that does not grow with the number of days."""

PATIENCE_PER_DAY_S = 90.0
"""Seconds per day of data: four runs of about 10 s of processor time each, on two cores that may be busy."""


class Cluster(Protocol):
    """The part of `Stack` that the watcher uses."""

    @property
    def node_names(self) -> tuple[str, ...]: ...

    def check(self) -> None: ...

    def kill_node(self, name: str) -> int | None: ...


@dataclass(frozen=True, slots=True)
class PipelineProgress:
    """Progress of the pipeline: the newest runs, and the number of ended occurrences."""

    runs: tuple[RunView, ...]
    ended: int


@dataclass(slots=True)
class Watcher:
    """Waits until each expected occurrence has a ledger entry."""

    cluster: Cluster
    client: Client
    plan: DemoPlan
    console: Console
    killed: str | None = None

    def until_all_ended(self) -> list[OccurrenceView]:
        """Returns the ledger. After a timeout it prints a message and returns the entries so far."""
        deadline = time.monotonic() + PATIENCE_BASE_S + PATIENCE_PER_DAY_S * len(self.plan.days)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        with Progress(*columns, console=self.console, disable=not self.console.is_terminal) as bar:
            task = bar.add_task("runs", total=self.plan.occurrences)
            before: Sequence[str] = ()
            while time.monotonic() < deadline:
                self.cluster.check()
                progress = self._progress()
                if progress is not None:
                    now = _lines(progress.runs)
                    bar.update(task, completed=progress.ended, description=_open_words(progress.runs))
                    self._tell(now, before, progress.ended)
                    before = now
                    self._kill_half_way(progress)
                    if progress.ended >= self.plan.occurrences:
                        return self.ledger()
                time.sleep(POLL_INTERVAL_S)
        self.console.print(f"Time is up: {self._what_is_open()}", style="bold red", soft_wrap=True)
        return self.ledger()

    def _progress(self) -> PipelineProgress | None:
        """Reads the progress from the API; None while it does not answer, then the watcher goes on."""
        try:
            runs = self.client.runs(namespace=NAMESPACE, limit=RUNS_LISTED)
            return PipelineProgress(tuple(runs), len(self.ledger()))
        except (ApiUnreachable, ApiUnavailable):
            return None

    def ledger(self) -> list[OccurrenceView]:
        """Returns the outcome of each occurrence from the API."""
        return list(self.client.occurrences(NAMESPACE))

    def _kill_half_way(self, progress: PipelineProgress) -> None:
        if self.killed is not None or progress.ended * 2 < self.plan.occurrences:
            return
        at_work = [run for run in progress.runs if not run.is_ended and run.node in self.cluster.node_names]
        # Preferably a node with an open run, because the other node must then find the run and continue with it.
        if not at_work and progress.ended < self.plan.occurrences:
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
        """Prints changed runs, for an output without a progress bar."""
        for line in now:
            if line not in before:
                self.console.print(
                    f"{ended:>3} of {self.plan.occurrences} ended  {line}", soft_wrap=True, highlight=False
                )

    def _what_is_open(self) -> str:
        progress = self._progress()
        if progress is None:
            return "the API does not answer"
        missing = self.plan.occurrences - progress.ended
        return (
            f"{missing} of {self.plan.occurrences} occurrences are undecided; open runs: {_open_words(progress.runs)}"
        )


def _lines(runs: Sequence[RunView]) -> list[str]:
    """Returns one line for each run and state, the oldest run first."""
    return [f"{run.schedule:<13} {run.state:<10} {run.node or ''}  {run.id}" for run in reversed(runs)]


def _open_words(runs: Sequence[RunView]) -> str:
    names = sorted(run.schedule for run in runs if not run.is_ended)
    return ", ".join(names) or "waiting"
