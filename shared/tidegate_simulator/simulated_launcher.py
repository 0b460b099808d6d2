"""Launcher of a simulation: programs start at their submission, run as planned, and report their end."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from tidegate_core.engine.actor_inputs import Input, Woken
from tidegate_core.language.values.derived_ids import shard_of_run
from tidegate_core.language.values.instants import parse_instant
from tidegate_core.rows.effects import (
    DUPLICATE,
    Cancel,
    Committed,
    EffectRequest,
    EffectResult,
    LaunchOrder,
    LookedUp,
    Lookup,
    ProgramEnded,
    Refused,
    Result,
    Submit,
    Submitted,
    Watch,
)
from tidegate_core.rows.store_operations import Transaction
from tidegate_core.writes.start_gate import finish_run, start_run
from tidegate_simulator.external_events import date_of, filled_in
from tidegate_simulator.run_plan import RunPlan

HOST, BOOT = "simulated", "boot-1"
STOPPED = ProgramEnded(143)
"""128 + SIGTERM, a shell's status for it."""
REFUSED_AT_THE_GATE = ProgramEnded(79, DUPLICATE, "duplicate, not run")


class Outside(Protocol):
    """The part of the world that programs need."""

    now: int

    def transact(self, transaction: Transaction) -> Committed | Refused: ...

    def soon(self, incoming: Input) -> None: ...

    def later(self, milliseconds: int, action: Callable[[], None]) -> None: ...

    def append(self, topic: str, value: bytes) -> None: ...


@dataclass(slots=True)
class _Process:
    order: LaunchOrder
    watchers: list[int] = field(default_factory=list)
    gone: ProgramEnded | None = None

    @property
    def driver(self) -> str:
        return f"driver of {self.order.run_id} {self.order.attempt}"


class Programs:
    """Simulated programs. They run on during an outage of the scheduler, as on another host."""

    def __init__(self, world: Outside, plan: RunPlan) -> None:
        self._world = world
        self._plan = plan
        self._processes: dict[tuple[str, int], _Process] = {}

    def nobody_watches(self) -> None:
        for process in self._processes.values():
            process.watchers.clear()

    def carry_out(self, ask: EffectRequest, effect: Submit | Lookup | Watch | Cancel) -> Result | None:
        match effect:
            case Submit(order):
                self._submit(order)
                return Submitted(_external(order.run_id, order.attempt), HOST, BOOT)
            case Lookup(run, attempt):
                found = (run, attempt) in self._processes
                return LookedUp("found", _external(run, attempt), HOST, BOOT) if found else LookedUp("absent")
            case Watch(run, attempt):
                process = self._processes[(run, attempt)]
                if process.gone is None:
                    process.watchers.append(ask.token)
                return process.gone
            case Cancel(run, attempt):
                self._end(self._processes.get((run, attempt)), STOPPED)
        return None

    def _submit(self, order: LaunchOrder) -> None:
        name = (order.run_id, order.attempt)
        if name not in self._processes:
            process = self._processes[name] = _Process(order)
            self._world.later(0, lambda: self._start(process))

    def _start(self, process: _Process) -> None:
        order, world = process.order, self._world
        if process.gone is not None:
            return
        token = f"start {process.driver}"
        if not isinstance(
            world.transact(start_run(order.run_id, order.attempt, process.driver, world.now, token)), Committed
        ):
            self._end(process, REFUSED_AT_THE_GATE)
            return
        self._poke(order)
        takes = self._plan.run(*_identity(order)).takes(*_identity(order))
        if takes is not None:
            world.later(takes, lambda: self._finish(process))

    def _finish(self, process: _Process) -> None:
        order, world = process.order, self._world
        if process.gone is not None:
            return
        run = self._plan.run(*_identity(order))
        succeeded = run.outcome == "succeeded"
        gone = ProgramEnded(0 if succeeded else 1)
        outputs = None if run.outputs is None else json.dumps(run.outputs, sort_keys=True)
        error_class = None if succeeded else run.error_class
        for number, report in enumerate(run.reports):
            world.append("events", _reported(order, number, report))
        told = (run.outcome, gone.exit_code, None, error_class, outputs, world.now, f"end {process.driver}")
        world.transact(finish_run(order.run_id, order.attempt, process.driver, *told))
        self._poke(order)
        self._end(process, gone)

    def _end(self, process: _Process | None, gone: ProgramEnded) -> None:
        if process is None or process.gone is not None:
            return
        process.gone = gone
        for token in process.watchers:
            self._world.soon(EffectResult(token, gone))
        process.watchers.clear()

    def _poke(self, order: LaunchOrder) -> None:
        self._world.soon(Woken(shard_of_run(order.run_id), order.run_id))


def _external(run: str, attempt: int) -> str:
    return f"simulated-{run}-{attempt}"


def _identity(order: LaunchOrder) -> tuple[str, int, int]:
    schedule: Any = order.context["schedule"]
    return str(schedule["id"]), parse_instant(str(order.context["nominal"])), order.attempt


def _reported(order: LaunchOrder, number: int, report: dict[str, Any]) -> bytes:
    """Returns an event that a run announces; a repeat by its next attempt counts once."""
    _, nominal, _ = _identity(order)
    interval: Any = order.context["interval"] or {}
    texts = {
        "nominal": str(order.context["nominal"]),
        "date": date_of(nominal),
        "interval_start": str(interval.get("start", "")),
        "interval_end": str(interval.get("end", "")),
        "correlation": str(order.context["correlation"] or ""),
    }
    event = {"id": f"{order.run_id}/{number}", **filled_in(report, texts)}
    return json.dumps(event, ensure_ascii=False).encode()
