"""The store's port on DynamoDB. One attempt per call: settling and retrying are in `settled.py`.

A transaction of one action goes out as a plain conditional write, at half of a transaction's price; it has no client
token, so its repeat is told from its first send by the condition and the witness alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from tidegate_core.store.values import (
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
from tidegate_dynamo.items_client import ItemsClient
from tidegate_dynamo.outcomes import FAILURES, ForeignAnswer, error_code, outcome_of
from tidegate_dynamo.requests import (
    Request,
    TableNames,
    action_request,
    key_attributes,
    query_request,
    transaction_request,
)
from tidegate_dynamo.settings import TABLE_NAMES, DynamoSettings
from tidegate_dynamo.units import REFUSED, TRANSACTIONS, Kind, answered_units, by_table, computed_units, kind_of
from tidegate_ports.store import StoreRequestInvalid, StoreUnavailable

WRITES_PER_CALL_MAX: Final = 25
"""DynamoDB's own limit of BatchWriteItem."""
KEYS_PER_CALL_MAX: Final = 100
"""DynamoDB's own limit of BatchGetItem."""
GET_PAUSES_S: Final = (0.05, 0.1, 0.2)
"""Waits for keys that were left over without a single one being read (throttling), so that what was found is not thrown
away. A call that brings some is followed at once: it returns at most 16 MB, and 100 items of 400 KB are 40 MB."""

Observer: TypeAlias = Callable[[str, str, float], None]
"""Told of each call: operation, outcome (`ok` or an error's code) and seconds. For metrics; must not raise."""

UnitsListener: TypeAlias = Callable[[str, Table, Kind, float], None]
"""Told what each call cost: operation, table, `read` or `write`, and units. For metrics; must not raise."""

_Element = TypeVar("_Element")
_PARTS: Final = {
    "batch_write_item": ("UnprocessedItems",),
    "batch_get_item": ("Responses", "UnprocessedKeys"),
    "query": ("Items",),
}
"""What a whole answer always has."""
_SINGLE_CALLS: Final = {"Put": "put_item", "Update": "update_item", "Delete": "delete_item"}


class DynamoStore:
    """`tidegate_ports.store.Store` on two DynamoDB tables. Thread-safe.

    Args:
        client: The one for items, from `make_client`.
        settings: The same.
        observer: Told of each call.
        units: Told what each call cost; None asks the store for no figures.
    """

    def __init__(
        self,
        client: ItemsClient,
        settings: DynamoSettings,
        observer: Observer = lambda *_: None,
        units: UnitsListener | None = None,
    ) -> None:
        self._client = client
        self._tables: TableNames = {table: settings.table_name(table) for table in TABLE_NAMES}
        self._table_of: Mapping[str, Table] = {name: table for table, name in self._tables.items()}
        self._observer = observer
        self._units = units

    def transact(self, transaction: Transaction) -> RawOutcome:
        actions = transaction.actions
        _check_shape(transaction)
        if len(actions) == 1:
            kind, request = action_request(actions[0], self._tables)
            operation = _SINGLE_CALLS[kind]
        else:
            operation, request = "transact_write_items", transaction_request(transaction, self._tables)
        try:
            self._call(operation, request)
        except FAILURES as error:
            return outcome_of(error, len(actions))
        return Applied()

    def write(self, actions: Sequence[Put | Delete]) -> Sequence[Put | Delete]:
        pending = list(_distinct_by_key(actions).values())
        unprocessed: list[Put | Delete] = []
        for start in range(0, len(pending), WRITES_PER_CALL_MAX):
            chunk = pending[start : start + WRITES_PER_CALL_MAX]
            left = self._write_chunk(chunk)
            unprocessed += left
            if len(left) == len(chunk):
                # Turned away as a whole: the rest would only add to what throttled it, or wait for the same dead host.
                return unprocessed + pending[start + WRITES_PER_CALL_MAX :]
        return unprocessed

    def get(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        found: dict[Key, Item] = {}
        for chunk in _chunks(list(dict.fromkeys(keys)), KEYS_PER_CALL_MAX):
            found.update(self._get_chunk(chunk))
        return found

    def query(self, wanted: RangeRead) -> Page:
        request = query_request(wanted, self._tables)
        if request is None:
            return Page((), None)
        answer = self._read("query", request)
        last = answer.get("LastEvaluatedKey")
        return Page(tuple(map(decoded_item, answer["Items"])), None if last is None else last["sk"]["S"])

    def _write_chunk(self, chunk: Sequence[Put | Delete]) -> Sequence[Put | Delete]:
        requests: dict[str, list[Request]] = {}
        for action in chunk:
            requests.setdefault(self._tables[action.key.table], []).append(_batched(action))
        try:
            answer = self._call("batch_write_item", {"RequestItems": requests})
        except FAILURES as error:
            if outcome_of(error, len(chunk)) == Throttled():
                return chunk
            raise StoreUnavailable(f"batch of {len(chunk)} writes: {error}") from error
        left = answer["UnprocessedItems"]
        if not left:
            return ()
        unprocessed = {self._key_of(name, request) for name, requests in left.items() for request in requests}
        return [action for action in chunk if action.key in unprocessed]

    def _get_chunk(self, keys: Sequence[Key]) -> dict[Key, Item]:
        wanted: Mapping[str, Any] = {
            self._tables[table]: {
                "Keys": [key_attributes(key) for key in keys if key.table == table],
                "ConsistentRead": True,
            }
            for table in dict.fromkeys(key.table for key in keys)
        }
        found: dict[Key, Item] = {}
        pauses = iter(GET_PAUSES_S)
        pause: float | None = 0
        while pause is not None:
            if pause:
                time.sleep(pause)
            before = len(found)
            answer = self._read("batch_get_item", {"RequestItems": wanted})
            for name, attributes in answer["Responses"].items():
                for item in map(decoded_item, attributes):
                    found[Key(str(item["pk"]), str(item["sk"]), self._table_of[name])] = item
            wanted = answer["UnprocessedKeys"]
            if not wanted:
                return found
            pause = 0 if len(found) > before else next(pauses, None)
        raise StoreUnavailable(
            f"{sum(len(part['Keys']) for part in wanted.values())} of {len(keys)} keys were not read"
        )

    def _read(self, operation: str, request: Request) -> Mapping[str, Any]:
        try:
            return self._call(operation, request)
        except FAILURES as error:
            # The same table of codes: it raises for what can never work.
            outcome_of(error, 1)
            raise StoreUnavailable(f"{operation}: {error}") from error

    def _call(self, operation: str, request: Request) -> Mapping[str, Any]:
        started = time.monotonic()
        outcome = "ok"
        if self._units is not None and operation not in TRANSACTIONS:
            request = {**request, "ReturnConsumedCapacity": "TOTAL"}
        answer: Mapping[str, Any] = {}
        try:
            answer = self._client.call(operation, request)
            _check_answer(operation, answer)
        except FAILURES as error:
            outcome = error_code(error)
            raise
        finally:
            self._observer(operation, outcome, time.monotonic() - started)
            if self._units is not None:
                self._count_units(self._units, operation, request, outcome, answer)
        return answer

    def _count_units(
        self, listener: UnitsListener, operation: str, request: Request, outcome: str, answer: Mapping[str, Any]
    ) -> None:
        if outcome in REFUSED or (outcome == "ok" and operation in TRANSACTIONS):
            units = computed_units(operation, request)
        elif outcome == "ok":
            units = answered_units(answer)
        else:
            return
        for table, count in by_table(units, self._table_of).items():
            listener(operation, table, kind_of(operation), count)

    def _key_of(self, name: str, request: Request) -> Key:
        attributes = request["PutRequest"]["Item"] if "PutRequest" in request else request["DeleteRequest"]["Key"]
        return Key(attributes["pk"]["S"], attributes["sk"]["S"], self._table_of[name])


def _check_answer(operation: str, answer: Mapping[str, Any]) -> None:
    """Refuses answers without what a whole one has, whatever client brought them.

    They would read as an item that is not there, or as a batch of which nothing was left over. The SDK's client makes such
    answers, with nothing but the text as `message`, of a proxy's page and of JSON that ends too early.
    """
    whole = "RequestId" in answer.get("ResponseMetadata", ()) and "message" not in answer
    if not whole or not all(part in answer for part in _PARTS.get(operation, ())):
        raise ForeignAnswer(f"{operation}: status 200, but not a whole answer of DynamoDB's")


def _batched(action: Put | Delete) -> Request:
    if isinstance(action, Put):
        return {"PutRequest": {"Item": encoded_item(action.item)}}
    return {"DeleteRequest": {"Key": key_attributes(action.key)}}


def _chunks(elements: Sequence[_Element], size: int) -> Iterator[Sequence[_Element]]:
    for start in range(0, len(elements), size):
        yield elements[start : start + size]


def _check_shape(transaction: Transaction) -> None:
    """DynamoDB refuses most mistakes itself; these two it would take, or bill for nothing."""
    if not 1 <= len(transaction.actions) <= ACTIONS_PER_TRANSACTION_MAX:
        raise StoreRequestInvalid(f"transaction {transaction.name}: {len(transaction.actions)} actions")
    if all(isinstance(action, Check) for action in transaction.actions):
        raise StoreRequestInvalid(f"transaction {transaction.name}: it writes nothing")


def _distinct_by_key(actions: Sequence[Put | Delete]) -> dict[Key, Put | Delete]:
    """DynamoDB refuses a key that comes twice in one call; identical repeats are harmless and are sent once."""
    distinct: dict[Key, Put | Delete] = {}
    for action in actions:
        if action.condition is not None:
            raise StoreRequestInvalid(f"{action.key}: batches have no conditions")
        if distinct.setdefault(action.key, action) != action:
            raise StoreRequestInvalid(f"{action.key}: two different actions of one batch")
    return distinct
