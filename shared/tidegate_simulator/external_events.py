"""External input of a simulation: events and requests, recorded or invented, each with its instant."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Self, TypeAlias

from pydantic import Field, ValidationError, model_validator

from tidegate_core.language.formats.parsing import parse_events, parse_request
from tidegate_core.language.formats.record_decoding import TYPE_PREFIX
from tidegate_core.language.values.document import Document
from tidegate_core.language.values.durations import DurationField
from tidegate_core.language.values.instants import Instant, InstantField, as_datetime, format_instant
from tidegate_core.language.values.problems import InvalidInput, Problem, refused
from tidegate_core.language.values.validation_errors import problems_of

Topic: TypeAlias = Literal["events", "requests"]
WHEN = ("at", "every", "until")
"""Fields of a line that state its time; the others are the event or the request."""
SUSPEND = "schedule.suspend"
REPEATS_MAX = 1_000_000
"""Most repetitions of one line."""


@dataclass(frozen=True, slots=True)
class Happening:
    """A record that reaches a topic.

    Attributes:
        at: Append time of the record.
        topic: Topic of the record.
        value: Event or request as JSON.
    """

    at: Instant
    topic: Topic
    value: bytes


class _When(Document):
    """Fields of a line that state its time.

    Attributes:
        at: First time.
        every: Elapsed time between repetitions; `${at}`, `${date}` and `${number}` in its texts are filled in.
        until: End of the repetitions, exclusive; by default the end of the simulation.
    """

    EXAMPLE: ClassVar = {"at": "2026-01-01T02:00:00Z", "every": "1d"}

    at: InstantField
    every: DurationField | None = Field(default=None, ge=1)
    until: InstantField | None = None

    @model_validator(mode="after")
    def _repeated_until(self) -> Self:
        if self.until is not None and self.every is None:
            hint = "write every: 1d for a line that repeats, or leave until out"
            raise refused("needs every", field="until", hint=hint)
        if self.until is not None and self.until <= self.at:
            raise refused(f"is not after at, {format_instant(self.at)}", field="until", hint="nothing would come of it")
        return self


def happenings_of(document: Mapping[str, Any], end: Instant) -> Iterator[Happening]:
    """Returns the happenings of a line of an events file, in order: one, or with `every` one for each time.

    Args:
        document: An event or a request, with `at` and perhaps `every` and `until`.
        end: End of the simulation.

    Raises:
        InvalidInput: Holds all problems; raised at once, before the first happening is taken.
    """
    given = document.get("type")
    kind = given.removeprefix(TYPE_PREFIX) if isinstance(given, str) and "specversion" in document else given
    # A suspend has its own `until`, which is meant if the line does not repeat.
    fields = ("at",) if kind == SUSPEND and "every" not in document else WHEN
    when = _when({name: document[name] for name in fields if name in document})
    body = {name: value for name, value in document.items() if name not in fields}
    is_event = isinstance(kind, str) and (kind == "data.partition" or kind.startswith("custom."))
    topic: Topic = "events" if is_event or kind is None else "requests"
    value = _value(body, when.at, 1) if when.every else _as_json(body)
    if topic == "events":
        parse_events(value)
    else:
        _check_request(value)
    last = min(end, end if when.until is None else when.until)
    times = range(when.at, last, when.every) if when.every else range(when.at, when.at + 1)
    if len(times) > REPEATS_MAX:
        raise InvalidInput([Problem("every", f"names {len(times)} instants, at most {REPEATS_MAX} are allowed")])
    return (
        Happening(at, topic, _value(body, at, number) if when.every else value)
        for number, at in enumerate(times, start=1)
    )


def _check_request(value: bytes) -> None:
    """Raises InvalidInput. For an unknown type the hint lists the events as well as the requests."""
    try:
        parse_request(value)
    except InvalidInput as refusal:
        raise InvalidInput(
            [
                replace(each, hint=f"{each.hint}; or of events: data.partition, custom.<name>".removeprefix("; or "))
                if each.field == "type" and each.problem.endswith("is unknown") and not each.hint.startswith("did you")
                else each
                for each in refusal.problems
            ]
        ) from refusal


def filled_in(value: Any, texts: Mapping[str, str]) -> Any:
    """Returns a document with each `${name}` in its texts replaced; unknown names stay unchanged."""
    if isinstance(value, str):
        for name, text in texts.items():
            value = value.replace(f"${{{name}}}", text)
        return value
    if isinstance(value, Mapping):
        return {name: filled_in(inner, texts) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [filled_in(inner, texts) for inner in value]
    return value


def date_of(instant: Instant) -> str:
    """Returns the date of an instant in UTC, such as `2026-03-29`."""
    return as_datetime(instant).date().isoformat()


def _when(fields: Mapping[str, Any]) -> _When:
    try:
        return _When.model_validate(fields)
    except ValidationError as error:
        raise InvalidInput(problems_of(error, _When)) from error


def _value(body: Mapping[str, Any], at: Instant, number: int) -> bytes:
    return _as_json(filled_in(body, {"at": format_instant(at), "date": date_of(at), "number": str(number)}))


def _as_json(body: Any) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()
