"""Judges suspends and deletes of one-shot schedules about their due instants: nothing starts after the answer (I7)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from tests.support.checkers.faults import Fault
from tests.support.cluster.evidence import ProgramRun

NEAR_MS = 500
"""An answer within half a second of the instant is one of those that a race is about."""


@dataclass(frozen=True, slots=True)
class StopAnswer:
    """The receipt of a stop.

    Attributes:
        appended_at: By the broker, ms since the epoch.
        running: Runs past the gate: they go on.
    """

    status: str
    appended_at: int
    running: frozenset[str]


@dataclass(frozen=True, slots=True)
class Stop:
    """A one-shot schedule of which a stop was asked for.

    Attributes:
        schedule: Its name, used once.
        due: Its instant, ms since the epoch.
        what: That was asked.
        acknowledged: Whether the broker has the request.
        answer: None while there is none.
    """

    schedule: str
    due: int
    what: Literal["suspend", "delete"]
    acknowledged: bool
    answer: StopAnswer | None

    @property
    def is_near(self) -> bool:
        return self.answer is not None and abs(self.answer.appended_at - self.due) <= NEAR_MS


def judge_stops(stops: Iterable[Stop], runs: Sequence[ProgramRun]) -> list[Fault]:
    """Judges them once nothing is under way."""
    by_schedule: dict[str, list[ProgramRun]] = defaultdict(list)
    for run in runs:
        by_schedule[run.schedule].append(run)
    return [fault for stop in stops for fault in _judge_one(stop, by_schedule[stop.schedule])]


def _judge_one(stop: Stop, runs: Sequence[ProgramRun]) -> Iterable[Fault]:
    name = f"{stop.what} of {stop.schedule}, due at {stop.due}"
    if len(runs) > 1:
        yield Fault("doubled", f"{name}: {', '.join(f'{run.run_id} pid {run.pid}' for run in runs)}")
    for run in runs:
        if run.started_at < stop.due:
            yield Fault("early", f"{name}: started {stop.due - run.started_at} ms before")
        if run.ended_ns is None:
            yield Fault("incomplete", f"{name}: {run.run_id} wrote no end")
    if stop.answer is None:
        if stop.acknowledged:
            yield Fault("unanswered", name)
        return
    if stop.answer.status != "accepted":
        # Nothing was stopped: it had its end already, so it has run.
        if not runs:
            yield Fault("lost", f"{name}: answered {stop.answer.status}, and it never ran")
        return
    for run in runs:
        after = run.started_at - stop.answer.appended_at
        if after > 0 and run.run_id not in stop.answer.running:
            yield Fault("stale", f"{name}: {run.run_id} started {after} ms after the answer, which does not list it")
