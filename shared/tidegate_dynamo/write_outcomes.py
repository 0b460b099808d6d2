"""Maps DynamoDB's answers to the outcome of a write: one function, one table of tests.

The question is always whether the write was applied. `Applied`: yes. `Cancelled` and `Throttled`: no. `Lost`: unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.parsers import ResponseParserError

from tidegate_core.rows.store_operations import Cancelled, Lost, RawOutcome, RefusalCode, Throttled
from tidegate_dynamo.attribute_values import decoded_item
from tidegate_ports.store import StoreRequestInvalid

CONDITION_FAILED: Final = "ConditionalCheckFailed"

TURNED_AWAY: Final = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
        "RequestThrottled",
        "RequestThrottledException",
        "TooManyRequestsException",
        "LimitExceededException",
        # Access and tables can return while a node runs (rotated credentials, a restored table), and nothing was
        # applied. `tidegate init --check` reports a wrong set-up.
        "AccessDeniedException",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "MissingAuthenticationToken",
        "ResourceInUseException",
        "ResourceNotFoundException",
        "TableNotFoundException",
        "UnrecognizedClientException",
    }
)
AUTHORS_MISTAKES: Final = frozenset(
    {
        "IdempotentParameterMismatchException",
        "ItemCollectionSizeLimitExceededException",
        "SerializationException",
        "ValidationException",
    }
)
NEVER_SENT: Final = (
    ConnectTimeoutError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    PartialCredentialsError,
)
"""Failures without a connection or keys: no request was sent. A pooled connection that breaks raises another class and
counts as `Lost`. So do failures of TLS or a proxy, which can occur in the middle of an answer."""


class ForeignAnswer(Exception):
    """The status is 200, but the answer is incomplete or not DynamoDB's: the request's outcome is unknown."""


FAILURES: Final = (ClientError, BotoCoreError, ResponseParserError, ForeignAnswer)
"""All exceptions that a call raises for failures outside this process."""
Failure: TypeAlias = ClientError | BotoCoreError | ResponseParserError | ForeignAnswer


def outcome_of(error: Failure, actions: int) -> RawOutcome:
    """Returns the outcome of a failed write with so many actions.

    Raises:
        StoreRequestInvalid: The request can never work; the caller has a bug.
    """
    if isinstance(error, ClientError):
        return _answered(error, actions)
    # All others (read time-out, broken connection, an answer that is not JSON) came after the request was sent.
    return Throttled() if isinstance(error, NEVER_SENT) else Lost()


def error_code(error: Failure) -> str:
    """Returns a name for metrics: DynamoDB's code, or the class of the exception."""
    return _code(error) if isinstance(error, ClientError) else type(error).__name__


def _answered(error: ClientError, actions: int) -> RawOutcome:
    code = _code(error)
    response: Mapping[str, Any] = error.response
    if code == "ConditionalCheckFailedException":
        return Cancelled((RefusalCode(CONDITION_FAILED, _stored_item(response)),))
    if code == "TransactionConflictException":
        return Cancelled((RefusalCode("TransactionConflict"),))
    if code == "TransactionCanceledException":
        return _cancelled(error, response.get("CancellationReasons", ()), actions)
    if code in TURNED_AWAY:
        return Throttled()
    if code in AUTHORS_MISTAKES:
        raise StoreRequestInvalid(f"DynamoDB will always refuse this request: {error}") from error
    # After InternalServerError and 503 the outcome is unknown. TransactionInProgressException: an earlier send is still
    # being carried out. For an unknown code, `Lost` is the safe reading.
    return Lost()


def _cancelled(error: ClientError, reasons: list[Mapping[str, Any]], actions: int) -> RawOutcome:
    if len(reasons) != actions:
        # Certainly cancelled, but the refusing action is unknown: the caller sends it again.
        return Throttled()
    codes = tuple(RefusalCode(reason.get("Code", "None"), _stored_item(reason)) for reason in reasons)
    if any(reason.code == "ValidationError" for reason in codes) and not any(
        reason.code == CONDITION_FAILED for reason in codes
    ):
        raise StoreRequestInvalid(f"DynamoDB cannot compute the transaction: {error}") from error
    return Cancelled(codes)


def _stored_item(holder: Mapping[str, Any]) -> dict[str, Any] | None:
    attributes = holder.get("Item")
    return decoded_item(attributes) if attributes else None


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
