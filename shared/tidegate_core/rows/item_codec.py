"""Converts frozen dataclasses to items and back, field by field. None is left out.

A record type with very many rows has `implied(item)`: fields that follow from the item's key or other fields, and
usual values. Fields that equal these are left out too.

Only types that both sides support natively are allowed: str, int, bool, bytes, and lists and maps of them. A record
stores deeper structures as one JSON text.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from tidegate_core.rows.store_operations import Item, Key

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

R = TypeVar("R", bound="DataclassInstance")

STORE_ATTRIBUTES = frozenset({"pk", "sk", "rev", "w", "expires_at"})
"""Attributes that belong to the store's side of an item, not to a record."""


@cache
def _field_names(record_type: type) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(record_type))


@cache
def _known(record_type: type) -> frozenset[str]:
    return frozenset(_field_names(record_type))


@cache
def _implied(record_type: type) -> Callable[[Item], dict[str, Any]] | None:
    """Returns `implied` of a record type; None for most types."""
    implied: Callable[[Item], dict[str, Any]] | None = getattr(record_type, "implied", None)
    return implied


def to_item(record: DataclassInstance, key: Key) -> Item:
    """Returns the item of a record under its key."""
    item: Item = {"pk": key.pk, "sk": key.sk}
    for name in _field_names(type(record)):
        value: Any = getattr(record, name)
        if value is None or (not value and isinstance(value, (tuple, frozenset))):
            continue
        item[name] = list(value) if isinstance(value, tuple) else value
    implied = _implied(type(record))
    if implied is not None:
        for name, value in implied(item).items():
            if item.get(name) == value:
                del item[name]
    return item


def from_item(record_type: type[R], item: Item) -> R:
    """Returns the record of an item. Unknown attributes are ignored, so that nodes of two releases can share a store."""
    known = _known(record_type)
    implied = _implied(record_type)
    fields: dict[str, Any] = {} if implied is None else implied(item)
    for name, value in item.items():
        if name in known:
            fields[name] = tuple(value) if type(value) is list else value
    return record_type(**fields)


def from_nested(record_type: type[R], fields: Mapping[str, Any]) -> R:
    """Returns a record that another one nests as JSON; unknown fields are ignored as well."""
    known = _known(record_type)
    return record_type(**{name: value for name, value in fields.items() if name in known})
