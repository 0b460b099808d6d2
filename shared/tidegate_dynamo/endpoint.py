"""Endpoint of the requests, and the region and service they are signed for, as the SDK decides: region, environment,
profile, partition.

The SDK decides once, when a client is created. Endpoints per account, which it would choose with each call, are
switched off in `client_factory.py`: the region's endpoint serves every account.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from botocore.utils import normalize_url_path

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PORTS: Final = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Receiver of requests.

    Attributes:
        url: URL that the SDK resolved, such as `https://dynamodb.eu-central-1.amazonaws.com/`.
        region: Region in signatures.
        signing_name: Service name in signatures.
    """

    url: str
    region: str
    signing_name: str = "dynamodb"

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in PORTS or not parts.hostname or parts.query or parts.fragment:
            raise ValueError(f"store endpoint {self.url!r}: use http:// or https://, a host, and no query")

    @property
    def is_encrypted(self) -> bool:
        return urlsplit(self.url).scheme == "https"

    @property
    def server(self) -> tuple[str, int]:
        """Name or address, and port."""
        parts = urlsplit(self.url)
        return parts.hostname or "", parts.port or PORTS[parts.scheme]

    @property
    def host(self) -> str:
        """Value of the `Host` header, without the scheme's default port."""
        parts = urlsplit(self.url)
        name = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname or ""
        return name if parts.port in (None, PORTS[parts.scheme]) else f"{name}:{parts.port}"

    @property
    def path(self) -> str:
        return urlsplit(self.url).path or "/"

    @property
    def canonical_path(self) -> str:
        """Path in the form that signatures use."""
        return quote(normalize_url_path(self.path), safe="/~")


class _Seen(Exception):
    """Ends the SDK's call before anything is signed or sent."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint


def resolved_endpoint(sdk: DynamoDBClient) -> Endpoint:
    """Returns the endpoint of this SDK client. Sends nothing.

    Raises:
        ValueError: The endpoint cannot be used.
        botocore.exceptions.BotoCoreError: The SDK finds no endpoint.
    """
    events = sdk.meta.events
    events.register("before-sign.dynamodb.ListTables", _see)
    try:
        sdk.list_tables()
    except _Seen as seen:
        return seen.endpoint
    finally:
        events.unregister("before-sign.dynamodb.ListTables", _see)
    raise AssertionError("the SDK sent a request without signing it")


def _see(request: Any, region_name: str, signing_name: str, **_: Any) -> None:
    # Endpoints of some partitions require signatures for another region than the requested one.
    chosen = request.context.get("signing", {})
    raise _Seen(Endpoint(request.url, chosen.get("region", region_name), chosen.get("signing_name", signing_name)))
