"""Our signature is the SDK's, whatever is signed, by whom, and when."""

from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials, RefreshableCredentials
from botocore.exceptions import HTTPClientError, NoCredentialsError
from hypothesis import given
from hypothesis import strategies as st

from tidegate_dynamo.endpoint import Endpoint
from tidegate_dynamo.sigv4 import CONTENT_TYPE, Signer

ENDPOINT = Endpoint("https://dynamodb.eu-central-1.amazonaws.com/", "eu-central-1")
TARGET = "DynamoDB_20120810.Query"
MIDNIGHT = datetime(2026, 3, 1, tzinfo=UTC)
VISIBLE = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=60)
CREDENTIALS = st.builds(Credentials, VISIBLE, st.text(min_size=1, max_size=60), st.none() | VISIBLE)
MOMENTS = st.integers(0, 4_000_000_000).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
ENDPOINTS = st.builds(
    lambda scheme, port, path, region: Endpoint(f"{scheme}://store.test{port}{path}", region),
    st.sampled_from(["http", "https"]),
    st.sampled_from(["", ":80", ":443", ":8000"]),
    st.sampled_from(["/", "", "/a/b", "/a%20b/", "//a/../b", "/~x"]),
    st.sampled_from(["eu-central-1", "local"]),
)


def headers_of(lines: str) -> dict[str, str]:
    assert lines.endswith("\r\n")
    return dict(line.split(": ", 1) for line in lines[:-2].split("\r\n"))


def ours(signer: Signer, credentials: Credentials, target: str, body: bytes, at: datetime) -> dict[str, str]:
    return headers_of(signer.headers(credentials.get_frozen_credentials(), target, body, at.timestamp()))


def the_sdks(credentials: Credentials, endpoint: Endpoint, target: str, body: bytes, at: datetime) -> dict[str, str]:
    asked = {"Content-Type": CONTENT_TYPE, "X-Amz-Target": target, "User-Agent": "tidegate"}
    request = AWSRequest("POST", endpoint.url, asked, body)
    with mock.patch("botocore.auth.get_current_datetime", return_value=at):
        SigV4Auth(credentials, "dynamodb", endpoint.region).add_auth(request)
    return {name: value for name, value in request.headers.items() if name not in asked}


@given(CREDENTIALS, ENDPOINTS, VISIBLE, st.binary(max_size=2_000), MOMENTS)
def test_given_anything_to_sign_then_the_signature_is_the_sdks(
    credentials: Credentials, endpoint: Endpoint, target: str, body: bytes, at: datetime
) -> None:
    theirs = the_sdks(credentials, endpoint, target, body or b"{}", at)
    assert ours(Signer(endpoint), credentials, target, body or b"{}", at) == theirs


@given(st.lists(st.integers(-3, 3), min_size=2, max_size=8))
def test_given_a_signer_across_midnights_then_each_call_is_signed_with_its_own_day(seconds: list[int]) -> None:
    credentials = Credentials("AKIA0", "hidden")
    signer = Signer(ENDPOINT)
    for at in (MIDNIGHT + timedelta(seconds=offset) for offset in seconds):
        assert ours(signer, credentials, TARGET, b"{}", at) == the_sdks(credentials, ENDPOINT, TARGET, b"{}", at)


def test_given_a_day_then_its_key_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    begin = Signer._begin

    def counted(self: Signer, credentials: Any, date: str) -> Any:
        begun.append(date)
        return begin(self, credentials, date)

    monkeypatch.setattr(Signer, "_begin", counted)
    signer = Signer(ENDPOINT)
    for hour in (1, 2, 23, 24, 25):
        ours(signer, Credentials("AKIA0", "hidden"), TARGET, b"{}", MIDNIGHT + timedelta(hours=hour))
    assert begun == ["20260301", "20260302"]


@pytest.fixture
def lives() -> dict[str, str]:
    """What a role's metadata would say: each life has keys and a token of its own, and ends soon."""
    return {"access_key": "AKIA1", "secret_key": "first", "token": "t1", "expiry_time": soon()}


def soon() -> str:
    return (datetime.now(UTC) + timedelta(minutes=30)).isoformat()


def test_given_credentials_that_are_renewed_then_the_next_call_has_the_new_ones(lives: dict[str, str]) -> None:
    credentials = RefreshableCredentials.create_from_metadata(lives, lambda: lives, "role", 60, 60)
    signer = Signer(ENDPOINT)
    first = ours(signer, credentials, TARGET, b"{}", MIDNIGHT)
    lives = {"access_key": "AKIA2", "secret_key": "second", "token": "t2", "expiry_time": soon()}
    credentials._expiry_time = datetime.now(UTC) + timedelta(seconds=1)  # type: ignore[attr-defined]  # time passes
    second = ours(signer, credentials, TARGET, b"{}", MIDNIGHT)
    assert (first["X-Amz-Security-Token"], second["X-Amz-Security-Token"]) == ("t1", "t2")
    assert second == the_sdks(Credentials("AKIA2", "second", "t2"), ENDPOINT, TARGET, b"{}", MIDNIGHT)


@pytest.mark.parametrize("credentials", [Credentials("", "hidden"), Credentials("AKIA0", "")])
def test_given_empty_credentials_then_that_is_said_before_anything_is_sent(credentials: Credentials) -> None:
    with pytest.raises(NoCredentialsError):
        ours(Signer(ENDPOINT), credentials, TARGET, b"{}", MIDNIGHT)


@pytest.mark.parametrize("text", ["two\nlines", "with blank", "ümlaut", "nul\0"])
def test_given_credentials_that_would_break_a_header_then_they_are_refused(text: str) -> None:
    for credentials in (Credentials(text, "hidden"), Credentials("AKIA0", "hidden", text)):
        with pytest.raises(HTTPClientError, match="header"):
            ours(Signer(ENDPOINT), credentials, TARGET, b"{}", MIDNIGHT)
