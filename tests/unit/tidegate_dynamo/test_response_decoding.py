"""What answers say, beside what the SDK's own parser makes of them."""

import json
from binascii import crc32
from typing import Any

import pytest
from botocore.exceptions import ChecksumError, ClientError
from botocore.parsers import JSONParser

from tidegate_dynamo.http_response import Answer
from tidegate_dynamo.response_decoding import decoded_answer
from tidegate_dynamo.write_outcomes import ForeignAnswer

ID = {"x-amzn-requestid": "R1"}
REASONS = [{"Code": "None"}, {"Code": "ConditionalCheckFailed", "Message": "m", "Item": {"pk": {"S": "a"}}}]


def answer(status: int, body: bytes | dict[str, Any], **headers: str) -> Answer:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Answer(status, ID | {name.replace("_", "-"): value for name, value in headers.items()}, text, True)


def refusal(given: Answer) -> ClientError:
    with pytest.raises(ClientError) as raised:
        decoded_answer("PutItem", given)
    return raised.value


def test_given_a_body_then_it_comes_with_the_requests_id() -> None:
    assert decoded_answer("Query", answer(200, {"Items": []})) == {
        "Items": [],
        "ResponseMetadata": {"HTTPStatusCode": 200, "RequestId": "R1"},
    }


def test_given_a_checksum_then_it_has_to_be_the_bodys() -> None:
    body = b'{"Items": []}'
    assert decoded_answer("Query", answer(200, body, x_amz_crc32=str(crc32(body))))["Items"] == []
    for status in (200, 400, 500):
        with pytest.raises(ChecksumError):
            decoded_answer("Query", answer(status, body, x_amz_crc32="1"))


@pytest.mark.parametrize(
    "given",
    [
        pytest.param(Answer(200, {}, b"{}", True), id="no request id"),
        pytest.param(answer(200, b"<html>"), id="a page"),
        pytest.param(answer(200, b'{"Items": ['), id="cut"),
        pytest.param(answer(200, b"[]"), id="no object"),
        pytest.param(answer(200, b""), id="nothing"),
        pytest.param(answer(200, b"\xff\xfe{"), id="no text"),
        pytest.param(answer(200, b"[" * 100_000), id="endlessly deep"),
    ],
)
def test_given_what_dynamodb_would_not_say_then_it_is_foreign(given: Answer) -> None:
    with pytest.raises(ForeignAnswer, match="PutItem"):
        decoded_answer("PutItem", given)


@pytest.mark.parametrize(
    "given",
    [
        answer(400, {"__type": "com.amazonaws.dynamodb.v20120810#ThrottlingException", "message": "slow"}),
        answer(400, {"__type": "com.amazon.coral.service#UnrecognizedClientException", "message": "who"}),
        answer(400, {"__type": "ValidationException", "Message": "M"}),
        answer(400, {"__type": "x#ProvisionedThroughputExceededException:http://internal.amazon.com/coral/"}),
        answer(400, {"__type": "x#RequestLimitExceeded", "message": ""}),
        answer(400, {"message": "no type"}),
        answer(403, {}),
        answer(404, b"not json"),
        answer(500, {"__type": "x#InternalServerError", "message": "oops"}),
        answer(503, b"<html><body>busy</body></html>"),
        answer(503, b""),
        answer(307, b""),
    ],
)
def test_given_an_error_then_its_code_is_the_one_that_the_sdk_finds(given: Answer) -> None:
    raw = {"status_code": given.status, "headers": given.headers, "body": given.body}
    theirs = JSONParser().parse(raw, None)  # type: ignore[arg-type]  # wants a shape only for whole answers
    error = refusal(given)
    assert error.response["Error"]["Code"] == theirs["Error"]["Code"]
    if given.status < 500:
        message = theirs["Error"]["Message"]
        assert error.response["Error"]["Message"] == message or (not given.body and not message)
    assert error.operation_name == "PutItem"
    assert error.response["ResponseMetadata"]["RequestId"] == "R1"


def test_given_a_cancelled_transaction_then_its_reasons_come_with_what_is_stored() -> None:
    error = refusal(answer(400, {"__type": "x#TransactionCanceledException", "CancellationReasons": REASONS}))
    assert error.response["CancellationReasons"] == REASONS


def test_given_a_refused_condition_then_the_stored_item_comes_with_it() -> None:
    error = refusal(answer(400, {"__type": "x#ConditionalCheckFailedException", "Item": {"pk": {"S": "a"}}}))
    assert error.response["Item"] == {"pk": {"S": "a"}}  # type: ignore[typeddict-item]  # of this error only


@pytest.mark.parametrize("body", [{"__type": 7}, {"__type": None}, {"CancellationReasons": 7, "Item": "x"}, b"[1]"])
def test_given_a_body_of_other_types_then_the_status_is_all_that_is_known(body: Any) -> None:
    error = refusal(answer(400, body))
    assert error.response["Error"]["Code"] == "400"
    assert not {"CancellationReasons", "Item"} & error.response.keys()


def test_given_a_proxys_page_then_the_message_shows_its_beginning() -> None:
    error = refusal(answer(502, b"<html>" + b"x" * 10_000))
    assert error.response["Error"]["Message"].startswith("<html>xxx")
    assert len(error.response["Error"]["Message"]) <= 500
