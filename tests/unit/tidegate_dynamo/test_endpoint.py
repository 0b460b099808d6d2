"""Requests go where the SDK would send them."""

from contextlib import closing
from unittest import mock

import pytest

from tidegate_dynamo.client_factory import sdk_client
from tidegate_dynamo.endpoint import Endpoint, resolved_endpoint
from tidegate_dynamo.settings import DynamoSettings

EU = DynamoSettings(region="eu-central-1")
NAMES = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT")


@pytest.fixture(autouse=True)
def nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, "absent")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.mark.parametrize(
    ("settings", "environment", "url", "region"),
    [
        (EU, {}, "https://dynamodb.eu-central-1.amazonaws.com/", "eu-central-1"),
        (DynamoSettings(region="cn-north-1"), {}, "https://dynamodb.cn-north-1.amazonaws.com.cn/", "cn-north-1"),
        (DynamoSettings(region="fips-us-east-1"), {}, "https://dynamodb-fips.us-east-1.amazonaws.com/", "us-east-1"),
        (EU, {"AWS_USE_DUALSTACK_ENDPOINT": "true"}, "https://dynamodb.eu-central-1.api.aws/", "eu-central-1"),
        (EU, {"AWS_ENDPOINT_URL": "http://near:9000/x"}, "http://near:9000/x", "eu-central-1"),
        (EU, {"AWS_ENDPOINT_URL_DYNAMODB": "https://near:443"}, "https://near:443/", "eu-central-1"),
        (DynamoSettings(endpoint_url="http://[::1]:8000"), {}, "http://[::1]:8000/", "us-east-1"),
        (
            EU,
            {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ACCOUNT_ID": "123456789012"},
            "https://dynamodb.eu-central-1.amazonaws.com/",
            "eu-central-1",
        ),
    ],
)
def test_given_settings_and_environment_then_the_sdk_decides_where_and_for_which_region(
    settings: DynamoSettings,
    environment: dict[str, str],
    url: str,
    region: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with (
        closing(sdk_client(settings)) as sdk,
        mock.patch("botocore.httpsession.URLLib3Session.send", side_effect=AssertionError("sent")),
    ):
        assert resolved_endpoint(sdk) == Endpoint(url, region, "dynamodb")


@pytest.mark.parametrize(
    ("url", "host", "server", "path"),
    [
        ("https://dynamodb.eu-central-1.amazonaws.com/", "dynamodb.eu-central-1.amazonaws.com", 443, "/"),
        ("https://store.test:443/", "store.test", 443, "/"),
        ("http://Store.test:8000", "store.test:8000", 8000, "/"),
        ("http://store.test:443/a", "store.test:443", 443, "/a"),
        ("http://[::1]:8000/", "[::1]:8000", 8000, "/"),
    ],
)
def test_given_an_url_then_the_host_header_leaves_out_the_schemes_own_port(
    url: str, host: str, server: int, path: str
) -> None:
    endpoint = Endpoint(url, "local")
    assert (endpoint.host, endpoint.server[1], endpoint.path) == (host, server, path)


@pytest.mark.parametrize("url", ["ftp://store.test/", "http:///", "https://store.test/?a=b", "store.test:8000"])
def test_given_an_address_to_which_nothing_can_be_sent_then_it_is_named(url: str) -> None:
    with pytest.raises(ValueError, match="store endpoint"):
        Endpoint(url, "local")
