"""What calls took and cost, told to whoever listens: for metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeAlias

from tidegate_core.rows.store_operations import Table
from tidegate_dynamo.capacity_units import (
    REFUSED,
    TRANSACTIONS,
    Kind,
    answered_units,
    by_table,
    computed_units,
    kind_of,
)
from tidegate_dynamo.request_builder import Request
from tidegate_dynamo.store_calls import Call
from tidegate_dynamo.write_outcomes import FAILURES, ForeignAnswer, error_code

Observer: TypeAlias = Callable[[str, str, float], None]
"""Told of each call: operation, outcome (`ok` or an error's code) and seconds. Must not raise."""

UnitsListener: TypeAlias = Callable[[str, Table, Kind, float], None]
"""Told what each call cost: operation, table, `read` or `write`, and units. Must not raise."""

_PARTS: Final = {
    "batch_write_item": ("UnprocessedItems",),
    "batch_get_item": ("Responses", "UnprocessedKeys"),
    "query": ("Items",),
}
"""What a whole answer always has."""


class Accounts:
    """Of one store.

    Args:
        table_of: Ours, by DynamoDB's name for it.
        observer: Told of each call.
        units: Told what each call cost; None asks the store for no figures.
    """

    def __init__(self, table_of: Mapping[str, Table], observer: Observer, units: UnitsListener | None) -> None:
        self._table_of = table_of
        self._observer = observer
        self._units = units

    def of(self, call: Call) -> Account:
        """Returns the context in which the call is made."""
        operation, request = call
        if self._units is not None and operation not in TRANSACTIONS:
            request = {**request, "ReturnConsumedCapacity": "TOTAL"}
        return Account(self, operation, request)

    def note(self, operation: str, request: Request, outcome: str, answer: Mapping[str, Any], seconds: float) -> None:
        self._observer(operation, outcome, seconds)
        if self._units is None:
            return
        if outcome in REFUSED or (outcome == "ok" and operation in TRANSACTIONS):
            units = computed_units(operation, request)
        elif outcome == "ok":
            units = answered_units(answer)
        else:
            return
        for table, count in by_table(units, self._table_of).items():
            self._units(operation, table, kind_of(operation), count)


class Account:
    """One call's: a context that is entered when the request goes out.

    Attributes:
        request: As it is to be sent.
        answer: To be set to what came, through `checked`.
    """

    __slots__ = ("_accounts", "_begun", "_operation", "answer", "request")

    def __init__(self, accounts: Accounts, operation: str, request: Request) -> None:
        self._accounts = accounts
        self._operation = operation
        self.request = request
        self.answer: Mapping[str, Any] = {}
        self._begun = 0.0

    def __enter__(self) -> Self:
        self._begun = time.monotonic()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        outcome = error_code(error) if isinstance(error, FAILURES) else "ok"
        if error is None or isinstance(error, FAILURES):
            seconds = time.monotonic() - self._begun
            self._accounts.note(self._operation, self.request, outcome, self.answer, seconds)

    def checked(self, answer: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the answer, and keeps it. Refuses one without what a whole one has, whatever client brought it.

        It would read as an item that is not there, or as a batch of which nothing was left over. The SDK's client makes such
        answers, with nothing but the text as `message`, of a proxy's page and of JSON that ends too early.

        Raises:
            ForeignAnswer: It is not whole.
        """
        self.answer = answer
        whole = "RequestId" in answer.get("ResponseMetadata", ()) and "message" not in answer
        if not whole or not all(part in answer for part in _PARTS.get(self._operation, ())):
            raise ForeignAnswer(f"{self._operation}: status 200, but not a whole answer of DynamoDB's")
        return answer
