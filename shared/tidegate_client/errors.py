"""Errors of the client. The class states the next step, and `remedy` describes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate_client.views import FieldProblem, ReceiptView


class TidegateError(Exception):
    """Base class of all errors of the client.

    Attributes:
        remedy: Next step for the user.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


class ApiUnreachable(TidegateError):
    """No server answers at the address: start the API, or correct the address."""


class ApiUnavailable(TidegateError):
    """The API, or a brick that it needs, is down for now: repeat later. Repeat a write with the request id of
    `remedy`.
    """

    def __init__(self, message: str, remedy: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message, remedy)
        self.retry_after_s = retry_after_s


class ApiFailed(TidegateError):
    """An unexpected answer; the API's log has more under the request id."""


class InvalidRequest(TidegateError):
    """The input must be corrected.

    Attributes:
        problems: Problems by field.
    """

    def __init__(self, message: str, problems: Sequence[FieldProblem] = (), remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.problems = tuple(problems)


class NotFound(TidegateError):
    """The requested item does not exist."""


class Conflict(TidegateError):
    """The item's state does not allow the action: check it, then decide.

    Attributes:
        receipt: Answer of the owner, if it reached the owner.
    """

    def __init__(self, message: str, remedy: str = "", receipt: ReceiptView | None = None) -> None:
        super().__init__(message, remedy)
        self.receipt = receipt


class AnswerPending(TidegateError):
    """The request is on its topic, but was not answered in time. It will be applied; ask again for its receipt.

    Attributes:
        receipt: Receipt with the status `pending`.
        location: Path of the receipt.
        receipts: All receipts of a batch, in its order. One that is pending with `errors` was probably not accepted;
            its errors say how to send it again.
    """

    def __init__(
        self,
        message: str,
        receipt: ReceiptView,
        location: str,
        remedy: str = "",
        receipts: Sequence[ReceiptView] = (),
    ) -> None:
        super().__init__(message, remedy)
        self.receipt = receipt
        self.location = location
        self.receipts = tuple(receipts) or (receipt,)

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickling rebuilds an exception from its message alone, and fails. A worker process would die of it, and its
        # pool too.
        made_of = (self.message, self.receipt, self.location, self.remedy, self.receipts)
        return type(self), made_of, self.__dict__
