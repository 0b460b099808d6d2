"""Sizes in whole bytes, written `100GB` (decimal units) or `64MiB` (binary units)."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, WithJsonSchema

from tidegate_core.language.values.problems import refused

EXACT_FLOAT_MAX = 2**53
"""Largest whole number up to which a float is exact."""
LARGEST_SIZE_BYTES = 2**63 - 1
"""Largest signed 64-bit number, the limit of counters in stores and in Spark."""

_UNITS: dict[str, int] = {
    **{f"{prefix}iB": 1024**power for power, prefix in enumerate("KMGTPE", start=1)},
    **{f"{prefix}B": 1000**power for power, prefix in enumerate("KMGTPE", start=1)},
    "B": 1,
}
_SIZE = re.compile(r"(\d{1,19})\s?([KMGTPE]i?B|B)", re.ASCII)


def parse_size(text: str) -> int:
    """Returns the bytes of a size's text.

    Raises:
        ValueError: The text is no size, or the size exceeds 63 bits.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError("is not a size such as 100GB or 64MiB")
    size = int(match[1]) * _UNITS[match[2]]
    if size > LARGEST_SIZE_BYTES:
        raise ValueError("is larger than 8EiB")
    return size


def format_size(size: int) -> str:
    """Returns the shortest exact text, such as `64MiB`, `100GB` or `1001B`."""
    if size == 0:
        return "0B"
    exact = [(size // unit, name) for name, unit in _UNITS.items() if size % unit == 0]
    number, name = min(exact)
    return f"{number}{name}"


def whole_of(value: Any) -> Any:
    """Returns 20 for the float 20.0, which some JSON writers send for a whole number; returns other values unchanged."""
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) <= EXACT_FLOAT_MAX else value


def _size_of(value: Any) -> int:
    value = whole_of(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if 0 <= value <= LARGEST_SIZE_BYTES:
            return value
        raise refused(f"{value} is not between 0 and 2^63 - 1 bytes")
    if not isinstance(value, str):
        raise refused("is not a size", hint="write bytes as a number, or a text such as 100GB or 64MiB")
    try:
        return parse_size(value)
    except ValueError as error:
        raise refused(f'"{value[:64]}" {error}') from error


SizeField = Annotated[
    int,
    BeforeValidator(_size_of),
    WithJsonSchema({"type": ["integer", "string"], "minimum": 0, "examples": [1048576, "64MiB"]}),
]
"""A size as a field: a number of bytes or a text with a unit; stored as the number."""
