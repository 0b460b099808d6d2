"""Effect of one action of a transaction or batch on one item: condition, new item, size. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar, cast

from tidegate_core.rows.store_operations import (
    ITEM_BYTES_MAX,
    Action,
    Check,
    Condition,
    Delete,
    Item,
    Key,
    Put,
    Update,
    Value,
)
from tidegate_memory.expressions import InvalidExpression, parse_condition, parse_update
from tidegate_memory.expressions.attribute_types import bytes_of_item, checked_copy
from tidegate_memory.table import Stored
from tidegate_ports.store import StoreRequestInvalid

PARTITION_KEY_BYTES_MAX: Final = 2_048
SORT_KEY_BYTES_MAX: Final = 1_024
WRITE_UNIT_BYTES: Final = 1_024

_Mapped = TypeVar("_Mapped", str, Value)


@dataclass(frozen=True, slots=True)
class Outcome:
    """Result of evaluating an action.

    Attributes:
        holds: Whether the condition was true, or there was none.
        after: Item after the action; None = none. Valid only if `holds`.
        size: The larger one of the sizes before and after, in bytes, which DynamoDB bills and limits.
    """

    holds: bool
    after: Stored | None
    size: int

    @property
    def write_units(self) -> int:
        """Write units of a plain write; a transaction costs twice as much."""
        return max(1, -(-self.size // WRITE_UNIT_BYTES))


def outcome_of(action: Action, before: Stored | None) -> Outcome:
    """Evaluates one action against the present item.

    Raises:
        StoreRequestInvalid: The expression, a value, the key or the resulting size is not allowed.
    """
    try:
        check_key(action.key)
        holds, after = _evaluated(action, before)
    except InvalidExpression as invalid:
        raise StoreRequestInvalid(f"{type(action).__name__} of {action.key}: {invalid}") from invalid
    if after is not None and after.size > ITEM_BYTES_MAX:
        raise StoreRequestInvalid(f"{action.key}: {after.size} bytes, more than {ITEM_BYTES_MAX}")
    return Outcome(holds, after, max(before.size if before else 0, after.size if after else 0))


def check_key(key: Key) -> None:
    """Raises StoreRequestInvalid for a key that DynamoDB refuses."""
    for part, longest in ((key.pk, PARTITION_KEY_BYTES_MAX), (key.sk, SORT_KEY_BYTES_MAX)):
        # A character has at most four bytes, so most keys need no encoding for this check.
        if not part or (len(part) * 4 > longest and len(part.encode()) > longest):
            raise StoreRequestInvalid(f"{key}: key attributes have 1 to {longest} bytes")


def _evaluated(action: Action, before: Stored | None) -> tuple[bool, Stored | None]:
    item = before.item if before else None
    match action:
        case Put(key, new, condition):
            after = _stored(key, new)
            return _holds(condition, item), after
        case Update():
            return _updated(action, item)
        case Delete(_, condition):
            return _holds(condition, item), None
        case Check(_, condition):
            return _holds(condition, item), before


def _stored(key: Key, new: Item) -> Stored:
    if new.get("pk") != key.pk or new.get("sk") != key.sk:
        raise InvalidExpression(f"the item's pk and sk are {new.get('pk')!r}, {new.get('sk')!r}")
    item = cast(Item, checked_copy(new, depth=0))
    return Stored(item, bytes_of_item(item))


def _holds(condition: Condition | None, item: Item | None) -> bool:
    if condition is None:
        return True
    parsed = parse_condition(condition.expression, tuple(condition.names.items()))
    _refuse_unused(condition.names, condition.values, parsed.names_used, parsed.values_used)
    values = _checked(condition.values)
    parsed.check(values)
    return parsed.holds(item, values)


def _updated(action: Update, item: Item | None) -> tuple[bool, Stored | None]:
    names, given = action.names, action.values
    if action.condition is not None:
        names, given = _merged(names, action.condition.names), _merged(given, action.condition.values)
    names_key = tuple(names.items())
    update = parse_update(action.expression, names_key)
    condition = None if action.condition is None else parse_condition(action.condition.expression, names_key)
    _refuse_unused(
        names,
        given,
        update.names_used if condition is None else update.names_used | condition.names_used,
        update.values_used if condition is None else update.values_used | condition.values_used,
    )
    values = _checked(given)
    update.check(values)
    if condition is not None:
        condition.check(values)
        if not condition.holds(item, values):
            return False, None
    after = update.applied_to(item or {"pk": action.key.pk, "sk": action.key.sk}, values)
    if update.reaches_inside:
        checked_copy(
            after, depth=0
        )  # The values were checked already; nested inside another value they may be too deep.
    return True, Stored(after, bytes_of_item(after))


def _merged(first: Mapping[str, _Mapped], second: Mapping[str, _Mapped]) -> Mapping[str, _Mapped]:
    if not second:
        return first
    for placeholder, meaning in second.items():
        if first.get(placeholder, meaning) != meaning:
            raise InvalidExpression(f"{placeholder} has one meaning in the update and another in its condition")
    return {**first, **second}


def _refuse_unused(
    names: Mapping[str, str], values: Mapping[str, Value], names_used: frozenset[str], values_used: frozenset[str]
) -> None:
    if names.keys() != names_used:
        raise InvalidExpression(f"ExpressionAttributeNames unused in expressions: {sorted(names.keys() - names_used)}")
    if values.keys() != values_used:
        raise InvalidExpression(
            f"ExpressionAttributeValues unused {sorted(values.keys() - values_used)} "
            f"or not defined {sorted(values_used - values.keys())}"
        )


def _checked(values: Mapping[str, Value]) -> dict[str, Value]:
    return {placeholder: checked_copy(value) for placeholder, value in values.items()}
