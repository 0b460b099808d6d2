"""Converts values to DynamoDB's attribute values in their JSON form, and back.

Not boto3's converter: it turns every number into a `Decimal` and all bytes into a `Binary`, and costs several times as
much CPU (figures in docs/internals/decisions/0004-pynamodb-where.md). As in the core, numbers are integers and sets hold text.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import NoneType
from typing import Any, Final, TypeAlias

from tidegate_core.rows.store_operations import Item, Value
from tidegate_ports.store import StoreRequestInvalid

AttributeValue: TypeAlias = dict[str, Any]
"""`{"S": "text"}` and so on; binaries are in base64, as the client sends them."""


def encoded(value: Value) -> AttributeValue:
    """Returns the value in DynamoDB's form.

    Raises:
        StoreRequestInvalid: A type that the store does not hold (float, tuple), or an empty set.
    """
    encode = _ENCODERS.get(type(value))
    if encode is None:
        raise StoreRequestInvalid(f"type {type(value).__name__} has no form in the store: {value!r}")
    return encode(value)


def encoded_item(item: Mapping[str, Value]) -> dict[str, AttributeValue]:
    """Returns an item, or a mapping of placeholders to values, in DynamoDB's form."""
    # Most values are text: a function call for each would cost as much as all other work here.
    return {name: {"S": value} if type(value) is str else encoded(value) for name, value in item.items()}


def decoded(attribute: Mapping[str, Any]) -> Value:
    """Returns the value of an attribute.

    Raises:
        StoreRequestInvalid: A number that is no integer, or a set of numbers or binaries; tidegate writes neither.
    """
    ((kind, raw),) = attribute.items()
    if kind == "S":
        return str(raw)
    decode = _DECODERS.get(kind)
    if decode is None:
        raise StoreRequestInvalid(f"attribute type {kind} is not one that tidegate writes")
    return decode(raw)


def decoded_item(attributes: Mapping[str, Mapping[str, Any]]) -> Item:
    """Returns an item of the store with plain values."""
    return {name: decoded(attribute) for name, attribute in attributes.items()}


def _encoded_set(members: frozenset[str]) -> AttributeValue:
    if not members:
        raise StoreRequestInvalid("a set in the store needs at least one member; leave the attribute out instead")
    # Sorted, so that a repeated transaction is the same request. Otherwise its client token would not match.
    return {"SS": sorted(members)}


def _decoded_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        number = Decimal(text)
        if number != number.to_integral_value():
            raise StoreRequestInvalid(f"number {text} is no integer; tidegate never wrote it") from None
        return int(number)


_ENCODERS: Final[dict[type, Callable[[Any], AttributeValue]]] = {
    str: lambda text: {"S": text},
    int: lambda number: {"N": str(number)},
    bool: lambda flag: {"BOOL": flag},
    NoneType: lambda _: {"NULL": True},
    bytes: lambda data: {"B": base64.b64encode(data).decode("ascii")},
    frozenset: _encoded_set,
    list: lambda elements: {"L": [encoded(element) for element in elements]},
    dict: lambda members: {"M": {name: encoded(member) for name, member in members.items()}},
}
_DECODERS: Final[dict[str, Callable[[Any], Value]]] = {
    "N": _decoded_number,
    "BOOL": bool,
    "NULL": lambda _: None,
    "B": base64.b64decode,
    "SS": frozenset,
    "L": lambda elements: [decoded(element) for element in elements],
    "M": lambda members: {name: decoded(member) for name, member in members.items()},
}
