"""The store port on DynamoDB, for a loop. One attempt per call, as in `store.py`.

It uses no threads. Passing a call to a thread and its answer back costs more CPU than the call. While the loop
computes, the thread waits for the interpreter (figures in docs/internals/decisions/0031-the-store-on-the-loop.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from tidegate_core.rows.store_operations import Delete, Item, Key, Page, Put, RangeRead, RawOutcome, Transaction
from tidegate_dynamo.async_item_client import AsyncItemsClient
from tidegate_dynamo.call_metrics import Accounts, Observer, UnitsListener
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.store_calls import Call, Pause, Steps, StoreCalls
from tidegate_dynamo.write_outcomes import FAILURES
from tidegate_ports.store import always

_T = TypeVar("_T")


class AsyncDynamoStore:
    """Implements `tidegate_ports.store.AsyncStore` on two DynamoDB tables. Belongs to one loop.

    Args:
        client: Item client from `make_client`.
        settings: The settings given to `make_client`; `connections_max` bounds concurrent calls, and further ones wait
            in order.
        observer: Called after each call.
        units: Receives the cost of each call; None requests no figures from the store.
    """

    def __init__(
        self,
        client: AsyncItemsClient,
        settings: DynamoSettings,
        observer: Observer = lambda *_: None,
        units: UnitsListener | None = None,
    ) -> None:
        self._client = client
        self._calls = StoreCalls(settings)
        self._accounts = Accounts(self._calls.table_of, observer, units)
        self._room = asyncio.Semaphore(settings.connections_max)

    async def transact(self, transaction: Transaction) -> RawOutcome:
        return await self._gone_through(self._calls.transact(transaction))

    async def write(
        self, actions: Sequence[Put | Delete], may_leave: Callable[[], bool] = always
    ) -> Sequence[Put | Delete]:
        return await self._gone_through(self._calls.write(actions), may_leave)

    async def get(self, keys: Sequence[Key]) -> Mapping[Key, Item]:
        return await self._gone_through(self._calls.get(keys))

    async def query(self, wanted: RangeRead) -> Page:
        return await self._gone_through(self._calls.query(wanted))

    async def _gone_through(self, steps: Steps[_T], may_leave: Callable[[], bool] = always) -> _T:
        try:
            step = next(steps)
            while True:
                try:
                    answer = await self._taken(step, may_leave)
                except FAILURES as failure:
                    step = steps.throw(failure)
                else:
                    step = steps.send(answer)
        except StopIteration as end:
            result: _T = end.value
            return result

    async def _taken(self, step: Call | Pause, may_leave: Callable[[], bool]) -> Mapping[str, Any]:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return {}
        async with self._room:
            with self._accounts.of(step) as account:
                return account.checked(await self._client.call(step.operation, account.request, may_leave))
