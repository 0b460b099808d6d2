"""Maps one record of a source's topic to an event, or to one event for each element of a list in it.

A record can also be skipped, because it is not meant for the source, or refused with all reasons. Event decoding calls it.
Pure: the result depends on source and record alone.
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
"""Fields that a record must have if the source takes them from it. Without an id a repeat would count again."""
ELEMENTS_MAX: Final = 1_000
"""Events of one record, as in a CDAP notification. Their numbers have four digits in the cursor's page (`event_decoding.py`)."""

_OPEN_ESCAPE: Final = re.compile("%(?![0-9A-Fa-f]{2})")

Passed: TypeAlias = Literal["tombstone", "where", "empty"]
"""Reason why a record, or an element of it, is skipped: neither an event nor a dead letter."""


class Mapped(NamedTuple):
    """The result of mapping a record.

    Attributes:
        events: Events, each with the index of its element; 0 if the record itself is the event.
        passed: Number of skipped elements, by reason.
    """

    events: tuple[tuple[int, DataPartitionEvent], ...] = ()
    passed: tuple[tuple[Passed, int], ...] = ()


def events_of(spec: SourceSpec, record: LogRecord, origin: str) -> Mapped:
    """Returns the events of a record. If one element cannot be mapped, the whole record is refused: a replay repeats the whole record, too.

    Args:
        spec: Definition of the source.
        record: The record, as it was read.
        origin: `<topic id>/<topic partition>/<offset>`; identity of the record if the mapping takes no id from it.

    Raises:
        RefusedRecord: All reasons, and the name of the source; no other error is raised.
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
    """Maps a record without the list, such as the test record of S3. The filter sees it as an element without fields."""
    if spec.where is not None and not _is_meant(spec, reading, Element(reading, _without_list(reading))):
        return Mapped(passed=(("where", 1),))
    reading.document()  # Raises if it is not JSON.
    problem = f"is taken from the pointer {spec.each}, which the record does not have"
    raise InvalidInput([Problem("each", problem, "where leaves records of another kind out")])


def _without_list(reading: RecordReading) -> Any:
    return UNREADABLE if reading.readable() is UNREADABLE else MISSING


def _elements(each: str, reading: RecordReading) -> list[Element] | None:
    """Returns the elements of the record's list; None: the record has no list."""
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
        reading.document()  # Raises: it is not JSON, so the filter cannot decide.
    return bool(holds)


class _Asked(NamedTuple):
    """The input for one event: source, record and element.

    Attributes:
        place: Index of the element in its list; None: the record itself is the event.
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
        asked.reading.document()  # Raises if it is not JSON: one reason instead of one for each field.
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
    """Returns the id by which repeats are recognised. If all elements share the record's id, each adds its index; otherwise only one would count."""
    taken = asked.spec.event.id
    if asked.place is None:
        return origin if mapped is None else mapped
    if mapped is None:
        return f"{origin}/{asked.place}"
    return mapped if taken is not None and taken.pointer is not None else f"{one_step(mapped)}/{asked.place}"


def _value(label: str, taken: TakenFrom, asked: _Asked) -> Any | Problem:
    """Returns a field's value, `MISSING`, or the problem with it."""
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
        # All records with an empty id would be repeats of each other, and only the first would count.
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
    """Returns the meaning of a text: decoded, then looked up in the map."""
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
