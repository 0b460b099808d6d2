"""The clients of one store: ours for items, on threads and on a loop, the SDK's for tables. None retries; all have short time-outs.

The SDK's costs 0.75 ms of CPU a call, whatever the call carries, and an idle node with 256 shards made 87 a second. So what is asked all the time
goes through `item_client.py`, which does with a tenth of that; what is asked once, when a cluster is set up, stays with the
SDK (docs/internals/decisions/0029-a-thin-client-for-items.md), whose client is made for that and let go: it holds 8 MB. Region, credentials,
endpoint, proxies and certificates are the SDK's decisions for both.

Retries are off because a write whose answer was lost and which is sent again reports its own success as a failed condition
(aws-sdk-java#2667): settling is ours (`transaction_sender.py`).
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
"""Key and its secret, for who checks no signatures."""
UNUSABLE: Final = (BotoCoreError, ValueError)
"""What `make_client` raises of settings that cannot work."""


def why_unusable(error: Exception) -> str:
    """Returns what one of `UNUSABLE` says to whoever starts the process."""
    if isinstance(error, NoRegionError):
        return "dynamodb.region is not set, and the AWS SDK finds none either: name one"
    return f"dynamodb: {error}"


class Access(NamedTuple):
    """Region and credentials for a client; None leaves them to the SDK's chain."""

    region: str | None
    access_key_id: str | None = None
    secret_access_key: str | None = None


@dataclass(frozen=True, slots=True)
class DynamoClient:
    """The clients for what is in the tables: all that a store does.

    Attributes:
        items: For threads, any number of them.
        on_loop: The same for one loop; None where a proxy is on the way, of which it knows nothing.
    """

    items: ItemsClient
    on_loop: AsyncItemsClient | None

    def close(self) -> None:
        """Closes the connections that are idle; those of a loop are closed on it."""
        self.items.close()


def make_client(settings: DynamoSettings) -> DynamoClient:
    """Returns clients of one store; making them costs a tenth of a second and opens no connection.

    Raises:
        ValueError: An endpoint to which nothing can be sent, or trusted certificates that cannot be read.
        botocore.exceptions.BotoCoreError: There is no region, or the SDK's configuration is wrong.
    """
    session = botocore.session.get_session()
    # Asked for its endpoint, this one signs nothing: it needs no keys, which may not be there yet.
    with closing(_sdk_client(settings, session, Access(_region(settings, session), *MADE_UP))) as sdk:
        route = Route(resolved_endpoint(sdk), settings, session.get_config_variable("ca_bundle"))
    credentials = _provided(settings, session)
    on_loop = AsyncItemsClient(credentials, route, settings) if route.is_direct else None
    return DynamoClient(ItemsClient(credentials, route, settings), on_loop)


def _provided(settings: DynamoSettings, session: botocore.session.Session) -> Provided:
    """Returns what requests are signed with. Only wrong configuration is raised: what gives keys to this machine may be away for a while."""
    try:
        access = access_for(settings, session)
        if access.access_key_id is not None and access.secret_access_key is not None:
            return Credentials(access.access_key_id, access.secret_access_key)
        return _found(session) or Later(session.get_credentials)
    except CredentialRetrievalError:
        return Later(session.get_credentials)


def sdk_client(settings: DynamoSettings, session: botocore.session.Session | None = None) -> DynamoDBClient:
    """Returns the SDK's client, which sends a request once: thread-safe, and to be closed.

    Args:
        settings: Of the store.
        session: Of the SDK; one of its own where it is left out.

    Raises:
        botocore.exceptions.BotoCoreError: There is no region, the SDK's configuration is wrong, or its chain failed.
    """
    session = session or botocore.session.get_session()
    access = access_for(settings, session)
    if access.access_key_id is None and (credentials := _found(session)) is not None:
        keys_of(credentials)  # What goes wrong as they are fetched would else come out of a call, as whatever it is.
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
            # The region's endpoint serves every account, and does not change while a node runs.
            account_id_endpoint_mode="disabled",
        ),
    )
    return client


def access_for(settings: DynamoSettings, session: botocore.session.Session) -> Access:
    """Decides on region and credentials.

    The SDK's standard chain (environment, profile, container and instance roles) comes first. Dummy credentials are used
    only for an endpoint that may be DynamoDB Local, and only when the chain finds none: that one wants a signature and checks nothing.
    For any other endpoint, such as a VPC's, a role may answer late.

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
    """Asks the SDK's chain.

    Raises:
        botocore.exceptions.CredentialRetrievalError: It failed. The chain itself lets through what it meets: a token's file or a program that
            is not there, or that program's words for people.
        botocore.exceptions.BotoCoreError: The SDK's configuration is wrong.
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
    """AWS is reached through TLS; DynamoDB Local has none of its own, and with a proxy before it that has it is on this host."""
    parts = urlsplit(endpoint_url)
    if parts.scheme == "http" or parts.hostname == "localhost":
        return True
    with suppress(ValueError):
        return ip_address(parts.hostname or "").is_loopback
    return False
