"""Creates the clients of one store: our own for items, on threads and on a loop, and the SDK's for tables.

The SDK's client costs 0.75 ms of CPU a call, whatever the call carries, and an idle node with 256 shards made 87 calls
a second. So frequent calls go through `item_client.py` at a tenth of that cost. Calls made once, when a cluster is set
up, stay with the SDK (docs/internals/decisions/0029-a-thin-client-for-items.md). Its client is closed after them, because it
holds 8 MB. For both clients the SDK decides region, credentials, endpoint, proxies and certificates.

All clients have short time-outs and make no retries. If a write's answer is lost and the write is sent again, it
reports its own success as a failed condition (aws-sdk-java#2667). `transaction_sender.py` settles such cases.
"""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

import botocore.session
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, CredentialRetrievalError, NoRegionError

from tidegate_dynamo.async_item_client import AsyncItemsClient
from tidegate_dynamo.credentials import CHAIN, Later, Provided, keys_of
from tidegate_dynamo.endpoint import resolved_endpoint
from tidegate_dynamo.http_connections import Route
from tidegate_dynamo.item_client import ItemsClient
from tidegate_dynamo.settings import DynamoSettings

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

FALLBACK_REGION: Final = "us-east-1"
MADE_UP: Final = ("tidegate", "tidegate")
"""Access key and secret for a store that checks no signatures."""
UNUSABLE: Final = (BotoCoreError, ValueError)
"""Exceptions that `make_client` raises for settings that cannot work."""


def why_unusable(error: Exception) -> str:
    """Returns the text for the operator for one of the `UNUSABLE` exceptions."""
    if isinstance(error, NoRegionError):
        return "dynamodb.region is not set, and the AWS SDK finds none either: set it"
    return f"dynamodb: {error}"


class Access(NamedTuple):
    """Region and credentials of a client; None leaves the choice to the SDK's chain."""

    region: str | None
    access_key_id: str | None = None
    secret_access_key: str | None = None


@dataclass(frozen=True, slots=True)
class DynamoClient:
    """Clients for items: all that a store needs.

    Attributes:
        items: Client for any number of threads.
        on_loop: Client for one loop; None with a proxy, which it does not support.
    """

    items: ItemsClient
    on_loop: AsyncItemsClient | None

    def close(self) -> None:
        """Closes idle connections of `items`; those of `on_loop` are closed on its loop."""
        self.items.close()


def make_client(settings: DynamoSettings) -> DynamoClient:
    """Returns the clients of one store. Creating them takes a tenth of a second and opens no connection.

    Raises:
        ValueError: The endpoint cannot be used, or the trusted certificates cannot be read.
        botocore.exceptions.BotoCoreError: There is no region, or the SDK's configuration is wrong.
    """
    session = botocore.session.get_session()
    # This client only resolves the endpoint and signs nothing. So it needs no keys, which may not be available yet.
    with closing(_sdk_client(settings, session, Access(_region(settings, session), *MADE_UP))) as sdk:
        route = Route(resolved_endpoint(sdk), settings, session.get_config_variable("ca_bundle"))
    credentials = _provided(settings, session)
    on_loop = AsyncItemsClient(credentials, route, settings) if route.is_direct else None
    return DynamoClient(ItemsClient(credentials, route, settings), on_loop)


def _provided(settings: DynamoSettings, session: botocore.session.Session) -> Provided:
    """Returns the credentials for signing. Raises only for wrong configuration: the source of keys may be away for a
    while.
    """
    try:
        access = access_for(settings, session)
        if access.access_key_id is not None and access.secret_access_key is not None:
            return Credentials(access.access_key_id, access.secret_access_key)
        return _found(session) or Later(session.get_credentials)
    except CredentialRetrievalError:
        return Later(session.get_credentials)


def sdk_client(settings: DynamoSettings, session: botocore.session.Session | None = None) -> DynamoDBClient:
    """Returns the SDK's client, which sends a request once. It is thread-safe, and the caller closes it.

    Args:
        settings: Settings of the store.
        session: Session of the SDK; None creates one.

    Raises:
        botocore.exceptions.BotoCoreError: There is no region, the SDK's configuration is wrong, or its chain failed.
    """
    session = session or botocore.session.get_session()
    access = access_for(settings, session)
    if access.access_key_id is None and (credentials := _found(session)) is not None:
        keys_of(credentials)  # A failed fetch is raised here; later it would come out of a call as any exception.
    return _sdk_client(settings, session, access)


def _sdk_client(settings: DynamoSettings, session: botocore.session.Session, access: Access) -> DynamoDBClient:
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
            # The region's endpoint serves every account and does not change while a node runs.
            account_id_endpoint_mode="disabled",
        ),
    )
    return client


def access_for(settings: DynamoSettings, session: botocore.session.Session) -> Access:
    """Decides on region and credentials.

    The SDK's standard chain (environment, profile, container and instance roles) comes first. Dummy credentials are
    used only if the chain finds none and the endpoint may be DynamoDB Local, which requires a signature but does not
    check it. For any other endpoint, such as a VPC's, a role may answer late.

    Raises:
        botocore.exceptions.CredentialRetrievalError: The chain failed.
    """
    region = _region(settings, session)
    if settings.endpoint_url is None or not _may_be_local(settings.endpoint_url):
        return Access(region)
    if _found(session) is not None:
        return Access(region)
    return Access(region, *MADE_UP)


def _found(session: botocore.session.Session) -> Credentials | None:
    """Returns the credentials that the SDK's chain finds.

    Raises:
        botocore.exceptions.CredentialRetrievalError: The chain failed. The chain itself raises any exception it meets,
        for example for a missing token file or a missing credentials program. botocore.exceptions.BotoCoreError: The
        SDK's configuration is wrong.
    """
    try:
        return session.get_credentials()
    except BotoCoreError:
        raise
    except Exception as error:
        raise CredentialRetrievalError(provider=CHAIN, error_msg=f"{type(error).__name__}: {error}") from error


def _region(settings: DynamoSettings, session: botocore.session.Session) -> str | None:
    region: str | None = settings.region or session.get_config_variable("region")
    return region if settings.endpoint_url is None else region or FALLBACK_REGION


def _may_be_local(endpoint_url: str) -> bool:
    """Whether the endpoint may be DynamoDB Local.

    AWS requires TLS. DynamoDB Local has none; if a proxy adds TLS to it, the proxy runs on this host.
    """
    parts = urlsplit(endpoint_url)
    if parts.scheme == "http" or parts.hostname == "localhost":
        return True
    with suppress(ValueError):
        return ip_address(parts.hostname or "").is_loopback
    return False
