"""JSON whose fractions keep the digits that were written: a 64-bit float holds 17 of them, and `19.90` is `19.9` to it.

Whoever reads what users send asks `exactly_read`; a message's payload, and the texts of a program, are made of what that keeps.
A fraction that is compared or computed with is a float like any other.


JSON pointers (RFC 6901): one value inside of a JSON document.
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
    """A fraction with its text.

    Attributes:
        written: The text, as JSON takes it.
    """

    __slots__ = ("written",)
    written: str

    def __new__(cls, text: str) -> WrittenNumber:
        number = super().__new__(cls, text)
        number.written = text
        return number


def written_number(text: str) -> float:
    """Returns the number of a text; with the text where that is JSON's and not what the number alone would be written as."""
    number = float(text)
    # What no float holds stays infinite, and is refused where it is sent: other readers would take it for that.
    says_more = repr(number) != text and math.isfinite(number)
    return WrittenNumber(text) if says_more and _JSON_NUMBER.fullmatch(text) else number


def exactly_read(value: bytes, document: Any) -> Any:
    """Returns the document of a JSON text, with the text of each fraction that its float does not say.

    Args:
        value: The text.
        document: What was read from it, which is JSON therefore: given back where it has no fractions, as nearly always.
    """
    if b"." not in value and b"e" not in value and b"E" not in value:
        return document
    return json.loads(value, parse_float=written_number) if _holds(document, float) else document


def exact_json(value: Any) -> str:
    """Returns a value as compact JSON, with each `WrittenNumber` as it was written.

    Raises:
        TypeError: It holds what is nothing of JSON.
        ValueError: It holds a number that is none of JSON, or itself.
    """
    text = _quick(value)  # Before the walk, which would not end in what holds itself.
    return "".join(_pieces(value)) if _holds(value, WrittenNumber) else text


def holds_written_number(value: Any) -> bool:
    """Whether a number within has a text of its own; of a value that does not hold itself."""
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
"""More entries than a record of 1 MiB can hold."""


WRONG_ESCAPE: Final = "has a ~ that is neither ~0 nor ~1"
ESCAPES: Final = "write ~0 for ~, and ~1 for /"
_OPEN_ESCAPE: Final = re.compile("~(?![01])")


class _Missing:
    """Not even null."""


MISSING: Final = _Missing()


def value_at(document: Any, pointer: str) -> Any:
    """Returns what the pointer leads to, or `MISSING`. The empty pointer is the document itself."""
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
    """Whether a `~` stands for nothing in it, which RFC 6901 forbids: it leads to another name than was meant."""
    return _OPEN_ESCAPE.search(pointer) is not None


def _is_index(name: str) -> bool:
    """Digits without a leading zero, as the RFC wants them."""
    plain = name.isascii() and name.isdigit() and len(name) <= INDEX_DIGITS_MAX
    return plain and (name == "0" or not name.startswith("0"))
