"""The client for items on a loop: signs, sends once, decodes, as `item_client.py` does on threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tidegate_dynamo.async_http_connections import AsyncConnections
from tidegate_dynamo.credentials import KeysOnLoop, Provided
from tidegate_dynamo.http_connections import Route
from tidegate_dynamo.item_client import SignedRequests
from tidegate_dynamo.response_decoding import decoded_answer
from tidegate_ports.store import always

if TYPE_CHECKING:
    from tidegate_dynamo.settings import DynamoSettings


class AsyncItemsClient:
    """Calls DynamoDB's operations on items. Of one loop, from its first call on.

    Args:
        provided: The keys: what the SDK's chain found, or will.
        route: To the endpoint, without a proxy on the way.
        settings: The same.
    """

    def __init__(self, provided: Provided, route: Route, settings: DynamoSettings) -> None:
        self._keys = KeysOnLoop(provided)
        self._requests = SignedRequests(route)
        self._connections = AsyncConnections(route, settings)

    async def call(
        self, operation: str, request: Mapping[str, Any], may_leave: Callable[[], bool] = always
    ) -> Mapping[str, Any]:
        """Sends one request and returns its decoded answer; attribute values stay as JSON has them.

        Args:
            operation: One of `items_client.OPERATIONS`.
            request: As DynamoDB wants it.
            may_leave: Asked behind the waits for keys and a connection.

        Raises:
            NotSent: It may not leave.
            `outcomes.FAILURES`: What happened outside of this process.
        """
        name, message = self._requests.of(operation, request, await self._keys.of_now())
        return decoded_answer(name, await self._connections.exchange(message, may_leave))

    def close(self) -> None:
        """Closes the connections that are idle."""
        self._connections.close()
