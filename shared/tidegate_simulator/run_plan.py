"""Plan of a simulation's runs: how long each takes and how it ends, invented or recorded."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationError, WithJsonSchema

from tidegate_core.language.definitions.run_policies import ErrorKind
from tidegate_core.language.formats.parsing import parse_events
from tidegate_core.language.values.document import AtMost, Document, Whole
from tidegate_core.language.values.durations import Duration, duration_of, format_duration
from tidegate_core.language.values.instants import Instant, InstantField, format_instant
from tidegate_core.language.values.problems import InvalidInput, Problem, refused
from tidegate_core.language.values.validation_errors import problems_of
from tidegate_simulator.external_events import filled_in

DEFAULT_DURATION_MS: Duration = 60_000
OUTPUTS_BYTES_MAX = 65_536
"""Largest JSON in UTF-8, as for a real program."""
REPORTS_MAX = 100
"""Most events that one run reports."""

EXAMPLE_TEXTS: Mapping[str, str] = {
    **dict.fromkeys(("nominal", "interval_start", "interval_end"), "2026-01-01T02:00:00Z"),
    "correlation": "example",
    "date": "2026-01-01",
}
"""Values for the templates of a run while its reports are checked; the kind of an event depends on none of them."""

Span: TypeAlias = tuple[Duration, Duration]
"""Shortest and longest duration, both inclusive."""


def _span_of(value: Any) -> Any:
    if isinstance(value, tuple):
        return value
    if value == "none":
        return None
    if not isinstance(value, str) or ".." not in value:
        milliseconds = duration_of(value)
        return (milliseconds, milliseconds)
    low, _, high = value.partition("..")
    span = (duration_of(low), duration_of(high))
    if span[0] > span[1]:
        raise refused("has its longer end first", hint=f"write {high}..{low}")
    return span


def _span_text(span: Span | None) -> str:
    if span is None:
        return "none"
    texts = [format_duration(end) for end in dict.fromkeys(span)]
    return "..".join(texts)


SpanField = Annotated[
    Span | None,
    BeforeValidator(_span_of),
    PlainSerializer(_span_text, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["20m", "5m..20m", "none"]}),
]


class PlannedRun(Document):
    """One line of a file of runs: duration and end of the runs that it matches.

    Attributes:
        schedule: `<namespace>/<name>`; without it runs of all schedules.
        nominal: Nominal instant of one occurrence; without it all occurrences.
        attempt: Number of an attempt; without it all attempts.
        duration: From start to end: `20m`; `5m..20m`, drawn for each run, the same on every machine; `none` never ends.
        outcome: Outcome that the program reports.
        error_class: Class of a failure.
        outputs: Outputs for downstream runs.
        reports: Events that it announces at its end, in the form of an events file, without `at`. `${nominal}`,
            `${interval_start}`, `${interval_end}`, `${correlation}` and `${date}` (the nominal's, in UTC) are filled
            in.
    """

    EXAMPLE: ClassVar = {"schedule": "flights/join-day", "duration": "5m..20m", "outcome": "succeeded"}
    FIELD_HINTS: ClassVar = {"state": "it is called outcome", "events": "they are called reports"}

    schedule: str | None = None
    nominal: InstantField | None = None
    attempt: Annotated[Whole, Field(ge=1)] | None = None
    duration: SpanField = (DEFAULT_DURATION_MS, DEFAULT_DURATION_MS)
    outcome: Literal["succeeded", "failed"] = "succeeded"
    error_class: ErrorKind | None = None
    outputs: dict[str, Any] | None = None
    reports: Annotated[tuple[dict[str, Any], ...], AtMost(REPORTS_MAX)] = ()

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> PlannedRun:
        """Returns the line of a document.

        Raises:
            InvalidInput: Holds all problems.
        """
        try:
            run = cls.model_validate(document)
        except ValidationError as error:
            raise InvalidInput(problems_of(error, cls)) from error
        if run.error_class is not None and run.outcome == "succeeded":
            raise InvalidInput([Problem("error_class", "is for failures only", "add outcome: failed")])
        if run.nominal is not None and run.schedule is None:
            raise InvalidInput([Problem("nominal", "needs a schedule", "add schedule: NAMESPACE/NAME")])
        size = len(json.dumps(run.outputs, ensure_ascii=False).encode())
        if size > OUTPUTS_BYTES_MAX:
            problem = f"has {size} bytes, at most {OUTPUTS_BYTES_MAX} (64 KiB) are allowed"
            raise InvalidInput([Problem("outputs", problem, "report a pointer")])
        _check(run.reports)
        return run

    @property
    def about(self) -> _About:
        return (self.schedule, self.nominal, self.attempt)

    def takes(self, schedule: str, nominal: Instant, attempt: int) -> Duration | None:
        """Returns how long this run takes; None: it runs until it is cancelled."""
        if self.duration is None:
            return None
        low, high = self.duration
        # A hash and no random number: a run's duration is the same everywhere and in any order of queries.
        text = f"{schedule} {format_instant(nominal)} {attempt}"
        drawn = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
        return low + drawn % (high - low + 1)


def _check(reports: Iterable[Mapping[str, Any]]) -> None:
    """Raises InvalidInput if one of the reports is no event."""
    for number, report in enumerate(reports):
        try:
            parse_events(json.dumps(filled_in(report, EXAMPLE_TEXTS), ensure_ascii=False).encode())
        except InvalidInput as refusal:
            place = f"reports[{number}]"
            raise InvalidInput(
                [replace(each, field=f"{place}.{each.field}" if each.field else place) for each in refusal.problems]
            ) from refusal


_About: TypeAlias = tuple[str | None, Instant | None, int | None]


@dataclass(frozen=True, slots=True)
class RunPlan:
    """All lines; for each run the most specific one counts.

    Attributes:
        lines: Lines by the runs that they match.
        otherwise: Line for runs without a match.
    """

    lines: Mapping[_About, PlannedRun] = field(default_factory=dict)
    otherwise: PlannedRun = field(default_factory=PlannedRun)

    @classmethod
    def of(cls, lines: Iterable[PlannedRun], otherwise: PlannedRun | None = None) -> RunPlan:
        """Returns the plan of lines; of several lines for the same runs the last one counts."""
        return cls({line.about: line for line in lines}, otherwise or PlannedRun())

    def run(self, schedule: str, nominal: Instant, attempt: int) -> PlannedRun:
        abouts: tuple[_About, ...] = (
            (schedule, nominal, attempt),
            (schedule, nominal, None),
            (schedule, None, attempt),
            (schedule, None, None),
            (None, None, attempt),
            (None, None, None),
        )
        return next((self.lines[about] for about in abouts if about in self.lines), self.otherwise)
