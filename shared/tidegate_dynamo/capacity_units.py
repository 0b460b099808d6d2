"""Cost of calls in DynamoDB's read and write units, by table. Pure.

Reads, single writes and batches: the units that the store's answer reports. They are requested only when an observer
needs them. The request is free of charge; it costs 40 bytes each way and a few microseconds of the 130 or more of a
call.

Transactions: computed from the request, because DynamoDB Local reports the same units whatever was written. A put is
rounded up from its item's size. The item of an update, delete or check is unknown here and counts as up to 1 KB, the
design size of rows in transactions. Refused conditions cost as much as met ones, and no answer reports it: they are
computed in the same way.
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from tidegate_core.rows.store_operations import Table

Kind: TypeAlias = Literal["read", "write"]
BYTES_PER_WRITE_UNIT: Final = 1024
TRANSACTED: Final = 2
"""Factor of a transaction, which writes each item twice: to prepare and to commit."""
CONTAINER_BYTES: Final = 3
"""Overhead of each list and map; each of its elements adds one more."""
READS: Final = frozenset({"query", "batch_get_item"})
TRANSACTIONS: Final = frozenset({"transact_write_items"})
REFUSED: Final = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})
"""Error codes of answers that are charged for."""


def kind_of(operation: str) -> Kind:
    """Returns the kind of units that a call consumes."""
    return "read" if operation in READS else "write"


def answered_units(answer: Mapping[str, Any]) -> Mapping[str, float]:
    """Returns the units that the store reports, by the table's full name; empty if it reports none."""
    said = answer.get("ConsumedCapacity", ())
    parts: Iterable[Mapping[str, Any]] = [said] if isinstance(said, Mapping) else said
    return {part["TableName"]: float(part["CapacityUnits"]) for part in parts}


def computed_units(operation: str, request: Mapping[str, Any]) -> Mapping[str, float]:
    """Returns the write units of a transaction or single write by the table's full name, computed from the request."""
    units: Counter[str] = Counter()
    if operation in TRANSACTIONS:
        for action in request["TransactItems"]:
            ((_, part),) = action.items()
            units[part["TableName"]] += TRANSACTED * _units_of(part)
    else:
        units[request["TableName"]] += _units_of(request)
    return {name: float(count) for name, count in units.items()}


def by_table(units: Mapping[str, float], tables: Mapping[str, Table]) -> Mapping[Table, float]:
    """Returns the units by our table names, without tables that cost nothing."""
    return {tables[name]: count for name, count in units.items() if count}


def _units_of(part: Mapping[str, Any]) -> int:
    item = part.get("Item")
    return 1 if item is None else max(1, -(-item_bytes(item) // BYTES_PER_WRITE_UNIT))


def item_bytes(attributes: Mapping[str, Mapping[str, Any]]) -> int:
    """Returns the size that DynamoDB's guide defines for an item: names and values."""
    return sum(_text_bytes(name) + _bytes(value) for name, value in attributes.items())


def _bytes(attribute: Mapping[str, Any]) -> int:
    ((kind, raw),) = attribute.items()
    match kind:
        case "S":
            return _text_bytes(raw)
        case "N":
            # Two digits a byte, without trailing zeros; one byte for the length, one for a sign.
            return (len(raw.lstrip("-").rstrip("0")) + 1) // 2 + 1 + int(raw.startswith("-"))
        case "B":
            return len(base64.b64decode(raw))
        case "SS":
            return sum(map(_text_bytes, raw))
        case "L":
            return CONTAINER_BYTES + sum(1 + _bytes(element) for element in raw)
        case "M":
            return CONTAINER_BYTES + len(raw) + item_bytes(raw)
        case _:
            return 1


def _text_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
