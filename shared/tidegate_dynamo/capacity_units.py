"""What calls cost in DynamoDB's read and write units, by table. Pure.

Reads, single writes and batches: what the store's own answer says. It is asked for in each call, where somebody listens:
it is free of charge, and costs 40 bytes each way and a few microseconds of a call's 130 and more.

Transactions: computed from what the call carries, because DynamoDB Local answers the same whatever was written. A put is
rounded up from its item; of an update, delete or check nobody here knows the item, and it counts as one of up to 1 KB,
which rows in transactions are by design. Refused conditions cost as if they had been met, and no answer says so: computed
in the same way.
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
"""A transaction writes each item twice: it prepares, and it commits."""
CONTAINER_BYTES: Final = 3
"""Of each list and map, and one more of each of its elements."""
READS: Final = frozenset({"query", "batch_get_item"})
TRANSACTIONS: Final = frozenset({"transact_write_items"})
REFUSED: Final = frozenset({"ConditionalCheckFailedException", "TransactionCanceledException"})
"""Codes of answers that are charged for."""


def kind_of(operation: str) -> Kind:
    """Returns which units a call consumes."""
    return "read" if operation in READS else "write"


def answered_units(answer: Mapping[str, Any]) -> Mapping[str, float]:
    """Returns the units by table's full name, as the store says; empty where it says nothing."""
    said = answer.get("ConsumedCapacity", ())
    parts: Iterable[Mapping[str, Any]] = [said] if isinstance(said, Mapping) else said
    return {part["TableName"]: float(part["CapacityUnits"]) for part in parts}


def computed_units(operation: str, request: Mapping[str, Any]) -> Mapping[str, float]:
    """Returns the write units by table's full name of a transaction, or of a single write, from the request alone."""
    units: Counter[str] = Counter()
    if operation in TRANSACTIONS:
        for action in request["TransactItems"]:
            ((_, part),) = action.items()
            units[part["TableName"]] += TRANSACTED * _units_of(part)
    else:
        units[request["TableName"]] += _units_of(request)
    return {name: float(count) for name, count in units.items()}


def by_table(units: Mapping[str, float], tables: Mapping[str, Table]) -> Mapping[Table, float]:
    """Returns the same under our names of the tables, without those that cost nothing."""
    return {tables[name]: count for name, count in units.items() if count}


def _units_of(part: Mapping[str, Any]) -> int:
    item = part.get("Item")
    return 1 if item is None else max(1, -(-item_bytes(item) // BYTES_PER_WRITE_UNIT))


def item_bytes(attributes: Mapping[str, Mapping[str, Any]]) -> int:
    """Returns what DynamoDB counts as an item's size: names and values, as its guide says."""
    return sum(_text_bytes(name) + _bytes(value) for name, value in attributes.items())


def _bytes(attribute: Mapping[str, Any]) -> int:
    ((kind, raw),) = attribute.items()
    match kind:
        case "S":
            return _text_bytes(raw)
        case "N":
            # Two digits a byte, without zeros at the end; one for the length, one for a sign.
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
