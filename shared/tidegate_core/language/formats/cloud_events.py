"""CloudEvents 1.0 in JSON: reads structured mode, and maps attributes to fields of a request or an event.

Readers of records call this. In binary mode the attributes are the record's headers `ce_<name>`; in structured mode they are
members of the value next to `data`. Both modes mean the same. Each attribute of the specification is mapped to a field or
refused, never dropped; extension attributes are ignored.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tidegate_core.language.values.problems import InvalidInput, Problem, shortened

PREFIX: Final = "ce_"
"""Prefix of the headers in binary mode."""
CONTENT_TYPE: Final = "content-type"
SPEC_VERSION: Final = "1.0"
ATTRIBUTES: Final = ("id", "source", "specversion", "type", "datacontenttype", "dataschema", "subject", "time")
"""Attributes of the specification; all of them are texts."""
READ_HEADERS: Final = tuple(f"{PREFIX}{name}" for name in ATTRIBUTES)

_FORMAT: Final = "application/cloudevents"
_JSON_FORMAT: Final = f"{_FORMAT}+json"
_DATA: Final = ("data", "data_base64")
_NO_SCHEMA: Final = Problem("dataschema", "is no attribute that tidegate keeps", "leave ce_dataschema out")


class Opened(NamedTuple):
    """Parts of an event in structured mode.

    Attributes:
        attributes: Attributes by their header names in binary mode, with extensions.
        data: Data as JSON, or bytes of a JSON text; None if there are none.
    """

    attributes: dict[str, str]
    data: Any | bytes


def is_structured(document: Any, content_type: str | None) -> bool:
    """Whether a record's value is a whole CloudEvent.

    Without a content type the field `specversion` decides: no document of tidegate has a field of that name.

    Raises:
        InvalidInput: The value is a CloudEvent in a format that tidegate does not read.
    """
    media_type = _media_type(content_type)
    if media_type == _JSON_FORMAT:
        return True
    if media_type.startswith(_FORMAT):
        problem = f'has the content type "{shortened(media_type)}"'
        raise InvalidInput([Problem("", problem, f"send each event in a separate record, as {_JSON_FORMAT}")])
    return isinstance(document, Mapping) and "specversion" in document


def is_json_event(content_type: str | None) -> bool:
    """Whether the content type says that the value is a whole CloudEvent in JSON."""
    return _media_type(content_type) == _JSON_FORMAT


def _media_type(content_type: str | None) -> str:
    return (content_type or "").partition(";")[0].strip().lower()


def opened(document: Any) -> Opened:
    """Returns the parts of an event in structured mode.

    Raises:
        InvalidInput: The event is invalid; the error has all problems.
    """
    if not isinstance(document, Mapping):
        raise InvalidInput([Problem("", "is JSON, but no CloudEvent: not an object")])
    attributes: dict[str, str] = {}
    problems: list[Problem] = []
    for name, value in document.items():
        if name in _DATA or value is None:
            continue
        text = _text_of(name, value)
        if text is None:
            problems.append(Problem(shortened(name), "is no attribute of a CloudEvent: not a text", "put it into data"))
        else:
            attributes[f"{PREFIX}{name.lower()}"] = text
    if all(document.get(name) is not None for name in _DATA):
        problems.append(Problem("data_base64", "must not be given with data", "keep one"))
    if problems:
        raise InvalidInput(problems)
    return Opened(attributes, _data_of(document))


def _text_of(name: str, value: Any) -> str | None:
    """Returns an attribute as the text of its header, or None if it is no text. Extensions may be numbers or booleans."""
    if isinstance(value, str):
        return value
    if name in ATTRIBUTES or not isinstance(value, int):
        return None
    return str(value).lower()


def _data_of(document: Mapping[str, Any]) -> Any | bytes:
    given = document.get("data_base64")
    if given is None:
        return document.get("data")
    try:
        return base64.b64decode(given, validate=True)
    except (TypeError, ValueError, binascii.Error) as error:
        raise InvalidInput([Problem("data_base64", "is not base64")]) from error


def version_problem(attributes: Mapping[str, str]) -> Problem | None:
    """Returns a problem if the event has another version of the specification. An event without a version is accepted."""
    version = attributes.get("ce_specversion", SPEC_VERSION)
    if version == SPEC_VERSION:
        return None
    return Problem("specversion", f'"{shortened(version)}" is not read here', f"send CloudEvents {SPEC_VERSION}")


def as_event(attributes: Mapping[str, str], document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an event's document with the values of its attributes other than id and type.

    Raises:
        InvalidInput: An attribute contradicts the document or has no field in such an event.
    """
    problems = [_NO_SCHEMA] if "ce_dataschema" in attributes else []
    merged = dict(document)
    if "ce_time" in attributes:
        # Client libraries set `time` at each event. An `event_time` in the data is more exact.
        merged.setdefault("event_time", attributes["ce_time"])
    for name, field in (("ce_source", "producer"), ("ce_subject", "subject")):
        if name not in attributes:
            continue
        if field == "subject" and document.get("type") == "data.partition":
            problem = f'ce_subject says "{shortened(attributes[name])}", and a data partition has no subject'
            problems.append(Problem(field, problem, "leave it out, or say it as partition in the data"))
        elif merged.get(field) is None:
            merged[field] = attributes[name]
        elif merged[field] != attributes[name]:
            problems.append(Problem(field, f"differs from {name}", "leave it out of the data"))
    if problems:
        raise InvalidInput(problems)
    return merged


def as_request(attributes: Mapping[str, str], document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a request's document with the values of its attributes other than id and type.

    `ce_time` is ignored: the broker's append time counts.

    Raises:
        InvalidInput: An attribute has no field in a request.
    """
    problems = [_NO_SCHEMA] if "ce_dataschema" in attributes else []
    if "ce_subject" in attributes:
        problem = f'ce_subject says "{shortened(attributes["ce_subject"])}", and a request has no subject'
        problems.append(Problem("subject", problem, "leave it out, or say it as name or key in the data"))
    if problems:
        raise InvalidInput(problems)
    source, actor = attributes.get("ce_source"), document.get("actor")
    if source is None or actor == source:
        return dict(document)
    # Every CloudEvent has a source. If the data name a person as well, `actor` names both.
    said = source if actor is None else f"{actor} via {source}" if isinstance(actor, str) else actor
    return {**document, "actor": said}
