"""`tidegate simulate`: reads its input files, runs the simulation and shows the result. Problems have file and line."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

from tidegate_cli.commands.arguments import each_once
from tidegate_cli.commands.simulate import SimulationFormat
from tidegate_cli.exit_codes import CommandFailed, Exit
from tidegate_cli.input_files import name_of, refuse_two_readers, text_of
from tidegate_cli.output import EMPTY, dump, note, show_table, write
from tidegate_cli.output import Format as Output
from tidegate_cli.simulation_warnings import note_uncounted, note_unused, note_warnings, title_of
from tidegate_cli.yaml_documents import read_schedules
from tidegate_core.explain.why.run_reasons import in_words
from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.formats.parsing import parse_request, parse_schedule
from tidegate_core.language.requests.requests import ScheduleApply
from tidegate_core.language.values.durations import Duration, format_duration, parse_duration
from tidegate_core.language.values.instants import Instant, as_datetime, parse_instant
from tidegate_core.language.values.problems import InvalidInput, Problem, did_you_mean
from tidegate_simulator import (
    DefinitionRefused,
    Happening,
    Occurrence,
    Outage,
    PlannedRun,
    Report,
    RunPlan,
    TimeStandsStill,
    happenings_of,
    simulate,
)

LINES_MAX = 1_000_000
"""Lines of one file of events or runs; all are held in memory."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Arguments and options of the command, unparsed."""

    file: Path
    begin: str
    end: str
    events: Path | None = None
    runs: Path | None = None
    duration: str = "1m"
    outages: tuple[str, ...] = ()
    load: str = "0"
    minimum_period: str = "10s"


def show_simulation(wanted: Wanted, output: SimulationFormat) -> None:
    """Simulates, and prints each occurrence, then their number and the hash.

    Raises:
        CommandFailed: An argument or a file is wrong (usage); nothing was simulated.
    """
    report = _simulated(wanted)
    match output:
        case SimulationFormat.TABLE:
            show_table(HEADINGS, [_row(each) for each in report.occurrences])
            write(_summary(report))
        case SimulationFormat.JSON:
            dump({**report.document(), "hash": report.digest}, Output.JSON)
        case SimulationFormat.JSONL:
            for each in report.occurrences:
                write(json.dumps(each.document()))
            write(json.dumps({"occurrences": len(report.occurrences), "hash": report.digest}))
    for answer in report.answers:
        note(answer)


# -- input -------------------------------------------------------------------------------------------------------------


def _simulated(wanted: Wanted) -> Report:
    refuse_two_readers({"FILE": wanted.file, "--events": wanted.events, "--runs": wanted.runs})
    documents = read_schedules(wanted.file, absolute=False)
    begin, end = _value("--from", wanted.begin, parse_instant), _value("--to", wanted.end, parse_instant)
    if begin >= end:
        raise CommandFailed(f"--to {wanted.end}: must be after --from {wanted.begin}", Exit.USAGE)
    placed = _happenings(wanted.events, begin, end)
    happenings = [happening for _, happening in placed]
    applied = _applied_by(happenings)
    planned = _planned_runs(wanted.runs)
    _refuse_unknown_schedules(
        planned, {document.title for document in documents} | {title_of(spec) for spec in applied}
    )
    try:
        report = simulate(
            [document.spec for document in documents],
            begin,
            end,
            happenings=happenings,
            runs=RunPlan.of((run for _, run in planned), _otherwise(wanted.duration)),
            outages=_outages(wanted.outages, begin, end),
            load=None if wanted.load == "none" else _value("--load", wanted.load, _share),
            minimum_period_ms=_value("--minimum-period", wanted.minimum_period, parse_duration),
        )
        specs = [parse_schedule(document.spec) for document in documents]
        note_warnings(specs, begin)
        note_uncounted(placed, [*specs, *applied])
        note_unused(planned, report)
        return report
    except DefinitionRefused as refused:
        document = documents[refused.index]
        problems = [f"{document.place_of(each.field)}: schedule {document.title}: {each}" for each in refused.problems]
        raise CommandFailed("\n  ".join(["the schedules have to be corrected:", *problems]), Exit.USAGE) from refused
    except TimeStandsStill as circle:
        raise CommandFailed(str(circle), Exit.USAGE) from circle


def _value(option: str, text: str, read: Callable[[str], T]) -> T:
    try:
        return read(text)
    except ValueError as error:
        raise CommandFailed(f"{option} {text}: {error}", Exit.USAGE) from error


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ValueError("is wrong; give a number from 0 to 1, or none")
    return share


def _otherwise(duration: str) -> PlannedRun:
    try:
        return PlannedRun.read({"duration": duration})
    except InvalidInput as refusal:
        raise CommandFailed(f"--{refusal}", Exit.USAGE) from refusal


def _outages(texts: Iterable[str], begin: Instant, end: Instant) -> list[Outage]:
    found = sorted(((_outage(text, begin, end), text) for text in texts), key=lambda each: each[0].begin)
    for (before, one), (after, other) in pairwise(found):
        if after.begin < before.end:
            raise CommandFailed(f"--outage {other}: overlaps {one}; merge them into one", Exit.USAGE)
    return [outage for outage, _ in found]


def _outage(text: str, begin: Instant, end: Instant) -> Outage:
    first, slash, last = text.partition("/")
    if not slash:
        raise CommandFailed(f"--outage {text}: write it as FROM/TO", Exit.USAGE)
    outage = Outage(_value("--outage", first, parse_instant), _value("--outage", last, parse_instant))
    if not begin <= outage.begin < outage.end < end:
        raise CommandFailed(f"--outage {text}: must be a span within --from and --to", Exit.USAGE)
    return outage


def _happenings(path: Path | None, begin: Instant, end: Instant) -> list[tuple[str, Happening]]:
    """Returns the events and requests of the file, each with its `file:line`."""
    if path is None:
        return []
    found: list[tuple[str, Happening]] = []
    left_out = 0
    for place, document in _lines(path):
        for happening in _read(place, document, lambda each: happenings_of(each, end)):
            if begin <= happening.at < end:
                found.append((place, happening))
            else:
                left_out += 1
    if left_out:
        note(f"{name_of(path)}: {left_out} entries are outside the simulated span and are ignored")
    return found


def _planned_runs(path: Path | None) -> list[tuple[str, PlannedRun]]:
    """Returns each planned run with its `file:line`."""
    return [(place, _read(place, document, PlannedRun.read)) for place, document in _lines(path)]


def _applied_by(happenings: Iterable[Happening]) -> list[ScheduleSpec]:
    """Returns the schedules that requests of the events file apply."""
    requests = (parse_request(each.value) for each in happenings if each.topic == "requests")
    return [request.spec for request in requests if isinstance(request, ScheduleApply)]


def _refuse_unknown_schedules(planned: Iterable[tuple[str, PlannedRun]], known: set[str]) -> None:
    """Refuses a planned run of an unknown schedule. Otherwise a typing error would silently drop a planned failure."""
    problems = [
        (
            place,
            Problem("schedule", f'"{run.schedule}" is not simulated here', did_you_mean(run.schedule, sorted(known))),
        )
        for place, run in planned
        if run.schedule is not None and run.schedule not in known
    ]
    if problems:
        raise CommandFailed("\n  ".join(f"{place}: {problem}" for place, problem in problems), Exit.USAGE)


def _read(place: str, document: Mapping[str, Any], read: Callable[[Mapping[str, Any]], T]) -> T:
    try:
        return read(document)
    except InvalidInput as refusal:
        problems = "\n  ".join(f"{place}: {problem}" for problem in refusal.problems)
        raise CommandFailed(problems, Exit.USAGE) from refusal
    except UnicodeEncodeError as error:
        raise CommandFailed(
            f"{place}: has a lone surrogate (\\uD800 to \\uDFFF); write the whole character", Exit.USAGE
        ) from error
    except RecursionError as error:
        raise CommandFailed(f"{place}: is nested too deeply", Exit.USAGE) from error


def _lines(path: Path | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields `file:line` and the document of each line, without empty lines."""
    if path is None:
        return
    name = name_of(path)
    for number, line in enumerate(text_of(path).split("\n"), start=1):
        if number > LINES_MAX:
            raise CommandFailed(f"{name}: has more than {LINES_MAX} lines", Exit.USAGE)
        if not line.strip():
            continue
        try:
            document = json.loads(line, object_pairs_hook=each_once)
        except ValueError as error:
            raise CommandFailed(f"{name}:{number}: is not JSON: {error}", Exit.USAGE) from error
        except RecursionError as error:
            raise CommandFailed(f"{name}:{number}: is nested too deeply", Exit.USAGE) from error
        if not isinstance(document, dict):
            raise CommandFailed(f"{name}:{number}: is JSON, but not an object", Exit.USAGE)
        yield f"{name}:{number}", document


# -- output -------------------------------------------------------------------------------------------------------------

HEADINGS = ("schedule", "scheduled", "zone", "result", "waited for", "started", "ended", "remark")


def _row(each: Occurrence) -> list[str]:
    result = each.result if each.attempts < 2 else f"{each.result}, attempt {each.attempts}"
    return [
        each.schedule if each.correlation is None else f"{each.schedule} ({each.correlation})",
        each.local,
        each.zone,
        result,
        _waited(each) or EMPTY,
        _moment(each.started_at),
        _moment(each.ended_at),
        _remark(each) or EMPTY,
    ]


def _waited(each: Occurrence) -> str:
    """Returns the waiting time of each reason. For a wait that is still open it returns the begin."""
    spent: Counter[str] = Counter()
    open_since: list[str] = []
    for wait in each.waits:
        name = "+".join(dict.fromkeys(wait.codes))
        if wait.end is None:
            open_since.append(f"{name} since {_moment(wait.begin)}")
        else:
            spent[name] += wait.end - wait.begin
    return ", ".join([*(f"{name} {_span(total)}" for name, total in spent.items()), *open_since])


def _remark(each: Occurrence) -> str:
    stands_for = f"stands for {each.covered}" if each.covered > 1 else ""
    missing = f"without {', '.join(each.missing)}" if each.missing else ""
    forced = f"forced although {each.forced}" if each.forced else ""
    detail = in_words(each.result, each.detail) if each.detail else ""
    return "; ".join(part for part in (stands_for, missing, forced, detail) if part)


def _summary(report: Report) -> str:
    counts = ", ".join(f"{count} {result}" for result, count in report.tally().items())
    total = len(report.occurrences)
    return f"{total} occurrences{': ' if counts else ''}{counts}\n{report.digest}"


def _moment(instant: Instant | None) -> str:
    if instant is None:
        return EMPTY
    precision = "milliseconds" if instant % 1000 else "seconds"
    return as_datetime(instant).replace(tzinfo=None).isoformat(sep=" ", timespec=precision) + "Z"


def _span(milliseconds: Duration) -> str:
    """Returns a duration in its two largest units: `1h30m`, `2d4h`."""
    parts: list[str] = []
    for unit, unit_ms in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)):
        number, milliseconds = divmod(milliseconds, unit_ms)
        if number:
            parts.append(f"{number}{unit}")
        if len(parts) == 2:
            return "".join(parts)
    return "".join(parts) or format_duration(milliseconds)
