import gc

import pytest
from botocore.client import BaseClient
from botocore.exceptions import CredentialRetrievalError
from botocore.session import Session

from tidegate_dynamo.client_factory import access_for, make_client, sdk_client
from tidegate_dynamo.credentials import Later, keys_of
from tidegate_dynamo.settings import DynamoSettings

LOCAL = DynamoSettings(endpoint_url="http://127.0.0.1:1")


@pytest.fixture
def nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without AWS credentials, profile or instance role."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, "absent")


@pytest.mark.usefixtures("nothing_configured")
def test_given_a_local_endpoint_and_no_credentials_then_dummy_ones_are_used() -> None:
    access = access_for(LOCAL, Session())
    assert access.region == "us-east-1"
    assert access.access_key_id
    assert access.secret_access_key
    assert access.access_key_id.isalnum(), "DynamoDB Local wants letters and digits only"


@pytest.mark.usefixtures("nothing_configured")
def test_given_aws_and_no_credentials_then_none_are_made_up() -> None:
    assert access_for(DynamoSettings(region="eu-central-1"), Session()) == ("eu-central-1", None, None)


@pytest.mark.usefixtures("nothing_configured")
def test_given_credentials_of_the_environment_then_they_win_also_for_an_endpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIA0")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    assert access_for(LOCAL, Session()) == ("eu-west-1", None, None)


@pytest.mark.usefixtures("nothing_configured")
def test_given_a_client_then_it_sends_once_and_gives_up_soon() -> None:
    client = sdk_client(LOCAL)
    config = client.meta.config
    assert config.retries["total_max_attempts"] == 1  # type: ignore[attr-defined]  # set by name in botocore
    assert (config.connect_timeout, config.read_timeout) == (1.0, 2.0)  # type: ignore[attr-defined]  # likewise
    assert client.meta.endpoint_url == "http://127.0.0.1:1"
    client.close()


@pytest.mark.usefixtures("nothing_configured")
def test_given_clients_for_items_then_nothing_is_left_of_the_sdk_which_said_where_they_go() -> None:
    """A node holds them for its life; the SDK's, with its description of the API, would be 8 MB of it."""
    gc.collect()
    before = _of_the_sdk()
    client = make_client(LOCAL)
    gc.collect()
    assert _of_the_sdk() <= before, "those of before may have gone meanwhile"
    client.close()


def _of_the_sdk() -> set[int]:
    return {id(each) for each in gc.get_objects() if isinstance(each, BaseClient)}


@pytest.mark.usefixtures("nothing_configured")
@pytest.mark.parametrize(("key", "signed_by"), [(None, "tidegate"), ("AKIA0", "AKIA0")])
def test_given_a_client_then_items_are_asked_for_in_the_name_that_the_sdk_uses(
    key: str | None, signed_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if key is not None:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", key)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hidden")
    client = make_client(LOCAL)
    _, request = client.items._requests.of("query", {}, keys_of(client.items._keys._provided))
    assert f"Credential={signed_by}/".encode() in request
    assert b"/us-east-1/dynamodb/aws4_request" in request
    client.close()


@pytest.mark.usefixtures("nothing_configured")
@pytest.mark.parametrize(
    ("endpoint", "made_up"),
    [
        ("http://127.0.0.1:8000", True),
        ("http://dynamodb-local:8000", True),
        ("https://localhost:8443", True),
        ("https://[::1]:8443", True),
        ("https://127.0.0.2", True),
        ("https://vpce-0abc.dynamodb.eu-central-1.vpce.amazonaws.com", False),
        ("https://10.1.2.3", False),
    ],
)
def test_given_an_endpoint_that_may_be_awss_then_keys_are_waited_for_and_not_made_up(
    endpoint: str, made_up: bool
) -> None:
    """Found in review: with an instance role that answered late, made-up keys signed for as long as the process lived."""
    client = make_client(DynamoSettings(endpoint_url=endpoint, region="eu-central-1"))
    assert isinstance(client.items._keys._provided, Later) is not made_up
    client.close()


@pytest.mark.usefixtures("nothing_configured")
@pytest.mark.parametrize("endpoint", [None, "http://127.0.0.1:1"])
def test_given_a_service_for_keys_that_is_away_then_there_is_a_client_that_has_keys_later(
    endpoint: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found in review: it passed for wrong configuration, with which nobody starts a node again."""

    def away(_: Session) -> None:
        raise CredentialRetrievalError(provider="container-role", error_msg="refused")

    monkeypatch.setattr(Session, "get_credentials", away)
    client = make_client(DynamoSettings(endpoint_url=endpoint, region="eu-central-1"))
    assert isinstance(client.items._keys._provided, Later)
    client.close()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"connect_timeout_s": 0.0}, "connect_timeout_s"),
        ({"read_timeout_s": -1.0}, "read_timeout_s"),
        ({"connections_max": 0}, "connections_max"),
        ({"table_prefix": "no spaces "}, "table_prefix"),
        ({"table_prefix": "x" * 201}, "table_prefix"),
    ],
)
def test_given_a_wrong_setting_then_the_error_names_it(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DynamoSettings(**wrong)  # type: ignore[arg-type]  # wrong on purpose


def test_given_a_prefix_then_both_tables_have_it() -> None:
    settings = DynamoSettings(table_prefix="prod-eu.")
    assert [settings.table_name(table) for table in ("main", "history")] == [
        "prod-eu.tidegate",
        "prod-eu.tidegate-history",
    ]
