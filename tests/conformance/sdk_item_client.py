"""The SDK's client for items, which ours replaced: what it is compared with, in answers and in CPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import botocore.session
from botocore.loaders import Loader

from tidegate_dynamo.client_factory import sdk_client
from tidegate_dynamo.settings import DynamoSettings

OPAQUE_SHAPES: Final = (
    "AttributeValue",
    "BatchGetItemOutput",
    "BatchWriteItemOutput",
    "DeleteItemOutput",
    "PutItemOutput",
    "QueryOutput",
    "TransactWriteItemsOutput",
    "UpdateItemOutput",
)
"""Shapes of the API that the SDK hands on as the JSON that they are."""


class _OpaqueAttributes(Loader):
    """Loads the API's description with `OPAQUE_SHAPES` as "documents", the SDK's word for JSON without a schema."""

    def load_service_model(self, service_name: str, type_name: str, api_version: str | None = None) -> Any:
        description = super().load_service_model(service_name, type_name, api_version)
        if type_name != "service-2":
            return description
        shapes = description["shapes"]
        # A copy: the loader caches what it has read.
        opaque = {name: {**shapes[name], "document": True} for name in OPAQUE_SHAPES}
        return {**description, "shapes": {**shapes, **opaque}}


class SdkItems:
    """Calls like `ItemsClient`, through the SDK; attribute values pass untouched.

    Args:
        settings: Of the store.
    """

    def __init__(self, settings: DynamoSettings) -> None:
        session = botocore.session.get_session()
        session.register_component("data_loader", _OpaqueAttributes(session.get_component("data_loader").search_paths))
        self._client = sdk_client(settings, session)

    def call(self, operation: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Sends one request and returns its decoded answer."""
        answer: Mapping[str, Any] = getattr(self._client, operation)(**request)
        return answer

    def close(self) -> None:
        self._client.close()
