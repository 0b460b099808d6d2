"""JSON values: fractions that keep their written digits, and JSON pointers (RFC 6901) to one value in a document.

A 64-bit float holds 17 digits, and `19.90` becomes `19.9`. Readers of records and requests call `exactly_read`, so that
message payloads and program texts keep the digits as written. In comparisons and arithmetic the fraction is a float.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final

_JSON_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", re.ASCII)
_quick = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode


class WrittenNumber(float):
    """A float with its written text.

    Attributes:
        written: The text, a valid JSON number.
    """

    __slots__ = ("written",)
    written: str

    def __new__(cls, text: str) -> WrittenNumber:
        number = super().__new__(cls, text)
        number.written = text
        return number


def written_number(text: str) -> float:
    """Returns the number of a text. It keeps the text if the text is valid JSON and differs from the float's own text."""
    number = float(text)
    # A number beyond a float stays infinite and is refused when it is sent: other JSON readers would read it as infinite.
    says_more = repr(number) != text and math.isfinite(number)
    return WrittenNumber(text) if says_more and _JSON_NUMBER.fullmatch(text) else number


def exactly_read(value: bytes, document: Any) -> Any:
    """Returns the document of a JSON text; its fractions keep their written text if their float would lose digits.

    Args:
        value: The text.
        document: The same text, already read. It is returned unchanged if it has no fractions, which is the usual case.
    """
    if b"." not in value and b"e" not in value and b"E" not in value:
        return document
    return json.loads(value, parse_float=written_number) if _holds(document, float) else document


def exact_json(value: Any) -> str:
    """Returns a value as compact JSON, with each `WrittenNumber` as written.

    Raises:
        TypeError: The value contains an object that JSON does not have.
        ValueError: The value contains itself, or a number that JSON does not have.
    """
    text = _quick(value)  # Raises if the value contains itself: the walk below would not end.
    return "".join(_pieces(value)) if _holds(value, WrittenNumber) else text


def holds_written_number(value: Any) -> bool:
    """Whether the value contains a `WrittenNumber`. The value must not contain itself."""
    return _holds(value, WrittenNumber)


def _holds(value: Any, kind: type[float]) -> bool:
    held = [value]
    for each in held:
        if isinstance(each, dict):
            held += each.values()
        elif isinstance(each, list | tuple):
            held += each
        elif isinstance(each, kind):
            return True
    return False


def _pieces(value: Any) -> Iterator[str]:
    match value:
        case WrittenNumber():
            yield value.written
        case dict():
            for place, (name, each) in enumerate(value.items()):
                yield f"{',' if place else '{'}{_quick(str(name))}:"
                yield from _pieces(each)
            yield "}" if value else "{}"
        case list() | tuple():
            for place, each in enumerate(value):
                yield "," if place else "["
                yield from _pieces(each)
            yield "]" if value else "[]"
        case _:
            yield _quick(value)


INDEX_DIGITS_MAX: Final = 7
"""Digits of an index: a record of 1 MiB holds fewer entries than 10^7."""

WRONG_ESCAPE: Final = "has a ~ that is neither ~0 nor ~1"
ESCAPES: Final = "write ~0 for ~, and ~1 for /"
_OPEN_ESCAPE: Final = re.compile("~(?![01])")


class _Missing:
    """Marks a missing value; null is a value."""


MISSING: Final = _Missing()


def value_at(document: Any, pointer: str) -> Any:
    """Returns the value at the pointer, or `MISSING`. The empty pointer leads to the document itself."""
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(name, MISSING)
        elif isinstance(document, list):
            document = document[int(name)] if _is_index(name) and int(name) < len(document) else MISSING
        else:
            return MISSING
    return document


def is_wrongly_escaped(pointer: str) -> bool:
    """Whether a `~` in the pointer is neither `~0` nor `~1`. RFC 6901 forbids it: the pointer would lead to another name."""
    return _OPEN_ESCAPE.search(pointer) is not None


def _is_index(name: str) -> bool:
    """Whether a step is an index: digits without a leading zero, as RFC 6901 requires."""
    plain = name.isascii() and name.isdigit() and len(name) <= INDEX_DIGITS_MAX
    return plain and (name == "0" or not name.startswith("0"))
