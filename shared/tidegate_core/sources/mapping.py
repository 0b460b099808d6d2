"""One record of a source's topic becomes one event, or is refused with all reasons. Pure: the same for whoever maps it, whenever."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import from_json

from tidegate_core.decisions.inputs import LogRecord
from tidegate_core.model.events import DataPartitionEvent
from tidegate_core.model.explain import problems_of
from tidegate_core.model.problems import TOO_LARGE, ErrorClass, Problem, RefusedRecord, internal_problem
from tidegate_core.model.records import overgrown_text, without_mark
from tidegate_core.model.request_base import MAX_RECORD_BYTES
from tidegate_core.model.sizes import whole_of
from tidegate_core.model.sources import EventMapping, SourceSpec, TakenFrom, as_number
from tidegate_core.sources.pointers import MISSING, value_at

NEEDED: Final = frozenset({"dataset", "partition", "id"})
"""Fields that a record has to say when they are taken from it: without its id a repeat would count again."""


def event_of(spec: SourceSpec, record: LogRecord, origin: str) -> DataPartitionEvent:
    """Returns the event that a record is.

    Args:
        spec: The source.
        record: As it was read.
        origin: `<topic id>/<topic partition>/<offset>`: its identity where the mapping names no other one.

    Raises:
        RefusedRecord: With all reasons; it names the source. Nothing else is raised.
    """
    try:
        return _event_of(spec, record, origin)
    except RefusedRecord:
        raise
    except Exception as error:
        raise _Reading(spec, record).refusal([internal_problem(error)]) from error


def _event_of(spec: SourceSpec, record: LogRecord, origin: str) -> DataPartitionEvent:
    reading = _Reading(spec, record)
    document: dict[str, Any] = {"type": "data.partition", "namespace": spec.namespace}
    for name, field in EventMapping.model_fields.items():
        taken: TakenFrom | None = getattr(spec.event, name)
        label = field.alias or name
        value = MISSING if taken is None else reading.value_of(label, taken)
        if value is not MISSING:
            document[label] = value
    document["id"] = f"{spec.name}/{document['id']}" if "id" in document else f"{spec.name}/{origin}"
    if reading.problems:
        raise reading.refusal(reading.problems)
    try:
        return DataPartitionEvent.model_validate(document)
    except ValidationError as error:
        raise reading.refusal(problems_of(error, DataPartitionEvent)) from error


class _Reading:
    """One record, read as far as the mapping asks for it."""

    def __init__(self, spec: SourceSpec, record: LogRecord) -> None:
        self._spec = spec
        self._record = record
        self._document: Any = None
        self._is_read = False
        self.problems: list[Problem] = []

    def value_of(self, name: str, taken: TakenFrom) -> Any:
        """Returns a field's value, or `MISSING`; notes what is wrong with it."""
        value, where = self._found(name, taken)
        if value is MISSING or value is None:
            if name in NEEDED and where:
                self.problems.append(Problem(name, f"is taken from {where}, which the record does not have"))
            return MISSING
        if value == "" and name == "id":
            # Else all records without one were repeats of each other, and only the first would count.
            self.problems.append(Problem(name, f"is taken from {where}, which is empty"))
            return MISSING
        value = whole_of(value)
        if isinstance(value, str):
            return as_number(name, value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value if name in {"bytes", "rows"} else str(value)
        self.problems.append(Problem(name, f"is taken from {where}, which is neither a text nor a whole number"))
        return MISSING

    def _found(self, name: str, taken: TakenFrom) -> tuple[Any, str]:
        if taken.value is not None:
            return taken.value, "the source itself"
        if taken.header is not None:
            return self._header(name, taken.header)
        pointer = taken.pointer or ""
        return value_at(self._json(), pointer), f"the pointer {pointer}"

    def _header(self, field: str, name: str) -> tuple[Any, str]:
        where = f"the header {name}"
        values = [value for header, value in self._record.headers if header == name]
        if not values:
            return MISSING, where
        try:
            return values[-1].decode(), where
        except UnicodeDecodeError:
            self.problems.append(Problem(field, f"is taken from {where}, which is not UTF-8"))
            return MISSING, ""

    def _json(self) -> Any:
        """The value as JSON, read once."""
        if not self._is_read:
            self._is_read = True
            value = self._record.value or b""
            if len(value) > MAX_RECORD_BYTES:
                problem = f"{TOO_LARGE}: {len(value)} bytes, at most {MAX_RECORD_BYTES} (1 MiB) are allowed"
                raise self.refusal([Problem("", problem)], too_large=True)
            if overgrown := overgrown_text(value):
                raise self.refusal([overgrown], too_large=True)
            try:
                self._document = from_json(without_mark(value), allow_inf_nan=False)
            except ValueError as error:
                raise self.refusal([Problem("", f"is not JSON, which the pointers need: {error}")]) from error
        return self._document

    def refusal(self, problems: Iterable[Problem], *, too_large: bool = False) -> RefusedRecord:
        error_class: ErrorClass = "too_large" if too_large else "invalid"
        return RefusedRecord(problems, error_class, namespace=self._spec.namespace, name=self._spec.name)
