"""Operators and functions of conditions, applied to two values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from tidegate_memory.expressions.attribute_types import (
    ORDERED_TYPES,
    TYPE_NAMES,
    Found,
    InvalidExpression,
    is_same,
    type_name,
)

ANY_TYPE: Final = frozenset(TYPE_NAMES.values())


def check_range(low: Found, high: Found) -> None:
    """Raises InvalidExpression for literal bounds of different types or in reverse order."""
    if type_name(low) != type_name(high):
        raise InvalidExpression("The BETWEEN operator requires same data type for lower and upper bounds")
    if not in_order(operator.le, low, high):
        raise InvalidExpression("The BETWEEN operator requires upper bound to be greater than or equal to lower bound")


def in_order(ordering: Callable[[Any, Any], bool], left: Found, right: Found) -> bool:
    """Compares two operands. Operands of different types, or of a type without an order, never match."""
    return type(left) is type(right) and type_name(left) in ORDERED_TYPES and ordering(left, right)


def contains(whole: Found, part: Found) -> bool:
    """The function `contains`: a part of a text or binary, a member of a set, an element of a list."""
    if isinstance(whole, str):
        return isinstance(part, str) and part in whole
    if isinstance(whole, bytes):
        return isinstance(part, bytes) and part in whole
    if isinstance(whole, frozenset):
        return isinstance(part, str) and part in whole
    return isinstance(whole, list) and any(is_same(element, part) for element in whole)


def begins_with(whole: Found, start: Found) -> bool:
    """The function `begins_with`, for texts and binaries."""
    if isinstance(whole, str):
        return isinstance(start, str) and whole.startswith(start)
    return isinstance(whole, bytes) and isinstance(start, bytes) and whole.startswith(start)


def has_type(found: Found, wanted: Found) -> bool:
    """The function `attribute_type`."""
    if wanted not in ANY_TYPE | {"NS", "BS"}:
        raise InvalidExpression(f"Invalid attribute type name found; type: {wanted!r}")
    return type_name(found) == wanted
