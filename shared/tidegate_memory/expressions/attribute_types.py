"""DynamoDB's types, comparisons and limits of attribute values. Used by the expressions and by the memory store."""

from __future__ import annotations

from functools import lru_cache
from types import NoneType
from typing import Final, TypeAlias

from tidegate_core.rows.store_operations import Item, Value

TYPE_NAMES: Final[dict[type, str]] = {
    str: "S",
    int: "N",
    bytes: "B",
    bool: "BOOL",
    NoneType: "NULL",
    list: "L",
    dict: "M",
    frozenset: "SS",
}
ORDERED_TYPES: Final = frozenset({"S", "N", "B"})
MEASURED_TYPES: Final = frozenset({"S", "B", "SS", "L", "M"})

SIGNIFICANT_DIGITS_MAX: Final = 38
DIGITS_MAX: Final = 126
"""Upper bound of numbers: DynamoDB's magnitudes stay below 10^126."""
_SHORT_NUMBERS_END: Final = 10**SIGNIFICANT_DIGITS_MAX
"""Numbers below it need no check of their digits."""
NESTING_LEVELS_MAX: Final = 32
NUMBERS_KEPT: Final = 10_000
"""Size of the cache of number sizes: items repeat their instants and counts at each write."""
MUTABLE_TYPES: Final = frozenset({list, dict})
_SHARED_TYPES: Final = frozenset({str, bytes, bool, NoneType})
_TEXT: Final = frozenset({str})


class InvalidExpression(Exception):
    """DynamoDB would answer ValidationException. The caller has a bug, and a retry does not help."""


class Missing:
    """Type of `MISSING`, the value of a missing attribute. (None is a value: DynamoDB's NULL.)"""

    __slots__ = ()


MISSING: Final = Missing()
Found: TypeAlias = "Value | Missing"


def type_name(value: Found) -> str:
    """Returns DynamoDB's name of the value's type; "" for a missing value."""
    return TYPE_NAMES.get(type(value), "")


def is_same(left: Found, right: Found) -> bool:
    """DynamoDB's equality: types count at every depth (in Python `True == 1`), and a missing operand equals nothing."""
    kind = type(left)
    if kind is not type(right) or kind is Missing:
        return False
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same(value, right[name]) for name, value in left.items())
    return left == right


def measured(value: Found) -> Found:
    """The function `size`: length of a text (in UTF-16 units) or binary, elements of a collection; otherwise
    missing.
    """
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode("utf-16-le")) // 2
    if isinstance(value, (bytes, list, dict, frozenset)):
        return len(value)
    return MISSING


def checked_number(number: int) -> int:
    """Returns the number.

    Raises:
        InvalidExpression: More than 38 significant digits, or 10^126 and above.
    """
    if -_SHORT_NUMBERS_END < number < _SHORT_NUMBERS_END:
        return number
    digits = str(abs(number))
    if len(digits) > DIGITS_MAX:
        raise InvalidExpression(
            "Number overflow. Attempting to store a number with magnitude larger than supported range"
        )
    if len(digits.rstrip("0")) > SIGNIFICANT_DIGITS_MAX:
        raise InvalidExpression("DynamoDB only supports precision up to 38 digits")
    return number


def checked_copy(value: Value, depth: int = 1) -> Value:
    """Returns a copy that shares nothing mutable with `value`.

    Raises:
        InvalidExpression: An empty set, a float or another foreign type, an empty attribute name, too deep, or a number
            out of range.
    """
    kind = type(value)
    if kind in _SHARED_TYPES:
        return value
    if kind is int:
        return checked_number(value)  # type: ignore[arg-type]  # `kind` proves it; isinstance would also accept bool
    if isinstance(value, frozenset):
        return _checked_set(value)
    if not isinstance(value, (list, dict)):
        raise InvalidExpression(f"type {kind.__name__} has no form in the store: {value!r}")
    if depth >= NESTING_LEVELS_MAX:
        raise InvalidExpression("Nesting Levels have exceeded supported limits")
    if isinstance(value, list):
        return [checked_copy(element, depth + 1) for element in value]
    if not all(value) or not _TEXT.issuperset(map(type, value)):
        raise InvalidExpression("Empty attribute name, or one that is no text")
    # Short cuts for text, the most frequent type: this check and the sizes below are the main cost of a write.
    return {
        name: element if type(element) is str else checked_copy(element, depth + 1) for name, element in value.items()
    }


def _checked_set(members: frozenset[str]) -> frozenset[str]:
    if not members:
        raise InvalidExpression("One or more parameter values were invalid: An string set may not be empty")
    if not all(type(member) is str for member in members):
        raise InvalidExpression(f"sets hold text only, not {sorted(map(repr, members))}")
    return members


def copied(value: Value) -> Value:
    """Returns a copy of a value that was checked before; only lists and maps are mutable."""
    if isinstance(value, list):
        return [copied(element) for element in value]
    if isinstance(value, dict):
        return {name: copied(element) for name, element in value.items()}
    return value


def bytes_of(value: Value) -> int:
    """DynamoDB's size of a value: UTF-8 bytes, one byte per two digits, three bytes and one per element for
    containers.
    """
    if isinstance(value, str):
        return len(value) if value.isascii() else len(value.encode())
    if value is None or isinstance(value, bool):
        return 1
    if isinstance(value, int):
        return _bytes_of_number(value)
    if isinstance(value, bytes):
        return len(value)
    if isinstance(value, frozenset):
        return sum(map(bytes_of, value))
    if isinstance(value, list):
        return 3 + sum(1 + bytes_of(element) for element in value)
    return 3 + sum(1 + bytes_of(name) + bytes_of(element) for name, element in value.items())


@lru_cache(maxsize=NUMBERS_KEPT)
def _bytes_of_number(number: int) -> int:
    return (len(str(abs(number)).rstrip("0")) + 1) // 2 + 1 + (number < 0)


def bytes_of_item(item: Item) -> int:
    """DynamoDB's size of an item: its names and its values."""
    names = "".join(item)
    size = len(names) if names.isascii() else len(names.encode())
    for value in item.values():
        # Short cuts for the most frequent types.
        if type(value) is str and value.isascii():
            size += len(value)
        elif type(value) is int:
            size += _bytes_of_number(value)
        else:
            size += bytes_of(value)
    return size
