"""Parses schedules, sources, requests and events into models, and reports all problems at once.

Nodes, API and command line call these functions and none below them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeAlias, TypeVar

from pydantic import ValidationError

from tidegate_core.language.definitions.schedule_spec import ScheduleSpec
from tidegate_core.language.definitions.schedule_validation import fitting_problems
from tidegate_core.language.events.event_source import SourceSpec, vain_comparisons, wrong_escapes
from tidegate_core.language.events.events import CustomEvent, DataPartitionEvent, Event
from tidegate_core.language.formats.cdap_notification import as_our_events, is_cdap_notification
from tidegate_core.language.formats.clockwork_record import CLOCKWORK_FIELDS, as_message_send, is_clockwork_schedule
from tidegate_core.language.formats.cloud_events import as_event, as_request
from tidegate_core.language.formats.record_decoding import (
    Headers,
    ReadRecord,
    read_id,
    read_record,
    read_text,
    sender_id,
)
from tidegate_core.language.requests.requests import (
    PLANNED_TYPES,
    REQUEST_TYPES,
    SCHEDULE_BYTES_MAX,
    MessageSend,
    Request,
    ScheduleApply,
    SourceApply,
)
from tidegate_core.language.values.document import PLATFORM, Document, overgrown
from tidegate_core.language.values.problems import (
    TOO_LARGE,
    ErrorClass,
    InvalidInput,
    Problem,
    RefusedRecord,
    did_you_mean,
    internal_problem,
)
from tidegate_core.language.values.validation_errors import problems_of

_SCHEDULE_PLACEHOLDER = ScheduleSpec.model_validate(ScheduleSpec.EXAMPLE)
"""Replaces an invalid spec, so that the problems of its request are found in the same pass."""
_SOURCE_PLACEHOLDER = SourceSpec.model_validate(SourceSpec.EXAMPLE)
_EVENT_TYPES = ("data.partition", "custom.<name>")

_Model = TypeVar("_Model", bound=Document)
_Applying: TypeAlias = ScheduleApply | SourceApply


class _ParseSpec(Protocol):
    def __call__(self, document: Mapping[str, Any], *, namespace: str | None, name: str | None) -> Document: ...


def parse_schedule(
    document: Mapping[str, Any], *, namespace: str | None = None, name: str | None = None
) -> ScheduleSpec:
    """Returns the schedule of a document that was read from YAML or JSON.

    Args:
        document: Fields of the schedule.
        namespace: Namespace of the request with the schedule. The document may leave its namespace out, but not contradict.
        name: Name in the request; the same rule applies.

    Raises:
        InvalidInput: The document is invalid. The error has all problems that do not follow from others.
    """
    if problem := overgrown(document):
        raise InvalidInput([Problem("", problem)])
    merged, problems = _with_identity(dict(document), namespace, name)
    try:
        spec = ScheduleSpec.model_validate(merged)
    except ValidationError as error:
        raise InvalidInput([*problems, *problems_of(error, ScheduleSpec)]) from error
    problems += fitting_problems(spec)
    if problems:
        raise InvalidInput(problems)
    return spec


def parse_source(document: Mapping[str, Any], *, namespace: str | None = None, name: str | None = None) -> SourceSpec:
    """Returns the source of a document; arguments and errors are as for `parse_schedule`."""
    merged, problems = _with_identity(dict(document), namespace, name)
    try:
        spec = SourceSpec.model_validate(merged)
    except ValidationError as error:
        raise InvalidInput([*problems, *problems_of(error, SourceSpec)]) from error
    # These checks are not in the model: a stored source that was accepted before them must stay readable.
    problems += [*wrong_escapes(spec), *vain_comparisons(spec)]
    if problems:
        raise InvalidInput(problems)
    return spec


def _with_identity(
    document: dict[str, Any], namespace: str | None, name: str | None
) -> tuple[dict[str, Any], list[Problem]]:
    problems: list[Problem] = []
    for field, outside in (("namespace", namespace), ("name", name)):
        if outside is not None and document.setdefault(field, outside) != outside:
            problems.append(Problem(field, f'differs from the request\'s, "{outside[:64]}"', "leave one of them out"))
    return document, problems


def parse_request(value: bytes | None, headers: Headers = None) -> Request:
    """Returns the request of a record on `tidegate.requests`.

    Args:
        value: Value of the record.
        headers: Headers of the record; they may contain attributes of a CloudEvent.

    Raises:
        RefusedRecord: The record is refused. The error has all problems, and the request's id, namespace and name if they are
            readable. No other error is raised, so that no record can stop its reader.
    """
    document: dict[str, Any] = {}
    try:
        record = read_record(value, headers)
        document = record.document
        return _request(record)
    except RefusedRecord:
        raise
    except Exception as error:
        raise _refusal(document, [internal_problem(error)]) from error


def _request(record: ReadRecord) -> Request:
    document = record.document
    if is_clockwork_schedule(document):
        return _clockwork_request(record)
    document = _with_attributes(record, document, as_request)
    kind = document.get("type")
    model = REQUEST_TYPES.get(kind) if isinstance(kind, str) else None
    if model is None:
        raise _refusal(document, [_unknown_type(document, (*REQUEST_TYPES,))])
    if model is ScheduleApply:
        return _apply(document, ScheduleApply, parse_schedule, _SCHEDULE_PLACEHOLDER)
    if model is SourceApply:
        return _apply(document, SourceApply, parse_source, _SOURCE_PLACEHOLDER)
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise _refusal(document, problems_of(error, model)) from error


def _clockwork_request(record: ReadRecord) -> MessageSend:
    document = record.document
    try:
        return MessageSend.model_validate(_with_attributes(record, as_message_send(document), as_request))
    except RefusedRecord:
        raise
    except InvalidInput as refusal:
        raise _refusal(document, refusal.problems) from refusal
    except ValidationError as error:
        problems = [
            Problem(CLOCKWORK_FIELDS.get(problem.field, problem.field), problem.problem, problem.hint)
            for problem in problems_of(error, MessageSend)
        ]
        raise _refusal(document, problems) from error


def _apply(document: dict[str, Any], model: type[_Applying], parse: _ParseSpec, placeholder: Document) -> _Applying:
    given = document.get("spec")
    # The namespace and the name may be in the request, in its spec, or in both.
    inner = given if isinstance(given, dict) else {}
    outer = {**{field: inner[field] for field in ("namespace", "name") if field in inner}, **document}
    problems: list[Problem] = []
    spec = placeholder
    if isinstance(given, dict):
        try:
            spec = parse(given, namespace=read_text(outer, "namespace"), name=read_text(outer, "name"))
        except InvalidInput as refusal:
            problems += refusal.problems
    elif "spec" in document:
        problems.append(Problem("spec", "is not a mapping of fields"))
    envelope = {**outer, "spec": spec} if "spec" in document else outer
    try:
        request = model.model_validate(envelope)
    except ValidationError as error:
        raise _refusal(outer, dict.fromkeys([*problems, *problems_of(error, model)])) from error
    if not problems and isinstance(request, ScheduleApply):
        problems += _too_large_to_keep(request)
    if problems:
        raise _refusal(outer, problems)
    return request


def _too_large_to_keep(request: ScheduleApply) -> list[Problem]:
    """Returns a problem if a request is too large to store. The check is here so that dry runs and batches report it as well."""
    size = len(request.to_json())
    if size <= SCHEDULE_BYTES_MAX:
        return []
    problem = f"{TOO_LARGE}: the apply has {size} bytes, at most {SCHEDULE_BYTES_MAX} (64 KiB) are allowed"
    return [Problem("spec", problem, "let the program read what is large")]


def parse_events(value: bytes | None, headers: Headers = None) -> tuple[Event, ...]:
    """Returns the events of a record on `tidegate.events`: one, or one per data partition of a CDAP notification.

    Raises:
        RefusedRecord: The record is refused. The error has all problems, and the event's id and namespace if they are
            readable. No other error is raised.
    """
    document: dict[str, Any] = {}
    try:
        record = read_record(value, headers)
        document = record.document
        return _events(record)
    except RefusedRecord:
        raise
    except Exception as error:
        raise _refusal(document, [internal_problem(error)]) from error


def _events(record: ReadRecord) -> tuple[Event, ...]:
    document = record.document
    if is_cdap_notification(document):
        try:
            documents = as_our_events(document)
        except InvalidInput as refusal:
            raise _refusal(document, refusal.problems) from refusal
        return tuple(_event(DataPartitionEvent, _with_attributes(record, each, as_event)) for each in documents)
    document = _with_attributes(record, document, as_event)
    kind = document.get("type")
    if kind == "data.partition":
        return (_event(DataPartitionEvent, document),)
    if isinstance(kind, str) and kind.startswith("custom."):
        return (_event(CustomEvent, document),)
    raise _refusal(document, [_unknown_type(document, _EVENT_TYPES)])


def _with_attributes(
    record: ReadRecord,
    document: dict[str, Any],
    merged: Callable[[Mapping[str, str], Mapping[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """Returns the document with the values of its envelope's attributes other than id and type."""
    if not record.headers:
        return document
    try:
        return merged(record.headers, document)
    except InvalidInput as refusal:
        raise _refusal(document, refusal.problems) from refusal


def _event(model: type[_Model], document: Mapping[str, Any]) -> _Model:
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise _refusal(document, problems_of(error, model)) from error


def _unknown_type(document: Mapping[str, Any], known: tuple[str, ...]) -> Problem:
    kind = document.get("type")
    if kind is None:
        return Problem("type", "is missing", f"one of: {', '.join(known)}")
    if not isinstance(kind, str):
        return Problem("type", "is not a text", f"one of: {', '.join(known)}")
    entry = PLANNED_TYPES.get(kind)
    if entry is not None:
        return Problem("type", f'"{kind}" {entry.problem}', entry.hint)
    if kind.startswith(("object.", "control.")):
        return Problem("type", f'"{kind[:64]}" is planned for {PLATFORM}')
    return Problem("type", f'"{kind[:64]}" is unknown', did_you_mean(kind, known))


def _refusal(document: Mapping[str, Any], problems: Any) -> RefusedRecord:
    found = tuple(problems)
    too_large = any(problem.problem.startswith(TOO_LARGE) for problem in found)
    error_class: ErrorClass = "too_large" if too_large else "invalid"
    return RefusedRecord(
        found,
        error_class,
        request_id=sender_id(document),
        type=read_text(document, "type"),
        namespace=read_id(document, "namespace") or read_id(document, "clientId"),
        name=read_id(document, "name"),
        key=read_id(document, "key") or read_id(document, "scheduleKey"),
    )
