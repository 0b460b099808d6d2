"""Programs on a bench: they start, pass the gate, run and report as a test says."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.support.builders import Doc
from tidegate_core.engine.actor_inputs import Input, Woken
from tidegate_core.language.values.derived_ids import shard_of_run
from tidegate_core.rows.effects import (
    DUPLICATE,
    Cancel,
    Committed,
    EffectRequest,
    EffectResult,
    Inspect,
    Inspected,
    Invalid,
    LaunchOrder,
    LoadSampled,
    LookedUp,
    Lookup,
    ProgramEnded,
    Refused,
    Result,
    SampleLoad,
    Submit,
    Submitted,
    Unavailable,
    Watch,
)
from tidegate_core.rows.store_operations import Transaction
from tidegate_core.writes.start_gate import finish_run, start_run
from tidegate_ports.common.refused_conf import refused_conf

REFUSED_AT_THE_GATE = ProgramEnded(79, DUPLICATE, "duplicate, not run")
"""How a wrapper ends whose run must not run, or is run by another one already."""


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What a program does.

    Attributes:
        starts_after: Milliseconds from submission to the gate; None: it never comes to it.
        runs_for: From the gate to its report; None: for ever.
        reports: Whether its wrapper reports the end.
    """

    starts_after: int | None = 50
    runs_for: int | None = 300
    outcome: str = "succeeded"
    error_class: str | None = None
    reports: bool = True
    outputs: Doc | None = None
    gone: ProgramEnded = field(default_factory=lambda: ProgramEnded(0))


@dataclass(slots=True)
class _Process:
    order: LaunchOrder
    behaviour: Behaviour
    driver: str
    watchers: list[int] = field(default_factory=list)
    gone: ProgramEnded | None = None
    is_marked: bool = False


class Mark(NamedTuple):
    """A line that a program writes as it begins, and as it ends."""

    run_id: str
    at: int
    begins: bool


class Programs(ABC):
    """The launcher's side of a bench.

    Attributes:
        started: Orders that passed the gate, in order.
        submitted_at: Attempt and instant of each submission.
        marks: What the programs themselves write down, in order: run, instant, and whether it begins or ends there.
        behaves: What each program does.
        api_ahead: Milliseconds by which the clock of the API, to which they report, is ahead of the owner's.
        load: What every load is; None: nobody can say.
        host: Told apart where there are several: processes of one attempt on two hosts are two drivers.
        tells_host: Whether wrappers say whose launcher started them. Those of older releases do not.
    """

    now: int
    host = "host-1"
    tells_host = True
    api_ahead = 0
    load: float | None = 0.0

    def __init__(self, behaviour: Behaviour | None) -> None:
        self.started: list[LaunchOrder] = []
        self.submitted_at: list[tuple[int, int]] = []
        self.marks: list[Mark] = []
        self.behaves: Callable[[LaunchOrder], Behaviour] = lambda order: behaviour or Behaviour()
        self._processes: dict[tuple[str, int], _Process] = {}

    @abstractmethod
    def transact(self, transaction: Transaction) -> Committed | Refused | Unavailable | Invalid:
        """Sends what the start gate and the reports write."""

    @abstractmethod
    def give(self, *inputs: Input) -> None:
        """Hands inputs to the actor."""

    @abstractmethod
    def _soon_give(self, *inputs: Input) -> None: ...

    @abstractmethod
    def _later(self, milliseconds: int, action: Callable[[], None]) -> None: ...

    def _nobody_watches(self) -> None:
        for process in self._processes.values():
            process.watchers.clear()

    def _launcher(self, ask: EffectRequest) -> Result | None:
        match ask.effect:
            case Submit(order):
                self._submit(order)
                return Submitted(f"external-{order.run_id}-{order.attempt}", self.host, "boot-1")
            case Lookup(run, attempt):
                process = self._processes.get((run, attempt))
                if process is None:
                    return LookedUp("absent")
                return LookedUp("found", f"external-{run}-{attempt}", self.host, "boot-1")
            case Watch(run, attempt):
                process = self._processes[(run, attempt)]
                if process.gone is None:
                    process.watchers.append(ask.token)
                return process.gone
            case Cancel(run, attempt):
                self._end(self._processes.get((run, attempt)), ProgramEnded(143))
            case SampleLoad():
                return LoadSampled(self.load, "" if self.load is not None else "nobody answers")
            case Inspect(_, file, conf):
                return Inspected("cannot be read" if "missing" in file else None, refused_conf(conf))
            case _:
                pass
        return None

    def _submit(self, order: LaunchOrder) -> None:
        name = (order.run_id, order.attempt)
        if name in self._processes:
            return  # Adopted under its name.
        self.submitted_at.append((order.attempt, self.now))
        behaviour = self.behaves(order)
        process = _Process(order, behaviour, f"driver of {order.run_id} {order.attempt} on {self.host}")
        self._processes[name] = process
        if behaviour.starts_after is not None:
            self._later(behaviour.starts_after, lambda: self._start(process))

    def _start(self, process: _Process) -> None:
        order, behaviour = process.order, process.behaviour
        if process.gone is not None:
            return
        token = f"start {process.driver}"
        host = self.host if self.tells_host else None
        at = self.now + self.api_ahead
        verdict = self.transact(start_run(order.run_id, order.attempt, process.driver, at, token, host=host))
        if not isinstance(verdict, Committed):
            self._end(process, REFUSED_AT_THE_GATE)
            return
        self.started.append(order)
        self.marks.append(Mark(order.run_id, self.now, True))
        process.is_marked = True
        self._poke(order)
        if behaviour.runs_for is not None:
            self._later(behaviour.runs_for, lambda: self._finish(process))

    def _finish(self, process: _Process) -> None:
        order, behaviour = process.order, process.behaviour
        if process.gone is not None:
            return
        self._mark_end(process)  # Before it is reported: what a program says is over is over.
        if behaviour.reports:
            outputs = None if behaviour.outputs is None else json.dumps(behaviour.outputs)
            ended = (behaviour.outcome, behaviour.gone.exit_code, None, behaviour.error_class, outputs)
            token = f"end {process.driver}"
            at = self.now + self.api_ahead
            self.transact(finish_run(order.run_id, order.attempt, process.driver, *ended, at, token))
            self._poke(order)
        self._end(process, behaviour.gone)

    def _end(self, process: _Process | None, gone: ProgramEnded) -> None:
        if process is None or process.gone is not None:
            return
        process.gone = gone
        self._mark_end(process)
        self._soon_give(*(EffectResult(token, gone) for token in process.watchers))

    def _mark_end(self, process: _Process) -> None:
        if process.is_marked:
            process.is_marked = False
            self.marks.append(Mark(process.order.run_id, self.now, False))

    def vanish(self, run: str, attempt: int = 1, gone: ProgramEnded | None = None) -> None:
        """Ends a process without any report."""
        self._end(self._processes[(run, attempt)], gone or ProgramEnded(137))
        self.give()

    def tell_of_the_copy_before(self, run: str, attempt: int = 1) -> None:
        """Says that a copy is gone in whose place a platform had started the one that runs."""
        process = self._processes[(run, attempt)]
        watchers, process.watchers = process.watchers, []
        self.give(*(EffectResult(token, ProgramEnded(137)) for token in watchers))

    def _poke(self, order: LaunchOrder) -> None:
        self._soon_give(Woken(shard_of_run(order.run_id), order.run_id))
