"""A day in January 2026 with a few schedules, simulated, and short forms of what the report tells of it."""

from __future__ import annotations

from typing import Any

from tests.support.builders import HOUR, MINUTE, every
from tidegate_core.language.values.instants import parse_instant
from tidegate_simulator import Happening, Occurrence, PlannedRun, Report, RunPlan, happenings_of, simulate

BEGIN = parse_instant("2026-01-01T00:00:00Z")


def a_schedule(name: str = "load", trigger: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    program = {"type": "python", "file": "jobs/load.py"}
    target = {"type": "program", "program": program}
    named = {"kind": "schedule", "namespace": "flights", "name": name}
    return {**named, "target": target, "trigger": trigger or every("1h"), **more}


def ran(*schedules: dict[str, Any], hours: float = 6, takes: str = "1m", **more: Any) -> Report:
    """Simulates so many hours of 1 January 2026; runs take a minute unless told otherwise."""
    runs = more.pop("runs", RunPlan(otherwise=PlannedRun.read({"duration": takes})))
    return simulate(schedules, BEGIN, BEGIN + int(hours * HOUR), runs=runs, **more)


def happenings(*lines: dict[str, Any], hours: float = 6) -> list[Happening]:
    return [each for line in lines for each in happenings_of(line, BEGIN + int(hours * HOUR))]


def a_partition(at: str, name: str, dataset: str = "raw") -> dict[str, Any]:
    where = {"namespace": "flights", "dataset": dataset, "partition": name}
    return {"at": f"2026-01-01T{at}:00Z", "type": "data.partition", **where}


def told(report: Report) -> list[tuple[str, str, str, list[tuple[str, str]]]]:
    """Returns of each occurrence: schedule, nominal (minutes), result, and how long it waited for what."""
    return [
        (each.schedule.partition("/")[2], clock(each.nominal), each.result, [*waited(each)])
        for each in report.occurrences
    ]


def waited(each: Occurrence) -> list[tuple[str, str]]:
    return [("+".join(wait.codes), "..." if wait.end is None else clock(wait.end)) for wait in each.waits]


def clock(instant: int | None) -> str:
    minutes = ((instant or 0) - BEGIN) // MINUTE
    return f"{minutes // 60:02d}:{minutes % 60:02d}"
