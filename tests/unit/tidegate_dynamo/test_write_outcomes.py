from typing import Any

import pytest
from botocore.exceptions import (
    ClientError,
    ConnectionClosedError,
    ConnectTimeoutError,
    EndpointConnectionError,
    HTTPClientError,
    NoCredentialsError,
    ProxyConnectionError,
    ReadTimeoutError,
    SSLError,
)
from botocore.parsers import ResponseParserError

from tidegate_core.rows.store_operations import Cancelled, Lost, RawOutcome, RefusalCode, Throttled
from tidegate_dynamo.write_outcomes import Failure, ForeignAnswer, error_code, outcome_of
from tidegate_ports.store import StoreRequestInvalid

URL = "http://store.test"
STORED = {"pk": {"S": "a"}, "epoch": {"N": "3"}}
NONE = {"Code": "None"}
FAILED = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed", "Item": STORED}
FAILED_ABSENT = {"Code": "ConditionalCheckFailed"}


def answered(code: str, **parts: Any) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": "because"}} | parts
    return ClientError(response, "TransactWriteItems")


def cancelled(*reasons: dict[str, Any]) -> ClientError:
    return answered("TransactionCanceledException", CancellationReasons=list(reasons))


def reasons(*codes: str) -> Cancelled:
    return Cancelled(tuple(RefusalCode(code) for code in codes))


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        pytest.param(
            cancelled(NONE, FAILED, FAILED_ABSENT),
            Cancelled(
                (
                    RefusalCode("None"),
                    RefusalCode("ConditionalCheckFailed", {"pk": "a", "epoch": 3}),
                    RefusalCode("ConditionalCheckFailed"),
                )
            ),
            id="conditions, with what is stored",
        ),
        pytest.param(
            cancelled(NONE, {"Code": "TransactionConflict"}, FAILED_ABSENT),
            reasons("None", "TransactionConflict", "ConditionalCheckFailed"),
            id="conflict and condition",
        ),
        pytest.param(
            cancelled(NONE, {"Code": "ThrottlingError"}, {"Code": "ProvisionedThroughputExceeded"}),
            reasons("None", "ThrottlingError", "ProvisionedThroughputExceeded"),
            id="throttled inside",
        ),
        pytest.param(
            cancelled(NONE, {"Code": "ValidationError"}, FAILED_ABSENT),
            reasons("None", "ValidationError", "ConditionalCheckFailed"),
            id="refused, and what could then not be computed",
        ),
        pytest.param(cancelled(NONE), Throttled(), id="reasons that do not match the actions"),
        pytest.param(answered("TransactionCanceledException"), Throttled(), id="no reasons at all"),
        pytest.param(answered("TransactionInProgressException"), Lost(), id="an earlier send is at work"),
        pytest.param(answered("ProvisionedThroughputExceededException"), Throttled(), id="table throttled"),
        pytest.param(answered("RequestLimitExceeded"), Throttled(), id="account throttled"),
        pytest.param(answered("ThrottlingException"), Throttled(), id="throttled"),
        pytest.param(answered("ExpiredTokenException"), Throttled(), id="credentials ran out"),
        pytest.param(answered("ResourceNotFoundException"), Throttled(), id="no table"),
        pytest.param(answered("InternalServerError"), Lost(), id="500"),
        pytest.param(answered("ServiceUnavailable"), Lost(), id="503"),
        pytest.param(answered("502"), Lost(), id="a proxy's page"),
        pytest.param(answered("SomethingNewException"), Lost(), id="a code that nobody knows"),
        pytest.param(ConnectTimeoutError(endpoint_url=URL), Throttled(), id="connect timed out: never sent"),
        pytest.param(EndpointConnectionError(endpoint_url=URL), Throttled(), id="refused or unresolvable: never sent"),
        pytest.param(NoCredentialsError(), Throttled(), id="no credentials: never sent"),
        pytest.param(ReadTimeoutError(endpoint_url=URL), Lost(), id="read timed out"),
        pytest.param(ConnectionClosedError(endpoint_url=URL), Lost(), id="connection broke"),
        pytest.param(HTTPClientError(error="odd"), Lost(), id="any other trouble"),
        pytest.param(SSLError(endpoint_url=URL, error=OSError("odd")), Lost(), id="TLS broke, maybe in the answer"),
        pytest.param(ProxyConnectionError(proxy_url=URL), Lost(), id="proxy broke, maybe in the answer"),
        pytest.param(ResponseParserError("<html>"), Lost(), id="an answer that is no JSON"),
        pytest.param(ForeignAnswer("no request id"), Lost(), id="somebody else's answer"),
    ],
)
def test_given_a_failed_transaction_of_three_then_it_is_known_whether_it_was_applied(
    error: Failure, outcome: RawOutcome
) -> None:
    assert outcome_of(error, 3) == outcome


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        pytest.param(
            answered("ConditionalCheckFailedException", Item=STORED),
            Cancelled((RefusalCode("ConditionalCheckFailed", {"pk": "a", "epoch": 3}),)),
            id="condition",
        ),
        pytest.param(
            answered("ConditionalCheckFailedException"), reasons("ConditionalCheckFailed"), id="condition, no item"
        ),
        pytest.param(answered("TransactionConflictException"), reasons("TransactionConflict"), id="conflict"),
    ],
)
def test_given_a_failed_single_write_then_it_reads_as_a_transaction_of_one(
    error: ClientError, outcome: RawOutcome
) -> None:
    assert outcome_of(error, 1) == outcome


@pytest.mark.parametrize(
    "error",
    [
        answered("ValidationException"),
        answered("IdempotentParameterMismatchException"),
        answered("ItemCollectionSizeLimitExceededException"),
        cancelled(NONE, {"Code": "ValidationError"}, NONE),
        cancelled(NONE, {"Code": "ValidationError"}, {"Code": "TransactionConflict"}),
    ],
)
def test_given_a_request_that_can_never_work_then_its_author_hears_of_it(error: ClientError) -> None:
    with pytest.raises(StoreRequestInvalid, match=r"because|compute"):
        outcome_of(error, 3)


def test_given_an_error_then_metrics_get_a_short_name() -> None:
    assert error_code(answered("ThrottlingException")) == "ThrottlingException"
    assert error_code(ReadTimeoutError(endpoint_url=URL)) == "ReadTimeoutError"
