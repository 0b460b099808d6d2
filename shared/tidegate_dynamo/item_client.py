"""Item client: signs, sends once and decodes. `store.py` calls it; tables are created with the SDK's client
(`client_factory.py`).

It makes no retries. If a write's answer is lost and the write is sent again, it reports its own success as a failed
condition (aws-sdk-java#2667). `transaction_sender.py` settles such cases. It makes no validation either: one module
builds all requests.
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
"""All operations of a store: our name, which the SDK and the metrics use as well, and the service's name."""
USER_AGENT: Final = "tidegate"

_encode = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def body_of(request: Mapping[str, Any]) -> bytes:
    """Returns a request as JSON, whatever its texts contain: the store decides about half a surrogate pair."""
    try:
        return to_json(request)  # A quarter of the cost of the standard encoder, which accepts any text.
    except PydanticSerializationError:
        return _encode(request).encode()


class SignedRequests:
    """Builds the bytes of requests. Thread-safe.

    Args:
        route: Route to the endpoint.
    """

    def __init__(self, route: Route) -> None:
        self._signer = Signer(route.endpoint)
        # No compression: answers are parsed as they are, and their checksum covers the bytes that were sent.
        shared = f"{route.request_head}User-Agent: {USER_AGENT}\r\nAccept-Encoding: identity\r\nContent-Type: {CONTENT_TYPE}\r\n"
        self._calls = {
            name: (operation, f"{API}.{operation}", f"{shared}X-Amz-Target: {API}.{operation}\r\n")
            for name, operation in OPERATIONS.items()
        }

    def of(self, operation: str, request: Mapping[str, Any], keys: ReadOnlyCredentials) -> tuple[str, bytes]:
        """Returns DynamoDB's name of the operation and the whole request, signed with these keys.

        Raises:
            NoCredentialsError, botocore.exceptions.BotoCoreError: See `Signer.headers`.
        """
        name, target, head = self._calls[operation]
        body = body_of(request)
        signed = self._signer.headers(keys, target, body, time.time())
        return name, f"{head}{signed}Content-Length: {len(body)}\r\n\r\n".encode("latin-1") + body


class ItemsClient:
    """Calls DynamoDB's item operations, blocking. Thread-safe.

    Args:
        provided: Credentials, found already or to be found later.
        route: Route to the endpoint.
        settings: Settings of the store.
    """

    def __init__(self, provided: Provided, route: Route, settings: DynamoSettings) -> None:
        self._keys = KeysOnThreads(provided)
        self._requests = SignedRequests(route)
        self._connections = Connections(route, settings.connections_max)

    def call(self, operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sends one request and returns its decoded answer; attribute values stay in their JSON form.

        Args:
            operation: Key of `OPERATIONS`.
            request: Request in DynamoDB's form.

        Raises:
            `write_outcomes.FAILURES`: The store, the network or the credentials failed.
        """
        name, message = self._requests.of(operation, request, self._keys.of_now())
        return decoded_answer(name, self._connections.exchange(message))

    def close(self) -> None:
        """Closes idle connections."""
        self._connections.close()
