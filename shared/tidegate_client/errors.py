"""What can go wrong when speaking with the API. The class states the next step, `remedy` says it in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate_client.views import FieldProblem, ReceiptView


class TidegateError(Exception):
    """Base of all errors of the client.

    Attributes:
        remedy: What to do.
    """

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


class ApiUnreachable(TidegateError):
    """Nothing answers at the address: start the API, or correct the address."""


class ApiUnavailable(TidegateError):
    """The API, or a brick behind it, is down for now: repeat later. A write is repeated under the request id of `remedy`."""

    def __init__(self, message: str, remedy: str = "", retry_after_s: float | None = None) -> None:
        super().__init__(message, remedy)
        self.retry_after_s = retry_after_s


class ApiFailed(TidegateError):
    """An answer that nobody foresaw; the API's log has more under the request id."""


class InvalidRequest(TidegateError):
    """The input has to be corrected.

    Attributes:
        problems: What is wrong, field by field.
    """

    def __init__(self, message: str, problems: Sequence[FieldProblem] = (), remedy: str = "") -> None:
        super().__init__(message, remedy)
        self.problems = tuple(problems)


class NotFound(TidegateError):
    """There is no such thing."""


class Conflict(TidegateError):
    """The thing is in a state that does not allow it: look at it, then decide.

    Attributes:
        receipt: The owner's answer, where it came so far.
    """

    def __init__(self, message: str, remedy: str = "", receipt: ReceiptView | None = None) -> None:
        super().__init__(message, remedy)
        self.receipt = receipt


class AnswerPending(TidegateError):
    """The request is on its topic, and nobody has answered it in time. It will be applied; ask again for its receipt.

    Attributes:
        receipt: With status `pending`.
        location: Path to ask at.
        receipts: Of a batch: all of them, in its order. One that is pending with `errors` was not taken as far as is known; these
            say how to send it again.
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
        # Pickled, an exception is made anew of its message alone: a worker process would end for its error, and its pool with it.
        made_of = (self.message, self.receipt, self.location, self.remedy, self.receipts)
        return type(self), made_of, self.__dict__
