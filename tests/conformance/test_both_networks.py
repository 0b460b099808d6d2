"""Over a network that fails, goes through proxies or is encrypted, our clients and the SDK's come to the same."""

from __future__ import annotations

import json
import socket
import ssl
from binascii import crc32
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from tests.conformance.http_servers import (
    Behaviour,
    answers,
    hangs_up,
    http_server,
    message,
    read_request,
    resets,
    stays_silent,
)
from tests.conformance.sdk_item_client import SdkItems
from tests.support.blocking_calls import a_loop, called
from tests.support.servers.certificates import Authority
from tidegate_core.rows.store_operations import Applied, RawOutcome
from tidegate_dynamo.client_factory import make_client
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.write_outcomes import FAILURES, error_code, outcome_of

Call: TypeAlias = Callable[[str, dict[str, Any]], Any]
PUT = {"TableName": "tidegate", "Item": {"pk": {"S": "a"}, "sk": {"S": "b"}}}
CLIENTS = ("ours", "on a loop", "sdk")
OURS = ("ours", "on a loop")
THROUGH_PROXIES = ("ours", "sdk")
"""The loop's knows nothing of proxies: a node behind one calls on threads."""
PATIENCE_S = 30.0
"""Deadline of every wait for what comes; a pass never takes it."""
SILENCE_S = 0.3
"""Patience with who says nothing."""
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in ("AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tidegate")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tidegate")


@contextmanager
def client_of(kind: str, url: str, patience_s: float = PATIENCE_S) -> Iterator[Call]:
    settings = DynamoSettings(
        endpoint_url=url, region="us-east-1", connect_timeout_s=PATIENCE_S, read_timeout_s=patience_s
    )
    if kind == "sdk":
        with closing(SdkItems(settings)) as sdk:
            yield sdk.call
    elif kind == "on a loop":
        with a_loop() as run:
            on_loop = make_client(settings).on_loop
            assert on_loop is not None
            try:
                yield lambda operation, request: run(on_loop.call(operation, request))
            finally:
                run(called(on_loop.close))
    else:
        with closing(make_client(settings)) as client:
            yield client.items.call


def told(call: Call) -> tuple[str, RawOutcome]:
    """The code of what a put raised, as metrics have it, and what it means."""
    try:
        call("put_item", PUT)
    except FAILURES as failure:
        return error_code(failure), outcome_of(failure, 1)
    return "", Applied()


def refused(kind: str, **more: Any) -> bytes:
    return json.dumps({"__type": f"com.amazonaws.dynamodb.v20120810#{kind}", **more}).encode()


THROTTLED = refused("ThrottlingException", message="slow down")
NO_JSON = b"<html>oops</html>"
CANCELLED = refused("TransactionCanceledException", CancellationReasons=[{"Code": "TransactionConflict"}])


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(answers("200 OK"), id="yes"),
        pytest.param(answers("200 OK", b"{}", f"x-amz-crc32: {crc32(b'{}')}"), id="yes, with its checksum"),
        pytest.param(hangs_up, id="hangs up"),
        pytest.param(resets, id="resets when it has read"),
        pytest.param(answers("400 Bad Request", THROTTLED), id="throttled"),
        pytest.param(answers("400 Bad Request", b'{"__type": "RequestLimitExceeded"}'), id="throttled, short"),
        pytest.param(answers("400 Bad Request", CANCELLED), id="cancelled"),
        pytest.param(answers("400 Bad Request", refused("ConditionalCheckFailedException")), id="condition"),
        pytest.param(answers("400 Bad Request", b"{}"), id="400 of nobody"),
        pytest.param(answers("403 Forbidden", NO_JSON), id="a proxy's refusal"),
        pytest.param(answers("413 Too Large", NO_JSON, stays=False), id="413, and closes"),
        pytest.param(answers("500 Oops", NO_JSON), id="500 without JSON"),
        pytest.param(answers("500 Oops", refused("InternalServerError")), id="500"),
        pytest.param(answers("503 Busy", b""), id="503 without a body"),
        pytest.param(answers("307 Away", b"", "Location: http://127.0.0.1:1/"), id="a redirect"),
        pytest.param(answers("301 Away", b"", "Location: /"), id="a redirect to itself"),
    ],
)
def test_given_a_server_that_does_so_then_all_send_once_and_come_to_the_same(behaviour: Behaviour) -> None:
    come_to = []
    for kind in CLIENTS:
        with http_server(behaviour) as server, client_of(kind, server.url) as call:
            come_to.append((told(call), len(server.requests), server.connections))
    assert all(each == come_to[0] for each in come_to)
    assert come_to[0][1:] == (1, 1)


def test_given_nobody_who_listens_then_all_say_that_nothing_was_sent() -> None:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    come_to = []
    for kind in CLIENTS:
        with client_of(kind, url) as call:
            come_to.append(told(call))
    assert all(each == come_to[0] for each in come_to)
    assert come_to[0][0] == "EndpointConnectionError"


def test_given_a_name_that_nobody_knows_then_all_say_that_nothing_was_sent() -> None:
    come_to = []
    for kind in CLIENTS:
        with client_of(kind, "http://nobody.invalid:8000") as call:
            come_to.append(told(call))
    assert all(each == come_to[0] for each in come_to)
    assert come_to[0][0] == "EndpointConnectionError"


def test_given_a_reset_before_anything_is_read_then_all_leave_it_open() -> None:
    come_to = []
    for kind in CLIENTS:
        with http_server(hangs_up, unread=True) as server, client_of(kind, server.url) as call:
            come_to.append((told(call), server.connections))
    assert all(each == come_to[0] for each in come_to)
    assert come_to[0][0][0] == "ConnectionClosedError"


def test_given_silence_then_all_give_up_after_their_time_out() -> None:
    come_to = []
    for kind in CLIENTS:
        with http_server(stays_silent) as server, client_of(kind, server.url, patience_s=SILENCE_S) as call:
            said = told(call)
            # The server may come to a request only after the client has given it up.
            assert server.ended.acquire(timeout=PATIENCE_S)
            come_to.append((said, len(server.requests)))
    assert all(each == come_to[0] for each in come_to)
    assert come_to[0][0][0] == "ReadTimeoutError"


@pytest.mark.parametrize("kind", OURS)
def test_given_an_answer_that_is_cut_or_not_the_one_that_was_sent_then_ours_is_in_doubt(kind: str) -> None:
    """Where the SDK believed more: it checks no length, and after its last attempt no checksum."""

    def cuts(connection: socket.socket, *_: object) -> bool:
        connection.sendall(message("200 OK", b'{"Attributes": {}}')[:-1])
        return False

    for behaviour, error in (
        (cuts, "ConnectionClosedError"),
        (answers("200 OK", b"{}", "x-amz-crc32: 7"), "ChecksumError"),
        (answers("200 OK", b"{}", "Content-Encoding: gzip", stays=False), ""),
        (answers("200 OK", b"\x1f\x8b\x08\x00", "Content-Encoding: gzip"), "ForeignAnswer"),
    ):
        with http_server(behaviour) as server, client_of(kind, server.url) as call:
            assert told(call)[0] == error
            assert len(server.requests) == 1


@pytest.mark.parametrize("kind", CLIENTS)
def test_given_a_connection_that_the_server_closed_in_between_then_nobody_notices(kind: str) -> None:
    with http_server(answers("200 OK", stays=False)) as server, client_of(kind, server.url) as call:
        for number in range(1, 4):
            assert told(call) == ("", Applied())
            # Closed without a word in the answer; from here on the client can see it.
            assert server.ended.acquire(timeout=PATIENCE_S)
            assert (len(server.requests), server.connections) == (number, number)


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize("ends", [hangs_up, resets])
def test_given_a_kept_connection_that_breaks_under_a_request_then_it_is_not_sent_again(
    kind: str, ends: Behaviour
) -> None:
    def behaves(connection: socket.socket, request: bytes, number: int) -> bool:
        return (answers("200 OK") if number == 1 else ends)(connection, request, number)

    with http_server(behaves) as server, client_of(kind, server.url) as call:
        assert told(call)[0] == ""
        assert told(call)[0] == "ConnectionClosedError"
        assert (len(server.requests), server.connections) == (2, 1)


@pytest.mark.parametrize("kind", OURS)
def test_given_an_answer_with_more_behind_it_then_that_is_not_the_next_ones(kind: str) -> None:
    def says_more(connection: socket.socket, _: bytes, number: int) -> bool:
        connection.sendall(message("200 OK", b'{"n": %d}' % number) + message("200 OK", b'{"n": 99}'))
        return True

    with http_server(says_more) as server, client_of(kind, server.url) as call:
        assert [call("put_item", PUT)["n"] for _ in range(4)] == [1, 2, 3, 4]
        assert server.connections == 4


@pytest.mark.parametrize("kind", OURS)
def test_given_many_threads_then_each_gets_its_own_answer(kind: str) -> None:
    def echoes(connection: socket.socket, request: bytes, _: int) -> bool:
        connection.sendall(message("200 OK", request.partition(b"\r\n\r\n")[2]))
        return True

    def ask(number: int) -> Any:
        return call("put_item", {"n": number})["n"]

    with http_server(echoes) as server, client_of(kind, server.url) as call, ThreadPoolExecutor(16) as threads:
        assert list(threads.map(ask, range(800))) == list(range(800))
        assert len(server.requests) == 800
        assert server.connections <= 16


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path, "authority")


def tls_for(authority: Authority, host: str) -> ssl.SSLContext:
    signed = authority.sign(f"store-{host}", host=host)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(signed.certificate, signed.key)
    return context


@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
@pytest.mark.parametrize("kind", CLIENTS)
def test_given_trusted_certificates_then_requests_are_encrypted(
    kind: str, variable: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, str(authority.file))
    with (
        http_server(answers("200 OK"), tls=tls_for(authority, "127.0.0.1")) as server,
        client_of(kind, server.url) as call,
    ):
        assert [told(call)[0] for _ in range(3)] == ["", "", ""]
        assert server.connections == 1


@pytest.mark.parametrize("kind", CLIENTS)
@pytest.mark.parametrize(("trusted", "host"), [(False, "127.0.0.1"), (True, "127.0.0.2"), (True, "store.test")])
def test_given_a_certificate_of_somebody_else_then_nothing_is_sent(
    kind: str, trusted: bool, host: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    if trusted:
        monkeypatch.setenv("AWS_CA_BUNDLE", str(authority.file))
    with http_server(answers("200 OK"), tls=tls_for(authority, host)) as server, client_of(kind, server.url) as call:
        assert told(call)[0] == "SSLError"
        assert server.requests == []


@pytest.mark.parametrize("kind", THROUGH_PROXIES)
def test_given_a_proxy_then_requests_go_through_it_whole(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with http_server(answers("200 OK")) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", "//user:p%40ss@"))
        monkeypatch.setenv("NO_PROXY", "other.invalid")
        with client_of(kind, "http://store.invalid:8000") as call:
            assert told(call)[0] == ""
        head = proxy.requests[0].lower()
        assert head.startswith(b"post http://store.invalid:8000/ http/1.1\r\n")
        assert b"\r\nhost: store.invalid:8000\r\n" in head
        assert b"\r\nproxy-authorization: basic dxnlcjpwqhnz\r\n" in head


def test_given_a_proxy_then_there_is_no_client_on_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = DynamoSettings(endpoint_url="http://store.invalid:8000", region="us-east-1")
    with closing(make_client(settings)) as direct:
        assert direct.on_loop is not None
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid:1")
    with closing(make_client(settings)) as behind:
        assert behind.on_loop is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2"])
def test_given_an_encrypted_proxy_then_ours_believes_it_as_it_would_a_store(
    host: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SDK does not get through: it trusts nobody there, whatever bundle it is given."""
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority.file))
    with http_server(answers("200 OK"), tls=tls_for(authority, host)) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        with client_of("ours", "http://store.invalid:8000") as call:
            code, _ = told(call)
        is_it = host == "127.0.0.1"
        assert len(proxy.requests) == is_it
        assert (code == "") == is_it


@pytest.mark.parametrize("kind", CLIENTS)
def test_given_an_endpoint_that_needs_no_proxy_then_it_is_asked_directly(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://nobody.invalid:1")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with http_server(answers("200 OK")) as server, client_of(kind, server.url) as call:
        assert told(call)[0] == ""


@pytest.mark.parametrize("kind", THROUGH_PROXIES)
def test_given_a_proxy_and_an_encrypted_endpoint_then_they_pass_through_a_tunnel(
    kind: str, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    tls = tls_for(authority, "store.test")
    inside: list[bytes] = []

    def tunnels(connection: socket.socket, request: bytes, _: int) -> bool:
        assert request.startswith(b"CONNECT store.test:443 HTTP/1."), request
        assert b"proxy-authorization: basic dxnlcjpwqhnz" in request.lower()
        connection.sendall(b"HTTP/1.1 200 Go on\r\n\r\n")
        with tls.wrap_socket(connection, server_side=True) as encrypted:
            for _ in range(2):
                inside.append(read_request(encrypted))
                encrypted.sendall(message("200 OK", b"{}"))
        return False

    with http_server(tunnels) as proxy:
        monkeypatch.setenv("AWS_CA_BUNDLE", str(authority.file))
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//user:p%40ss@"))
        with client_of(kind, "https://store.test") as call:
            assert [told(call)[0] for _ in range(2)] == ["", ""]
        assert proxy.connections == 1
        assert [request.split(b"\r\n")[0] for request in inside] == [b"POST / HTTP/1.1"] * 2
        assert b"proxy" not in b"".join(inside).lower()


@pytest.mark.parametrize("kind", THROUGH_PROXIES)
def test_given_a_proxy_that_refuses_or_is_not_there_then_that_is_said(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with http_server(answers("403 No", stays=False)) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        with client_of(kind, "https://store.test") as call:
            assert told(call)[0] == "ProxyConnectionError"
    with client_of(kind, "https://store.test") as call:
        assert told(call)[0] == "ProxyConnectionError"
