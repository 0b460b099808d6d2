"""Builds DynamoDB's requests from the core's values; expressions and placeholders are passed on unchanged. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypeVar

from tidegate_core.rows.store_operations import (
    Action,
    Check,
    Condition,
    Delete,
    Key,
    Put,
    RangeRead,
    Table,
    Transaction,
    Update,
    Value,
)
from tidegate_dynamo.attribute_values import AttributeValue, encoded_item
from tidegate_ports.store import StoreRequestInvalid

Request: TypeAlias = dict[str, Any]
TableNames: TypeAlias = Mapping[Table, str]

TOKEN_BYTES: Final = 16
"""Size of a client token: 32 hexadecimal characters. DynamoDB accepts up to 36."""

_Mapped = TypeVar("_Mapped", str, Value)


def key_attributes(key: Key) -> dict[str, AttributeValue]:
    """Returns the primary key in DynamoDB's form."""
    return {"pk": {"S": key.pk}, "sk": {"S": key.sk}}


def transaction_request(transaction: Transaction, tables: TableNames) -> Request:
    """Returns the arguments of `transact_write_items`."""
    return {
        "TransactItems": [dict([action_request(action, tables)]) for action in transaction.actions],
        # Hashed, because a transaction's token has any length. DynamoDB's token only guards against the network
        # repeating a request, and DynamoDB forgets it after ten minutes; the witness settles doubtful sends. The table
        # name is part of it, because DynamoDB remembers tokens per account, and clusters may share an account.
        "ClientRequestToken": hashlib.blake2b(
            f"{tables['main']}#{transaction.token}".encode(), digest_size=TOKEN_BYTES
        ).hexdigest(),
    }


def action_request(action: Action, tables: TableNames) -> tuple[str, Request]:
    """Returns DynamoDB's name of the action and its arguments, the same in a transaction and in a single call."""
    request: Request = {
        "TableName": tables[action.key.table],
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    match action:
        case Put(key, item, condition):
            if item.get("pk") != key.pk or item.get("sk") != key.sk:
                raise StoreRequestInvalid(f"{key}: the item names {item.get('pk')!r}, {item.get('sk')!r}")
            return "Put", request | {"Item": encoded_item(item)} | _conditional(condition)
        case Delete(key, condition):
            return "Delete", request | {"Key": key_attributes(key)} | _conditional(condition)
        case Check(key, condition):
            return "ConditionCheck", request | {"Key": key_attributes(key)} | _conditional(condition)
        case Update(key, expression, names, values, condition):
            request |= {"Key": key_attributes(key), "UpdateExpression": expression}
            if condition is not None:
                request["ConditionExpression"] = condition.expression
                names = _merged(names, condition.names)
                values = _merged(values, condition.values)
            return "Update", request | _placeholders(names, values)


def query_request(wanted: RangeRead, tables: TableNames) -> Request | None:
    """Returns the arguments of `query`, or None when the range is empty whatever the table holds.

    DynamoDB refuses ranges that a caller's arithmetic can produce: reversed bounds, an empty lower bound, a
    position outside the bounds or at their end. Here such a range means the rows that it describes, often none.
    """
    if wanted.limit < 1:
        raise StoreRequestInvalid(f"{wanted}: the limit is below 1")
    low, high, after = wanted.low, wanted.high, wanted.after
    if low > high or not high:
        return None
    if after is not None and not low < after < high:
        begin, end = (high, low) if wanted.newest_first else (low, high)
        if after == end or (after < end) == wanted.newest_first:
            return None
        if after != begin:
            after = None
    request: Request = {
        "TableName": tables[wanted.table],
        "ConsistentRead": True,
        "KeyConditionExpression": "pk = :pk AND sk BETWEEN :low AND :high" if low else "pk = :pk AND sk <= :high",
        "ExpressionAttributeValues": encoded_item({":pk": wanted.pk, ":high": high} | ({":low": low} if low else {})),
        "Limit": wanted.limit,
        "ScanIndexForward": not wanted.newest_first,
    }
    if after is not None:
        request["ExclusiveStartKey"] = key_attributes(Key(wanted.pk, after))
    return request


def _conditional(condition: Condition | None) -> Request:
    if condition is None:
        return {}
    return {"ConditionExpression": condition.expression} | _placeholders(condition.names, condition.values)


def _placeholders(names: Mapping[str, str], values: Mapping[str, Value]) -> Request:
    # Empty mappings are left out, because DynamoDB refuses them.
    request: Request = {}
    if names:
        request["ExpressionAttributeNames"] = dict(names)
    if values:
        request["ExpressionAttributeValues"] = encoded_item(values)
    return request


def _merged(first: Mapping[str, _Mapped], second: Mapping[str, _Mapped]) -> Mapping[str, _Mapped]:
    for placeholder, meaning in second.items():
        if first.get(placeholder, meaning) != meaning:
            raise StoreRequestInvalid(f"{placeholder} has one meaning in the update and another in its condition")
    return {**first, **second}
