"""What the real client makes of a network that fails in each way, with sockets that do so."""

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import TypeAlias

import pytest

from tests.conformance.http_servers import read_request
from tidegate_core.rows.store_operations import Applied, Condition, Key, Lost, Put, RawOutcome, Throttled, Transaction
from tidegate_dynamo.client_factory import make_client
from tidegate_dynamo.settings import DynamoSettings
from tidegate_dynamo.store import DynamoStore
from tidegate_ports.store import StoreUnavailable

Behaviour: TypeAlias = Callable[[socket.socket], None]
PATIENCE_S = 30.0
"""Deadline of every wait for what comes; a pass never takes it."""
SILENCE_S = 0.3
"""Patience with who says nothing."""
KEY = Key("SH#0001", "LEASE")
CLAIM = Transaction("claim", (Put(KEY, {"pk": KEY.pk, "sk": KEY.sk}, Condition("attribute_not_exists(pk)")),), "t", KEY)


def answering(status: str, body: bytes, *headers: str) -> Behaviour:
    head = "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers, "", ""])

    def behave(connection: socket.socket) -> None:
        read_request(connection)
        connection.sendall(head.encode() + body)

    return behave


def hangs_up(connection: socket.socket) -> None:
    read_request(connection)


def stays_silent(connection: socket.socket) -> None:
    read_request(connection)
    # Until the client gives up and closes.
    connection.recv(65_536)


def breaks_off(connection: socket.socket) -> None:
    read_request(connection)
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nx-amzn-requestid: 1\r\n\r\n{")


@contextmanager
def server(behaviour: Behaviour | None) -> Iterator[tuple[str, threading.Semaphore]]:
    """Yields an endpoint that behaves so for every connection, and a count of those that are over."""
    over = threading.Semaphore(0)
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        endpoint = f"http://127.0.0.1:{listener.getsockname()[1]}"
        if behaviour is None:
            listener.close()
            yield endpoint, over
            return

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with closing(connection):
                    behaviour(connection)
                over.release()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield endpoint, over
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


@contextmanager
def store_at(endpoint: str, behaviour: Behaviour | None) -> Iterator[DynamoStore]:
    patience_s = SILENCE_S if behaviour is stays_silent else PATIENCE_S
    settings = DynamoSettings(
        endpoint_url=endpoint, region="us-east-1", connect_timeout_s=PATIENCE_S, read_timeout_s=patience_s
    )
    with closing(make_client(settings)) as client:
        yield DynamoStore(client.items, settings)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tidegate")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tidegate")


@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [
        pytest.param(answering("200 OK", b"{}", "x-amzn-requestid: 1"), Applied(), id="yes"),
        pytest.param(None, Throttled(), id="nobody listens"),
        pytest.param(hangs_up, Lost(), id="hangs up"),
        pytest.param(stays_silent, Lost(), id="stays silent"),
        pytest.param(breaks_off, Lost(), id="breaks off in the middle"),
        pytest.param(answering("200 OK", b"<html>"), Lost(), id="a proxy's page with status 200"),
        pytest.param(answering("502 Bad Gateway", b"<html>"), Lost(), id="a proxy's page with status 502"),
        pytest.param(answering("403 Forbidden", b"<html>"), Lost(), id="a proxy's page with status 403"),
        pytest.param(
            answering("500 Oops", b'{"__type": "x#InternalServerError"}', "x-amzn-requestid: 1"), Lost(), id="500"
        ),
        pytest.param(
            answering("400 No", b'{"__type": "x#ThrottlingException"}', "x-amzn-requestid: 1"),
            Throttled(),
            id="throttled",
        ),
    ],
)
def test_given_a_network_that_fails_so_then_a_write_is_sent_once_and_says_what_is_known(
    behaviour: Behaviour | None, outcome: RawOutcome
) -> None:
    with server(behaviour) as (endpoint, over), store_at(endpoint, behaviour) as store:
        assert store.transact(CLAIM) == outcome
        # The server may come to a request only after the client has given it up.
        assert behaviour is None or over.acquire(timeout=PATIENCE_S)
    assert not over.acquire(blocking=False), "sent once"


@pytest.mark.parametrize("behaviour", [None, hangs_up, stays_silent, breaks_off, answering("200 OK", b"<html>")])
def test_given_a_network_that_fails_so_then_a_read_says_that_nothing_is_known(behaviour: Behaviour | None) -> None:
    with (
        server(behaviour) as (endpoint, _),
        store_at(endpoint, behaviour) as store,
        pytest.raises(StoreUnavailable),
    ):
        store.get([KEY])
