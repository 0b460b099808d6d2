"""Duration and cost of calls, passed to observers for metrics."""

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
"""Called after each call with the operation, its outcome (`ok` or an error's code) and seconds. Must not raise."""

UnitsListener: TypeAlias = Callable[[str, Table, Kind, float], None]
"""Called with the cost of each call: operation, table, `read` or `write`, and units. Must not raise."""

_PARTS: Final = {
    "batch_write_item": ("UnprocessedItems",),
    "batch_get_item": ("Responses", "UnprocessedKeys"),
    "query": ("Items",),
}
"""Parts that every whole answer contains, by operation."""


class Accounts:
    """Cost accounting of one store.

    Args:
        table_of: Our table names by DynamoDB's names.
        observer: Called after each call.
        units: Receives the cost of each call; None requests no figures from the store.
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
    """Accounting of one call: a context that is entered when the request is sent.

    Attributes:
        request: Request to send.
        answer: Answer received, set through `checked`.
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
        """Stores and returns a whole answer.

        An incomplete answer would read as a missing item, or as a batch without unprocessed entries. The SDK's client
        makes such answers, with only the text as `message`, from a proxy's page and from JSON that ends early.

        Raises:
            ForeignAnswer: The answer is incomplete.
        """
        self.answer = answer
        whole = "RequestId" in answer.get("ResponseMetadata", ()) and "message" not in answer
        if not whole or not all(part in answer for part in _PARTS.get(self._operation, ())):
            raise ForeignAnswer(f"{self._operation}: status 200, but not a whole answer of DynamoDB's")
        return answer
