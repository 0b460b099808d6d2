"""CloudEvents 1.0 in JSON: which of a record's attributes say what of a request or an event, and structured mode, taken apart.

The readers of records call this. In binary mode the attributes are the record's headers `ce_<name>`; in structured mode they are members of
the value, beside `data`. Both mean the same. What an attribute says is mapped to a field or refused, and never dropped;
extension attributes are the senders' own.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from tidegate_core.language.values.problems import InvalidInput, Problem, shortened

PREFIX: Final = "ce_"
"""Of the headers in binary mode."""
CONTENT_TYPE: Final = "content-type"
SPEC_VERSION: Final = "1.0"
ATTRIBUTES: Final = ("id", "source", "specversion", "type", "datacontenttype", "dataschema", "subject", "time")
"""Those of the specification; all of them are texts."""
READ_HEADERS: Final = tuple(f"{PREFIX}{name}" for name in ATTRIBUTES)

_FORMAT: Final = "application/cloudevents"
_JSON_FORMAT: Final = f"{_FORMAT}+json"
_DATA: Final = ("data", "data_base64")
_NO_SCHEMA: Final = Problem("dataschema", "is no attribute that tidegate keeps", "leave ce_dataschema out")


class Opened(NamedTuple):
    """An event in structured mode, taken apart.

    Attributes:
        attributes: By their headers' names in binary mode, extensions included.
        data: JSON, None where there is none; or what is to be read as JSON.
    """

    attributes: dict[str, str]
    data: Any | bytes


def is_structured(document: Any, content_type: str | None) -> bool:
    """Whether a record's value is a whole CloudEvent. Without a content type `specversion` tells: no document of ours has such a field.

    Raises:
        InvalidInput: It is one, in a form that is not read here.
    """
    media_type = _media_type(content_type)
    if media_type == _JSON_FORMAT:
        return True
    if media_type.startswith(_FORMAT):
        problem = f'has the content type "{shortened(media_type)}"'
        raise InvalidInput([Problem("", problem, f"send each event in a record of its own, as {_JSON_FORMAT}")])
    return isinstance(document, Mapping) and "specversion" in document


def is_json_event(content_type: str | None) -> bool:
    """Whether a record's value is a whole CloudEvent in JSON, as its content type has it."""
    return _media_type(content_type) == _JSON_FORMAT


def _media_type(content_type: str | None) -> str:
    return (content_type or "").partition(";")[0].strip().lower()


def opened(document: Any) -> Opened:
    """Takes a structured event apart.

    Raises:
        InvalidInput: With all problems.
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
    """Returns an attribute as its header has it; extensions may be numbers and flags."""
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
    """Returns the problem of an event of another version of the specification; one that says none is taken for ours."""
    version = attributes.get("ce_specversion", SPEC_VERSION)
    if version == SPEC_VERSION:
        return None
    return Problem("specversion", f'"{shortened(version)}" is not read here', f"send CloudEvents {SPEC_VERSION}")


def as_event(attributes: Mapping[str, str], document: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an event's document with what its attributes say beside id and type.

    Raises:
        InvalidInput: They contradict the document, or say what no such event can.
    """
    problems = [_NO_SCHEMA] if "ce_dataschema" in attributes else []
    merged = dict(document)
    if "ce_time" in attributes:
        # Clients stamp each event themselves; when its data came to be, the data know better.
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
    """Returns a request's document with what its attributes say beside id and type. `ce_time` says nothing: the broker's counts.

    Raises:
        InvalidInput: They say what no request can.
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
    # The specification demands a source of every event: a person who asks through a program is named beside it.
    said = source if actor is None else f"{actor} via {source}" if isinstance(actor, str) else actor
    return {**document, "actor": said}
