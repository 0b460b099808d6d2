"""What DynamoDB's answers mean for a write: one function, one table of tests.

The question is always the same: was it applied? `Applied` yes; `Cancelled` and `Throttled` no; `Lost` nobody knows.
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
        # Access and tables can come back while a node runs (rotated credentials, a restored table), and nothing was
        # applied. `tidegate init --check` is where a wrong set-up is named.
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
"""No connection or no keys, no request: not applied. A pooled connection that breaks raises something else, which is `Lost`; so are
trouble with TLS or a proxy, which can come in the middle of an answer."""


class ForeignAnswer(Exception):
    """Status 200, but not from DynamoDB, or not whole: what became of the request is not known."""


FAILURES: Final = (ClientError, BotoCoreError, ResponseParserError, ForeignAnswer)
"""All that a call raises for what happened outside of this process."""
Failure: TypeAlias = ClientError | BotoCoreError | ResponseParserError | ForeignAnswer


def outcome_of(error: Failure, actions: int) -> RawOutcome:
    """Returns what a failed write of so many actions came to.

    Raises:
        StoreRequestInvalid: It can never work: its author's mistake.
    """
    if isinstance(error, ClientError):
        return _answered(error, actions)
    # Everything else (read time-out, broken connection, an answer that is no JSON) came after the request had left.
    return Throttled() if isinstance(error, NEVER_SENT) else Lost()


def error_code(error: Failure) -> str:
    """Returns a name for metrics: DynamoDB's code, or the class of what broke."""
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
        raise StoreRequestInvalid(f"DynamoDB refuses the request for good: {error}") from error
    # InternalServerError and 503 leave open what happened; TransactionInProgressException says that an earlier send is
    # still at work; and of a code that nobody knows, doubt is the safe reading.
    return Lost()


def _cancelled(error: ClientError, reasons: list[Mapping[str, Any]], actions: int) -> RawOutcome:
    if len(reasons) != actions:
        # Cancelled for certain, but it cannot be told by whom: send it again.
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
