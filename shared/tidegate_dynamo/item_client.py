"""The client for items: signs, sends once, decodes. What `store.py` calls; tables are made with the SDK's (`client_factory.py`).

No retries of any sort: a write whose answer was lost and which is sent again reports its own success as a failed condition
(aws-sdk-java#2667). Settling is ours (`transaction_sender.py`). No validation either: requests are built in one module.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pydantic_core import PydanticSerializationError, to_json

from tidegate_dynamo.credentials import KeysOnThreads, Provided
from tidegate_dynamo.http_connections import Connections, Route
from tidegate_dynamo.response_decoding import decoded_answer
from tidegate_dynamo.sigv4 import CONTENT_TYPE, Signer

if TYPE_CHECKING:
    from botocore.credentials import ReadOnlyCredentials

    from tidegate_dynamo.settings import DynamoSettings

API: Final = "DynamoDB_20120810"
OPERATIONS: Final = {
    "batch_get_item": "BatchGetItem",
    "batch_write_item": "BatchWriteItem",
    "delete_item": "DeleteItem",
    "put_item": "PutItem",
    "query": "Query",
    "transact_write_items": "TransactWriteItems",
    "update_item": "UpdateItem",
}
"""All that a store asks for: our name, which is the SDK's and the metrics', and the service's."""
USER_AGENT: Final = "tidegate"

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def body_of(request: Mapping[str, Any]) -> bytes:
    """Returns a request as JSON, whatever its texts contain: the store is to say what it makes of half a surrogate pair."""
    try:
        return to_json(request)  # A quarter of what the library's own encoder costs, which takes all that is in a text.
    except PydanticSerializationError:
        return _encode(request).encode()


class SignedRequests:
    """Makes the bytes of requests. Thread-safe.

    Args:
        route: To the endpoint.
    """

    def __init__(self, route: Route) -> None:
        self._signer = Signer(route.endpoint)
        # No compression: an answer is read as it is, and its checksum is of what was sent.
        shared = f"{route.request_head}User-Agent: {USER_AGENT}\r\nAccept-Encoding: identity\r\nContent-Type: {CONTENT_TYPE}\r\n"
        self._calls = {
            name: (operation, f"{API}.{operation}", f"{shared}X-Amz-Target: {API}.{operation}\r\n")
            for name, operation in OPERATIONS.items()
        }

    def of(self, operation: str, request: Mapping[str, Any], keys: ReadOnlyCredentials) -> tuple[str, bytes]:
        """Returns the operation as DynamoDB names it, and the whole request, signed with these keys.

        Raises:
            NoCredentialsError, botocore.exceptions.BotoCoreError: See `Signer.headers`.
        """
        name, target, head = self._calls[operation]
        body = body_of(request)
        signed = self._signer.headers(keys, target, body, time.time())
        return name, f"{head}{signed}Content-Length: {len(body)}\r\n\r\n".encode("latin-1") + body


class ItemsClient:
    """Calls DynamoDB's operations on items, blocking. Thread-safe.

    Args:
        provided: The keys: what the SDK's chain found, or will.
        route: To the endpoint.
        settings: The same.
    """

    def __init__(self, provided: Provided, route: Route, settings: DynamoSettings) -> None:
        self._keys = KeysOnThreads(provided)
        self._requests = SignedRequests(route)
        self._connections = Connections(route, settings.connections_max)

    def call(self, operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sends one request and returns its decoded answer; attribute values stay as JSON has them.

        Args:
            operation: One of `OPERATIONS`.
            request: As DynamoDB wants it.

        Raises:
            `outcomes.FAILURES`: What happened outside of this process.
        """
        name, message = self._requests.of(operation, request, self._keys.of_now())
        return decoded_answer(name, self._connections.exchange(message))

    def close(self) -> None:
        """Closes the connections that are idle."""
        self._connections.close()
