"""Decodes a record of a topic into one document. A record is plain JSON or a CloudEvent in binary or structured mode.

In binary mode the envelope, the attributes of the CloudEvent, is in the headers; in structured mode it encloses the data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from pydantic_core import from_json

from tidegate_core.language.formats.cloud_events import (
    CONTENT_TYPE,
    PREFIX,
    READ_HEADERS,
    is_structured,
    opened,
    version_problem,
)
from tidegate_core.language.requests.requests import MAX_RECORD_BYTES
from tidegate_core.language.values.json_values import exactly_read
from tidegate_core.language.values.names import FREE_TEXT_PATTERN
from tidegate_core.language.values.problems import (
    MAX_PROBLEMS,
    TOO_LARGE,
    ErrorClass,
    InvalidInput,
    Problem,
    RefusedRecord,
    shortened,
)

Headers: TypeAlias = Mapping[str, bytes | str | None] | Sequence[tuple[str, bytes | str | None]] | None
"""Headers in the forms of Kafka clients. If several have the same name, the last one counts."""

TYPE_PREFIX = "tidegate."
"""Prefix of tidegate's types in `ce_type`."""

MAX_CONTAINERS = 131_072
"""Opening brackets of a record, including those in texts. The largest payload, 256 KiB, holds no more lists and objects. A
record of 1 MiB could have 350,000, which would cost a reader half a second."""
LONGEST_NUMBER_DIGITS = 308
"""Digits of a whole number. All such numbers are below the largest 64-bit float, 1.8e308."""

_CONTAINERS = (dict, list)
_DIGITS_ALIKE = bytes(48 if 48 <= each <= 57 else 32 for each in range(256))
_LONG_NUMBER = b"0" * (LONGEST_NUMBER_DIGITS + 1)
"""Pattern of a number that is too long, in a text whose digits are all replaced by 0. A regular expression would take ten times as
long, half a second for a record full of numbers of nearly this length."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
HEAD_BYTES = 16_384
"""Beginning of an oversized record that is read to find its sender's id; senders usually write it first."""
_PLACE = re.compile(r"at line (\d+) column (\d+)")
_COLON_APART = re.compile(rb"[ \t\n\r]:")
_ID = re.compile(FREE_TEXT_PATTERN)
_ENVELOPE = {"ce_id": "id", "ce_type": "type"}


class ReadRecord(NamedTuple):
    """A decoded record. Its document may still be invalid.

    Attributes:
        document: Document of the record, with the id and type of its envelope.
        headers: Attributes of the envelope as `ce_<name>`, in both modes; empty for plain JSON.
    """

    document: dict[str, Any]
    headers: dict[str, str]


def read_record(value: bytes | None, headers: Headers) -> ReadRecord:
    """Returns a record's document, merged with its CloudEvents envelope.

    Raises:
        RefusedRecord: The record is too large, no JSON, no object or repeats a field; or its envelope is no text or
            contradicts the data.
    """
    envelope = _envelope(headers) if headers else {}
    value = None if value is None else without_mark(value)
    if value is not None and len(value) > MAX_RECORD_BYTES:
        raise _too_large(value, envelope)
    if value is not None and (problem := overgrown_text(value)):
        raise _refused_unread([problem], "too_large", _said_in(value[:HEAD_BYTES]), envelope)
    try:
        document = from_json(value or b"", allow_inf_nan=False)
    except ValueError as error:
        problem = _unreadable(value, error)
        raise _refused_unread([problem], "unparsable", _said_before(value or b"", error), envelope) from error
    if not isinstance(document, dict):
        hint = "send each request or event in a separate record" if isinstance(document, list) else ""
        problem = Problem("", "is JSON, but not an object", hint)
        raise RefusedRecord([problem], "unparsable", request_id=_own_id(envelope))
    if problem := unholdable_number(value or b""):
        raise _wrong_text(document, [problem], (), envelope)
    if repeated := repeated_names(value or b"", document):
        raise _ambiguous(document, repeated, envelope)
    if headers and (unreadable := _not_utf8(headers)):
        raise _wrong_text(document, unreadable, (), envelope)
    return _out_of_its_envelope(exactly_read(value or b"", document), envelope)


def _out_of_its_envelope(document: dict[str, Any], envelope: dict[str, str]) -> ReadRecord:
    try:
        if is_structured(document, envelope.get(CONTENT_TYPE)):
            return _opened(document, envelope)
    except RefusedRecord:
        raise  # The data were refused.
    except InvalidInput as refusal:
        raise _wrong_text(document, refusal.problems, (), envelope) from refusal
    return ReadRecord(_with_envelope(document, envelope) if envelope else document, envelope)


def _opened(document: dict[str, Any], outside: Mapping[str, str]) -> ReadRecord:
    """Returns the record inside a CloudEvent in structured mode. Raises InvalidInput, or RefusedRecord for its data."""
    attributes, data = opened(document)
    headers = {name: text for name, text in outside.items() if name != CONTENT_TYPE}
    twice = [name for name, text in headers.items() if attributes.get(name, text) != text]
    if twice:
        problems = [Problem(name.removeprefix(PREFIX), f"differs from the header {name}") for name in twice]
        raise InvalidInput(problems)
    envelope = headers | attributes
    if isinstance(data, bytes):
        return read_record(data, envelope)
    if not isinstance(data, dict):
        raise InvalidInput([Problem("data", "is missing" if data is None else "is JSON, but not an object")])
    if "specversion" in data:
        raise InvalidInput([Problem("data", "is a CloudEvent itself", "send it alone")])
    return ReadRecord(_with_envelope(data, envelope), envelope)


def repeated_names(value: bytes, document: Any) -> tuple[str, ...]:
    """Returns the names that occur twice in one object of a JSON text. `document` is the text as read by `from_json`.

    Parsers keep the last value and drop the others, so the sender's intention is unknown.
    """
    if isinstance(document, dict | list) and _each_name_once(value, document):
        return ()
    found: dict[str, None] = {}

    def look(pairs: list[tuple[str, Any]]) -> None:
        if len(pairs) > 1 and len(dict(pairs)) < len(pairs):
            seen: set[str] = set()
            for name, _ in pairs:
                if name in seen:
                    found[name] = None
                seen.add(name)

    json.loads(value, object_pairs_hook=look)
    return tuple(found)


def _each_name_once(value: bytes, document: Any) -> bool:
    """Whether a JSON text certainly repeats no name in an object. For most texts it costs a tenth of the exact search.

    A colon follows each name. The parser drops one of two equal names, so a repeated name leaves fewer names than colons
    outside of texts.

    Args:
        value: The text.
        document: Object or list that `from_json` read from the text.
    """
    names, objects = 0, [document]
    for each in objects:
        held = each
        if isinstance(each, dict):
            names += len(each)
            held = each.values()
        for inner in held:
            if isinstance(inner, _CONTAINERS):
                objects.append(inner)  # noqa: PERF401 - a list for each of them would cost more than the check
    if b"\\" not in value and names == value.count(b'":') and not _has_colons_apart(value, names):
        return True  # Only names end with `":`, because a quotation mark within a text has a backslash before it.
    if b"\\u" in value:
        return False  # An escape can be a colon, which would be counted in the decoded text only.
    return names == value.count(b":") - sum(map(_colons_of, objects))


def _has_colons_apart(value: bytes, names: int) -> bool:
    """Whether a colon may follow white space, so that the end of its name is not counted; `names` ends are counted."""
    return names != value.count(b":") and _COLON_APART.search(value) is not None


def _colons_of(held: dict[str, Any] | list[Any]) -> int:
    """Returns the number of colons in the names and texts of an object, or in the texts of a list."""
    texts = [*held, *held.values()] if isinstance(held, dict) else held
    return sum(text.count(":") for text in texts if isinstance(text, str))


def overgrown_text(value: bytes) -> Problem | None:
    """Returns a problem if a text has so many lists and objects that it would be too costly to read."""
    if len(value) <= MAX_CONTAINERS or value.count(b"[") + value.count(b"{") <= MAX_CONTAINERS:
        return None
    problem = f"{TOO_LARGE}: more than {MAX_CONTAINERS} lists and objects"
    return Problem("", problem, "send a pointer to it, such as an object's address")


def unholdable_number(value: bytes) -> Problem | None:
    """Returns a problem if a text has a whole number that other JSON readers, with 64-bit floats, would read as infinite.

    Python has exact whole numbers, so only this check finds them. Fractions and powers of ten of that size are refused when
    they are stored.
    """
    if len(value) <= LONGEST_NUMBER_DIGITS or _LONG_NUMBER not in value.translate(_DIGITS_ALIKE):
        return None
    found: list[int] = []

    def look(digits: str) -> None:
        if len(digits.lstrip("-")) > LONGEST_NUMBER_DIGITS:
            found.append(len(digits.lstrip("-")))

    json.loads(value, parse_int=look)  # Finds numbers only, not digits within texts.
    if not found:
        return None
    problem = f"has a number of {max(found)} digits, at most {LONGEST_NUMBER_DIGITS} are allowed"
    return Problem("", problem, "write it as a text")


def repetition(names: Sequence[str]) -> list[Problem]:
    """Returns a problem for each repeated name."""
    return [Problem("", f'has the field "{shortened(name)}" twice in one object', "keep one") for name in names]


def _ambiguous(document: Mapping[str, Any], names: Sequence[str], envelope: Mapping[str, str]) -> RefusedRecord:
    return _wrong_text(document, repetition(names[:MAX_PROBLEMS]), names, envelope)


def _wrong_text(
    document: Mapping[str, Any], problems: Sequence[Problem], repeated: Collection[str], envelope: Mapping[str, str]
) -> RefusedRecord:
    """Returns a refusal with the id, namespace and name of the record, except fields that it repeats."""
    unclear = frozenset(repeated)
    said = {field: value for field, value in document.items() if field not in unclear}
    return _refused_unread(problems, "invalid", said, envelope)


def _too_large(value: bytes, envelope: Mapping[str, str]) -> RefusedRecord:
    problem = Problem("", f"{TOO_LARGE}: {len(value)} bytes, at most {MAX_RECORD_BYTES} (1 MiB) are allowed")
    begin = value[:MAX_RECORD_BYTES]
    # The beginning is read, as much as of any record, so that its sender gets an answer.
    return _refused_unread([problem], "too_large", _said_in(begin), envelope)


def without_mark(value: bytes) -> bytes:
    """Returns a JSON text without the byte order mark that some writers add."""
    return value.removeprefix(_BYTE_ORDER_MARK)


def _said_before(value: bytes, error: ValueError) -> dict[str, Any]:
    """Returns the fields before the place where a text stops being JSON, so that its sender gets an answer."""
    place = _PLACE.search(str(error))
    if place is None:
        return {}
    lines = value.split(b"\n", int(place[1]))
    # The parser reports where it stopped. The wrong character may be the one before.
    read = sum(len(line) + 1 for line in lines[: int(place[1]) - 1]) + int(place[2])
    return next((said for cut in range(3) if (said := _said_in(value[: max(0, read - cut)]))), {})


def _said_in(begin: bytes) -> dict[str, Any]:
    """Returns the readable text fields from the beginning of a JSON text."""
    try:
        document = None if overgrown_text(begin) else from_json(begin, allow_partial=True)
    except ValueError:
        return {}
    # A number at the end may be incomplete, so only texts are returned.
    return (
        {name: said for name, said in document.items() if isinstance(said, str)} if isinstance(document, dict) else {}
    )


def _refused_unread(
    problems: Sequence[Problem], error_class: ErrorClass, said: Mapping[str, Any], envelope: Mapping[str, str]
) -> RefusedRecord:
    return RefusedRecord(
        problems,
        error_class,
        request_id=_own_id(envelope) or sender_id(said),
        type=_own_type(envelope) or read_text(said, "type"),
        namespace=read_id(said, "namespace") or read_id(said, "clientId"),
        name=read_id(said, "name"),
        key=read_id(said, "key") or read_id(said, "scheduleKey"),
    )


def sender_id(document: Mapping[str, Any]) -> str | None:
    """Returns the id for the answer to a refused request: its field `id`, also if it is a number."""
    found = document.get("id")
    return read_id({"id": str(found)} if type(found) is int else document, "id")


def read_id(document: Mapping[str, Any], name: str) -> str | None:
    """Returns a field if it is a valid id: a text that is neither too long nor has invisible characters."""
    found = read_text(document, name)
    return found if found is not None and _ID.fullmatch(found) else None


def read_text(document: Mapping[str, Any], name: str) -> str | None:
    """Returns a field if it is a text; otherwise None."""
    found = document.get(name)
    return found if isinstance(found, str) else None


def _envelope(headers: Headers) -> dict[str, str]:
    return {name: text for name, text in _envelope_texts(headers).items() if text is not None}


def _not_utf8(headers: Headers) -> list[Problem]:
    """Returns a problem for each header of an envelope that is not UTF-8. Replaced bytes could make two ids equal."""
    texts = _envelope_texts(headers)
    wrong = [name for name in READ_HEADERS if texts.get(name, "") is None]
    return [Problem("", f"has the header {name}, which is not UTF-8") for name in wrong]


def _envelope_texts(headers: Headers) -> dict[str, str | None]:
    """Returns the headers of an envelope by name in lower case; the value is None if a header is not UTF-8."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
    texts: dict[str, str | None] = {}
    for name, value in pairs:
        lowered = name.lower()
        if value is not None and (lowered.startswith(PREFIX) or lowered == CONTENT_TYPE):
            texts[lowered] = value if isinstance(value, str) else _text_of(value)
    return texts


def _text_of(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None


def _own_id(envelope: Mapping[str, str]) -> str | None:
    return read_id(envelope, "ce_id")


def _own_type(envelope: Mapping[str, str]) -> str | None:
    kind = envelope.get("ce_type")
    return None if kind is None else kind.removeprefix(TYPE_PREFIX)


def _unreadable(value: bytes | None, error: ValueError) -> Problem:
    if not value:
        return Problem("", "is empty", "a record's value is a JSON object")
    return Problem("", no_json(error))


def no_json(error: ValueError) -> str:
    """Returns the end of a sentence about a body or record that `from_json` could not read."""
    # The parser stops at 200 levels, although the text may be valid JSON.
    if str(error).startswith("recursion limit"):
        return "is nested too deeply"
    return f"is not JSON: {error}"


def _with_envelope(document: dict[str, Any], envelope: Mapping[str, str]) -> dict[str, Any]:
    if problem := version_problem(envelope):
        raise _refused_unread([problem], "invalid", document, envelope)
    kind = envelope.get("ce_type")
    if kind is not None and not kind.startswith(TYPE_PREFIX):
        problem = Problem("type", f'ce_type "{kind[:64]}" is not one of ours', f"they begin with {TYPE_PREFIX}")
        raise _refused_unread([problem], "invalid", document, envelope)
    merged = dict(document)
    for header, field in _ENVELOPE.items():
        if header not in envelope:
            continue
        said = envelope[header] if field == "id" else envelope[header].removeprefix(TYPE_PREFIX)
        if merged.setdefault(field, said) != said:
            problem = Problem(field, f"differs from the header {header}", "leave one of them out")
            raise _refused_unread([problem], "invalid", document, envelope)
    return merged
