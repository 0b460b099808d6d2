"""Requests and answers of the store's four calls, without I/O.

Each call is a generator that yields its next request. It is resumed with the answer, or the failure is raised at the
yield. The blocking store runs it on the calling thread (`store.py`), the node's store on its loop (`async_store.py`).

A transaction of one action is sent as a plain conditional write, at half the price of a transaction. It has no client
token, so only the condition and the witness distinguish a repeat from its first send.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

from tidegate_core.rows.store_operations import (
    ACTIONS_PER_TRANSACTION_MAX,
    Applied,
    Check,
    Delete,
    Item,
    Key,
    Page,
    Put,
    RangeRead,
    RawOutcome,
    Table,
    Throttled,
    Transaction,
)
from tidegate_dynamo.attribute_values import decoded_item, encoded_item
from tidegate_dynamo.request_builder import (
    Request,
    TableNames,
    action_request,
    key_attributes,
    query_request,
    transaction_request,
)
from tidegate_dynamo.settings import TABLE_NAMES, DynamoSettings
from tidegate_dynamo.write_outcomes import FAILURES, outcome_of
from tidegate_ports.store import PartlyRead, StoreRequestInvalid, StoreUnavailable

WRITES_PER_CALL_MAX: Final = 25
"""DynamoDB's limit for BatchWriteItem."""
KEYS_PER_CALL_MAX: Final = 100
"""DynamoDB's limit for BatchGetItem."""
GET_PAUSES_S: Final = (0.05, 0.1, 0.2)
"""Pauses after an answer that read none of the remaining keys (throttling), so that items already read are not
discarded. After an answer that read some, the next call follows at once: one answer holds at most 16 MB, and 100 items
of 400 KB are 40 MB."""

_T = TypeVar("_T")
_SINGLE_CALLS: Final = {"Put": "put_item", "Update": "update_item", "Delete": "delete_item"}


class Call(NamedTuple):
    """One request; `operation` is a key of `item_client.OPERATIONS`. Resumed with the answer."""

    operation: str
    request: Request


class Pause(NamedTuple):
    """A pause of so many seconds. Resumed with any value."""

    seconds: float


Steps: TypeAlias = Generator[Call | Pause, Mapping[str, Any], _T]


class StoreCalls:
    """Calls on two tables.

    Args:
        settings: Settings with the tables' names.

    Attributes:
        table_of: Our table names by DynamoDB's names.
    """

    def __init__(self, settings: DynamoSettings) -> None:
        self._tables: TableNames = {table: settings.table_name(table) for table in TABLE_NAMES}
        self.table_of: Mapping[str, Table] = {name: table for table, name in self._tables.items()}

    def transact(self, transaction: Transaction) -> Steps[RawOutcome]:
        actions = transaction.actions
        _check_shape(transaction)
        if len(actions) == 1:
            kind, request = action_request(actions[0], self._tables)
            call = Call(_SINGLE_CALLS[kind], request)
        else:
            call = Call("transact_write_items", transaction_request(transaction, self._tables))
        try:
            yield call
        except FAILURES as error:
            return outcome_of(error, len(actions))
        return Applied()

    def write(self, actions: Sequence[Put | Delete]) -> Steps[Sequence[Put | Delete]]:
        pending = list(_distinct_by_key(actions).values())
        unprocessed: list[Put | Delete] = []
        for start in range(0, len(pending), WRITES_PER_CALL_MAX):
            chunk = pending[start : start + WRITES_PER_CALL_MAX]
            left = yield from self._write_chunk(chunk)
            unprocessed += left
            if len(left) == len(chunk):
                # The whole chunk was refused. Further chunks would add to the throttling, or wait for the same dead
                # host.
                return unprocessed + pending[start + WRITES_PER_CALL_MAX :]
        return unprocessed

    def get(self, keys: Sequence[Key]) -> Steps[Mapping[Key, Item]]:
        found: dict[Key, Item] = {}
        wanted = list(dict.fromkeys(keys))
        for start in range(0, len(wanted), KEYS_PER_CALL_MAX):
            end = start + KEYS_PER_CALL_MAX
            try:
                yield from self._get_chunk(wanted[start:end], found)
            except PartlyRead as failure:
                # Later chunks are not read: they would add to the throttling, or wait for the same dead host.
                raise PartlyRead(str(failure), found, failure.unread.union(wanted[end:])) from failure
        return found

    def query(self, wanted: RangeRead) -> Steps[Page]:
        request = query_request(wanted, self._tables)
        if request is None:
            return Page((), None)
        answer = yield from _read("query", request)
        last = answer.get("LastEvaluatedKey")
        return Page(tuple(map(decoded_item, answer["Items"])), None if last is None else last["sk"]["S"])

    def _write_chunk(self, chunk: Sequence[Put | Delete]) -> Steps[Sequence[Put | Delete]]:
        requests: dict[str, list[Request]] = {}
        for action in chunk:
            requests.setdefault(self._tables[action.key.table], []).append(_batched(action))
        try:
            answer = yield Call("batch_write_item", {"RequestItems": requests})
        except FAILURES as error:
            if outcome_of(error, len(chunk)) == Throttled():
                return chunk
            raise StoreUnavailable(f"batch of {len(chunk)} writes: {error}") from error
        left = answer["UnprocessedItems"]
        if not left:
            return ()
        unprocessed = {self._key_of(name, request) for name, requests in left.items() for request in requests}
        return [action for action in chunk if action.key in unprocessed]

    def _get_chunk(self, keys: Sequence[Key], found: dict[Key, Item]) -> Steps[None]:
        """Adds to `found`. Raises PartlyRead for this chunk only: one throttled key concerns only the caller that needs
        it.
        """
        wanted: Mapping[str, Any] = {
            self._tables[table]: {
                "Keys": [key_attributes(key) for key in keys if key.table == table],
                "ConsistentRead": True,
            }
            for table in dict.fromkeys(key.table for key in keys)
        }
        pauses = iter(GET_PAUSES_S)
        pause: float | None = 0
        while pause is not None:
            if pause:
                yield Pause(pause)
            before = len(found)
            try:
                answer = yield from _read("batch_get_item", {"RequestItems": wanted})
            except StoreUnavailable as failure:
                # When only throttled keys remain, DynamoDB refuses the whole call.
                raise PartlyRead(str(failure), found, self._keys_of(wanted)) from failure
            for name, attributes in answer["Responses"].items():
                for item in map(decoded_item, attributes):
                    found[Key(str(item["pk"]), str(item["sk"]), self.table_of[name])] = item
            wanted = answer["UnprocessedKeys"]
            if not wanted:
                return
            pause = 0 if len(found) > before else next(pauses, None)
        left = self._keys_of(wanted)
        raise PartlyRead(f"{len(left)} of {len(keys)} keys were not read", found, left)

    def _keys_of(self, wanted: Mapping[str, Any]) -> list[Key]:
        return [
            Key(key["pk"]["S"], key["sk"]["S"], self.table_of[name])
            for name, part in wanted.items()
            for key in part["Keys"]
        ]

    def _key_of(self, name: str, request: Request) -> Key:
        attributes = request["PutRequest"]["Item"] if "PutRequest" in request else request["DeleteRequest"]["Key"]
        return Key(attributes["pk"]["S"], attributes["sk"]["S"], self.table_of[name])


def _read(operation: str, request: Request) -> Steps[Mapping[str, Any]]:
    try:
        return (yield Call(operation, request))
    except FAILURES as error:
        # The same table of codes raises StoreRequestInvalid for requests that can never work.
        outcome_of(error, 1)
        raise StoreUnavailable(f"{operation}: {error}") from error


def _batched(action: Put | Delete) -> Request:
    if isinstance(action, Put):
        return {"PutRequest": {"Item": encoded_item(action.item)}}
    return {"DeleteRequest": {"Key": key_attributes(action.key)}}


def _check_shape(transaction: Transaction) -> None:
    """Refuses two mistakes that DynamoDB would accept, or bill without effect; it refuses most others itself."""
    if not 1 <= len(transaction.actions) <= ACTIONS_PER_TRANSACTION_MAX:
        raise StoreRequestInvalid(f"transaction {transaction.name}: {len(transaction.actions)} actions")
    if all(isinstance(action, Check) for action in transaction.actions):
        raise StoreRequestInvalid(f"transaction {transaction.name}: it writes nothing")


def _distinct_by_key(actions: Sequence[Put | Delete]) -> dict[Key, Put | Delete]:
    """Returns the actions by key. DynamoDB refuses a repeated key in one call; identical repeats are harmless and sent
    once.
    """
    distinct: dict[Key, Put | Delete] = {}
    for action in actions:
        if action.condition is not None:
            raise StoreRequestInvalid(f"{action.key}: batches have no conditions")
        if distinct.setdefault(action.key, action) != action:
            raise StoreRequestInvalid(f"{action.key}: two different actions of one batch")
    return distinct
