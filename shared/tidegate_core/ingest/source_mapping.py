"""One record of a source's topic becomes one event, or one for each element of a list in it; or it is passed as not meant, or refused
with all reasons. Pure: the same for whoever maps it, whenever.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import unquote_to_bytes

from pydantic import ValidationError

from tidegate_core.engine.actor_inputs import LogRecord
from tidegate_core.ingest.source_record import NOT_UTF8, Element, RecordReading, WholeRecord
from tidegate_core.language.events.event_source import EventMapping, SourceSpec, TakenFrom, as_number
from tidegate_core.language.events.events import DataPartitionEvent, one_step
from tidegate_core.language.events.record_filter import UNREADABLE
from tidegate_core.language.values.json_values import MISSING, value_at
from tidegate_core.language.values.problems import InvalidInput, Problem, RefusedRecord, internal_problem, shortened
from tidegate_core.language.values.sizes import whole_of
from tidegate_core.language.values.validation_errors import problems_of

NEEDED: Final = frozenset({"dataset", "partition", "id"})
"""Fields that a record has to say when they are taken from it: without its id a repeat would count again."""
ELEMENTS_MAX: Final = 1_000
"""Events of one record, as of a CDAP notification. Their places have four digits in the cursor's page (`event_reading.py`)."""

_OPEN_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")

Passed: TypeAlias = Literal["tombstone", "where", "empty"]
"""Why a record, or an element of it, is no event and no dead letter."""


class Mapped(NamedTuple):
    """What a record is to a source.

    Attributes:
        events: Each with its place in the record's list; 0 where the record itself is the event.
        passed: How many of it are not meant, by the reason.
    """

    events: tuple[tuple[int, DataPartitionEvent], ...] = ()
    passed: tuple[tuple[Passed, int], ...] = ()


def events_of(spec: SourceSpec, record: LogRecord, origin: str) -> Mapped:
    """Returns what a record is. One element that cannot be mapped refuses the record as a whole: its dead letter is replayed as a whole.

    Args:
        spec: The source.
        record: As it was read.
        origin: `<topic id>/<topic partition>/<offset>`: its identity where the mapping names no other one.

    Raises:
        RefusedRecord: With all reasons; it names the source. Nothing else is raised.
    """
    try:
        return _mapped(spec, record, origin)
    except InvalidInput as refusal:
        raise _refused(spec, refusal) from refusal
    except Exception as error:
        raise _refused(spec, InvalidInput([internal_problem(error)])) from error


def _refused(spec: SourceSpec, refusal: InvalidInput) -> RefusedRecord:
    return RefusedRecord(refusal.problems, refusal.error_class, namespace=spec.namespace, name=spec.name)


def _mapped(spec: SourceSpec, record: LogRecord, origin: str) -> Mapped:
    if spec.ignore == "tombstones" and not record.value:
        return Mapped(passed=(("tombstone", 1),))
    reading = RecordReading(record)
    if spec.each is None:
        return _mapped_whole(spec, reading, origin)
    elements = _elements(spec.each, reading)
    if elements is None:
        return _mapped_without_list(spec, reading)
    if not elements:
        return Mapped(passed=(("empty", 1),))
    meant = [(index, each) for index, each in enumerate(elements) if _is_meant(spec, reading, each)]
    found: list[tuple[int, DataPartitionEvent]] = []
    problems: list[Problem] = []
    for index, element in meant:
        try:
            found.append((index, _event(_Asked(spec, reading, element, index), origin)))
        except InvalidInput as refusal:
            problems += [_placed(each, index) for each in refusal.problems]
    if problems:
        raise InvalidInput(problems)
    passed = len(elements) - len(meant)
    return Mapped(tuple(found), (("where", passed),) if passed else ())


def _mapped_whole(spec: SourceSpec, reading: RecordReading, origin: str) -> Mapped:
    whole = WholeRecord(reading)
    if not _is_meant(spec, reading, whole):
        return Mapped(passed=(("where", 1),))
    return Mapped(((0, _event(_Asked(spec, reading, whole), origin)),))


def _mapped_without_list(spec: SourceSpec, reading: RecordReading) -> Mapped:
    """A record of another kind is asked as an element that has nothing, as S3's test record."""
    if spec.where is not None and not _is_meant(spec, reading, Element(reading, _without_list(reading))):
        return Mapped(passed=(("where", 1),))
    reading.document()  # Raises where it is no JSON.
    problem = f"is taken from the pointer {spec.each}, which the record does not have"
    raise InvalidInput([Problem("each", problem, "where leaves records of another kind out")])


def _without_list(reading: RecordReading) -> Any:
    return UNREADABLE if reading.readable() is UNREADABLE else MISSING


def _elements(each: str, reading: RecordReading) -> list[Element] | None:
    """Returns the elements of the record's list; None where it has none."""
    document = reading.readable()
    given = MISSING if document is UNREADABLE else value_at(document, each)
    if given is MISSING or given is None:
        return None
    if not isinstance(given, list):
        raise InvalidInput([Problem("each", f"is taken from the pointer {each}, which is no list")])
    if len(given) > ELEMENTS_MAX:
        problem = f"is taken from the pointer {each}, which has {len(given)} elements"
        raise InvalidInput([Problem("each", problem, f"at most {ELEMENTS_MAX} are allowed")])
    return [Element(reading, element) for element in given]


def _is_meant(spec: SourceSpec, reading: RecordReading, element: WholeRecord) -> bool:
    holds = True if spec.where is None else spec.where.holds(element)
    if holds is None:
        reading.document()  # Raises: it is no JSON, so that nobody can say whether it is meant.
    return bool(holds)


class _Asked(NamedTuple):
    """One event in the making: what is asked of which record, or of which element of its list.

    Attributes:
        place: Of the element in its list.
    """

    spec: SourceSpec
    reading: RecordReading
    element: WholeRecord
    place: int | None = None


def _placed(problem: Problem, index: int) -> Problem:
    field = f"[{index}].{problem.field}" if problem.field else f"[{index}]"
    return Problem(field, problem.problem, problem.hint)


def _event(asked: _Asked, origin: str) -> DataPartitionEvent:
    mapping = asked.spec.event
    if any(taken.value is None and taken.header is None for _, taken in _fields(mapping)):
        asked.reading.document()  # Raises where it is no JSON: one reason, and not one for each field.
    document: dict[str, Any] = {"type": "data.partition", "namespace": asked.spec.namespace}
    problems: list[Problem] = []
    for label, taken in _fields(mapping):
        value = _value(label, taken, asked)
        if isinstance(value, Problem):
            problems.append(value)
        elif value is not MISSING:
            document[label] = value
    if problems:
        raise InvalidInput(problems)
    document["id"] = f"{asked.spec.name}/{_identity(document.get('id'), asked, origin)}"
    try:
        return DataPartitionEvent.model_validate(document)
    except ValidationError as error:
        raise InvalidInput(problems_of(error, DataPartitionEvent)) from error


def _fields(mapping: EventMapping) -> Iterator[tuple[str, TakenFrom]]:
    for name, field in EventMapping.model_fields.items():
        taken: TakenFrom | None = getattr(mapping, name)
        if taken is not None:
            yield field.alias or name, taken


def _identity(mapped: str | None, asked: _Asked, origin: str) -> str:
    """Returns what tells repeats. An id that the record says once is that of all its elements: each adds its place, or one of them would count."""
    taken = asked.spec.event.id
    if asked.place is None:
        return origin if mapped is None else mapped
    if mapped is None:
        return f"{origin}/{asked.place}"
    return mapped if taken is not None and taken.pointer is not None else f"{one_step(mapped)}/{asked.place}"


def _value(label: str, taken: TakenFrom, asked: _Asked) -> Any | Problem:
    """Returns a field's value, `MISSING`, or what is wrong with it."""
    value = taken.value if taken.value is not None else asked.element.at(taken)
    where = _where(taken, asked)
    if value is NOT_UTF8:
        return Problem(label, f"is taken from {where}, which is not UTF-8")
    if value is MISSING or value is None:
        if label not in NEEDED and taken.map is None:
            return MISSING
        hint = _hint_of_missing(taken, asked.reading)
        return Problem(label, f"is taken from {where}, which the record does not have", hint)
    if value == "" and label == "id":
        # Else all records without one were repeats of each other, and only the first would count.
        return Problem(label, f"is taken from {where}, which is empty")
    value = whole_of(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if label in {"bytes", "rows"} and taken.map is None:
            return value
        value = str(value)
    if not isinstance(value, str):
        return Problem(label, f"is taken from {where}, which is neither a text nor a whole number")
    meaning = _meaning(label, taken, where, value)
    return as_number(label, meaning) if isinstance(meaning, str) else meaning


def _url_decoded(text: str) -> str | None:
    """Returns the text that a URL-encoded text means, with `+` for a space, as S3 encodes the keys in its notifications.

    None if a percent sign begins no escape, or if the bytes are not UTF-8.
    """
    if _OPEN_ESCAPE.search(text):
        return None
    try:
        return unquote_to_bytes(text.replace("+", " ")).decode()
    except UnicodeDecodeError:
        return None


def _meaning(label: str, taken: TakenFrom, where: str, text: str) -> str | Problem:
    """Returns what a text says, decoded and by the map."""
    if taken.decode is not None:
        decoded = _url_decoded(text)
        if decoded is None:
            problem = f'is taken from {where}, whose "{shortened(text)}" is not URL-encoded'
            return Problem(label, problem, "leave decode out")
        text = decoded
    if taken.map is None:
        return text
    meaning = taken.mapped(text)
    if meaning is None:
        problem = f'is taken from {where}, whose "{shortened(text)}" the map does not name'
        return Problem(label, problem, 'name it, or "*" for all others, or leave such records out by where')
    return meaning


def _where(taken: TakenFrom, asked: _Asked) -> str:
    if taken.header is not None:
        return f"the header {taken.header}"
    if taken.record is not None:
        return f"the pointer {taken.record}"
    of = "" if asked.place is None else f"{asked.spec.each}/{asked.place}"
    return f"the pointer {of}{taken.pointer or ''}"


def _hint_of_missing(taken: TakenFrom, reading: RecordReading) -> str:
    pointer = taken.pointer or taken.record or ""
    is_outside = reading.is_opened and pointer.startswith("/data")
    return "pointers lead into the data of a CloudEvent: leave /data out" if is_outside else ""
