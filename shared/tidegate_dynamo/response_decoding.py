"""Decodes DynamoDB's HTTP answers to the body, or to the SDK's error for them. Pure.

The error classes are the SDK's, so that `write_outcomes.py` treats failures of both clients alike.
"""

from __future__ import annotations

import json
from binascii import crc32
from collections.abc import Mapping
from http.client import responses
from typing import Any, Final

from botocore.exceptions import ChecksumError, ClientError

from tidegate_dynamo.http_response import Answer
from tidegate_dynamo.write_outcomes import ForeignAnswer

MESSAGE_CHARACTERS_MAX: Final = 500
"""Longest text taken from a proxy's page that came instead of an answer."""
REFUSAL_PARTS: Final = {"CancellationReasons": list, "Item": dict}
"""Parts of a refusal apart from its message, with their types."""


def decoded_answer(operation: str, answer: Answer) -> Mapping[str, Any]:
    """Returns the body of a call's answer, with the request's id in `ResponseMetadata`.

    Args:
        operation: DynamoDB's name of the operation, such as `PutItem`.
        answer: Whole answer.

    Raises:
        ClientError: DynamoDB, or a server on the way, answered with an error.
        ChecksumError: The body differs from the one that was sent.
        ForeignAnswer: The status is 2xx, but the answer is not DynamoDB's.
    """
    _check_sum(answer)
    body = _json(answer.body)
    if answer.status >= 300:
        raise _refusal(operation, answer, body)
    if body is None or "x-amzn-requestid" not in answer.headers:
        raise ForeignAnswer(f"{operation}: status {answer.status}, but not an answer of DynamoDB's")
    body["ResponseMetadata"] = _metadata(answer)
    return body


def _check_sum(answer: Answer) -> None:
    said = answer.headers.get("x-amz-crc32")
    if said is not None and said != str(computed := crc32(answer.body)):
        raise ChecksumError(checksum_type="crc32", expected_checksum=said, actual_checksum=str(computed))


def _json(body: bytes) -> dict[str, Any] | None:
    try:
        decoded = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return decoded if isinstance(decoded, dict) else None


def _refusal(operation: str, answer: Answer, body: Mapping[str, Any] | None) -> ClientError:
    named = body or {}
    kind = named.get("__type")
    # "com.amazonaws.dynamodb.v20120810#ThrottlingException", also without the part up to `#`, or with a URL after `:`.
    code = kind.split(":", 1)[0].rsplit("#", 1)[-1] if isinstance(kind, str) else str(answer.status)
    message = named.get("message") or named.get("Message")
    if body is None:
        page = answer.body[:MESSAGE_CHARACTERS_MAX].decode("utf-8", "replace").strip()
        message = page or responses.get(answer.status, "")
    response: Any = {
        "Error": {"Code": code, "Message": str(message or "")},
        "ResponseMetadata": _metadata(answer),
        **{part: named[part] for part, kept in REFUSAL_PARTS.items() if isinstance(named.get(part), kept)},
    }
    return ClientError(response, operation)


def _metadata(answer: Answer) -> dict[str, Any]:
    metadata: dict[str, Any] = {"HTTPStatusCode": answer.status}
    if "x-amzn-requestid" in answer.headers:
        metadata["RequestId"] = answer.headers["x-amzn-requestid"]
    return metadata
