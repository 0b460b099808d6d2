"""The store port on DynamoDB, blocking. One attempt per call: `transaction_sender.py` settles and retries."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from tidegate_core.rows.store_operations import Delete, Item, Key, Page, Put, RangeRead, RawOutcome, Transaction
from tidegate_dynamo.call_metrics import Accounts, Observer, UnitsListener
from tidegate_dynamo.item_client import ItemsClient
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.store_calls import Call, Pause, Steps, StoreCalls
from tidegate_dynamo.write_outcomes import FAILURES

_T = TypeVar("_T")


class DynamoStore:
    """Implements `tidegate_ports.store.Store` on two DynamoDB tables. Thread-safe.

    Args:
        client: Item client from `make_client`.
        settings: The settings given to `make_client`.
        observer: Called after each call.
        units: Receives the cost of each call; None requests no figures from the store.
    """

    def __init__(
        self,
        client: ItemsClient,
        settings: DynamoSettings,
        observer: Observer = lambda *_: None,
        units: UnitsListener | None = None,
    ) -> None:
        self._client = client
        self._calls = StoreCalls(settings)
        self._accounts = Accounts(self._calls.table_of, observer, units)

    def transact(self, transaction: Transaction) -> RawOutcome:
        return self._gone_through(self._calls.transact(transaction))

    def write(self, actions: Sequence[Put | Delete]) -> Sequence[Put | Delete]:
        return self._gone_through(self._calls.write(actions))

    def get(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        return self._gone_through(self._calls.get(keys))

    def query(self, wanted: RangeRead) -> Page:
        return self._gone_through(self._calls.query(wanted))

    def _gone_through(self, steps: Steps[_T]) -> _T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = self._taken(step)
                except FAILURES as failure:
                    step = steps.throw(failure)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            result: _T = end.value
            return result

    def _taken(self, step: Call | Pause) -> Mapping[str, Any]:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return {}
        with self._accounts.of(step) as account:
            return account.checked(self._client.call(step.operation, account.request))
