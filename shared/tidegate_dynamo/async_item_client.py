"""Item client of a loop: signs, sends once and decodes, like `item_client.py` on threads."""

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
    """Calls DynamoDB's item operations. Belongs to one loop, from its first call on.

    Args:
        provided: Credentials, found already or to be found later.
        route: Route to the endpoint, without a proxy.
        settings: Settings of the store.
    """

    def __init__(self, provided: Provided, route: Route, settings: DynamoSettings) -> None:
        self._keys = KeysOnLoop(provided)
        self._requests = SignedRequests(route)
        self._connections = AsyncConnections(route, settings)

    async def call(
        self, operation: str, request: Mapping[str, Any], may_leave: Callable[[], bool] = always
    ) -> Mapping[str, Any]:
        """Sends one request and returns its decoded answer; attribute values stay in their JSON form.

        Args:
            operation: Key of `item_client.OPERATIONS`.
            request: Request in DynamoDB's form.
            may_leave: Checked after the waits for keys and a connection.

        Raises:
            NotSent: `may_leave` returned False.
            `write_outcomes.FAILURES`: The store, the network or the credentials failed.
        """
        name, message = self._requests.of(operation, request, await self._keys.of_now())
        return decoded_answer(name, await self._connections.exchange(message, may_leave))

    def close(self) -> None:
        """Closes idle connections."""
        self._connections.close()
