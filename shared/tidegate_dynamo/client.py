"""The low-level client: no validation on our side, no retries of its own, short time-outs.

The SDK's retries are off because a write whose answer was lost and which is sent again reports its own success as a
failed condition (aws-sdk-java#2667): settling is ours (`settled.py`). Its validation is off because the requests are
built in one module and tested against DynamoDB Local.

Attribute values pass through the SDK untouched: its generic walk through them costs several times the CPU of our own
translation (`attribute_values.py`), which is made for exactly this form. Measured with rows of 9 attributes and 200
bytes of payload: an item of a query 41 -> 10 µs of CPU, one of a batched read 56 -> 27 µs, an action of a large transaction
106 -> 83 µs, a batched write 65 -> 58 µs. A call by itself costs 0.75 ms, whatever it carries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import botocore.session
from botocore.config import Config
from botocore.loaders import Loader

from tidegate_dynamo.settings import DynamoSettings

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

FALLBACK_REGION: Final = "us-east-1"
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


class Access(NamedTuple):
    """Region and credentials for a client; None leaves them to the SDK's chain."""

    region: str | None
    access_key_id: str | None = None
    secret_access_key: str | None = None


def make_client(settings: DynamoSettings) -> DynamoDBClient:
    """Returns a thread-safe client; making one costs a tenth of a second and opens no connection."""
    session = botocore.session.get_session()
    session.register_component("data_loader", _OpaqueAttributes(session.get_component("data_loader").search_paths))
    access = access_for(settings, session)
    client: DynamoDBClient = session.create_client(  # type: ignore[assignment]  # botocore types its clients as one class
        "dynamodb",
        region_name=access.region,
        endpoint_url=settings.endpoint_url,
        aws_access_key_id=access.access_key_id,
        aws_secret_access_key=access.secret_access_key,
        config=Config(
            parameter_validation=False,
            retries={"total_max_attempts": 1, "mode": "standard"},
            connect_timeout=settings.connect_timeout_s,
            read_timeout=settings.read_timeout_s,
            max_pool_connections=settings.connections_max,
            tcp_keepalive=True,
        ),
    )
    return client


def access_for(settings: DynamoSettings, session: botocore.session.Session) -> Access:
    """Decides on region and credentials.

    The SDK's standard chain (environment, profile, container and instance roles) comes first. Dummy credentials are used
    only for an explicit endpoint, and only when the chain finds none: DynamoDB Local wants a signature and checks nothing.
    """
    region = settings.region or session.get_config_variable("region")
    if settings.endpoint_url is None:
        return Access(region)
    region = region or FALLBACK_REGION
    if session.get_credentials() is not None:
        return Access(region)
    return Access(region, "tidegate", "tidegate")
