"""Which connection carries a request, and what becomes of it; real sockets are in test_both_networks.py of the conformance tests."""

import gc
import ssl
from collections.abc import Callable
from typing import Any, cast

import pytest
from botocore.exceptions import BotoCoreError, ConnectionClosedError, ReadTimeoutError, SSLError

from tidegate_dynamo.endpoint import Endpoint
from tidegate_dynamo.http_connections import Connections, Route
from tidegate_dynamo.settings import DynamoSettings

ENDPOINT = Endpoint("http://store.test:8000/", "local")
YES = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
LAST = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"


class Wire:
    """A connection and its socket: answers each request with what comes next."""

    def __init__(self, *script: bytes | BaseException, on_send: Exception | None = None) -> None:
        self.script = list(script)
        self.sent: list[bytes] = []
        self.is_connected = True
        self.is_closed = False
        self.sock = self
        self._on_send = on_send

    def sendall(self, request: bytes) -> None:
        self.sent.append(request)
        if self._on_send is not None:
            raise self._on_send

    def recv(self, _: int) -> bytes:
        next_one = self.script.pop(0)
        if isinstance(next_one, BaseException):
            raise next_one
        return next_one

    def recv_into(self, buffer: memoryview) -> int:
        piece = self.recv(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self.is_closed = True


class Wires:
    """A route whose connections are made beforehand."""

    endpoint = ENDPOINT

    def __init__(self, *wires: Wire) -> None:
        self.rest = list(wires)

    def connected(self) -> Wire:
        return self.rest.pop(0)


def over(*wires: Wire, idle_max: int = 2) -> Connections:
    return Connections(cast(Route, Wires(*wires)), idle_max)


def test_given_requests_one_after_the_other_then_they_share_a_connection() -> None:
    wire = Wire(YES, YES)
    connections = over(wire)
    assert [connections.exchange(text).body for text in (b"1", b"2")] == [b"{}", b"{}"]
    assert wire.sent == [b"1", b"2"]
    connections.close()
    assert wire.is_closed


def test_given_a_client_that_is_dropped_without_a_word_then_no_socket_stays_open() -> None:
    wire = Wire(YES)
    connections = over(wire)
    connections.exchange(b"1")
    del connections
    gc.collect()
    assert wire.is_closed


def test_given_a_connection_that_the_server_closed_while_idle_then_nothing_is_sent_on_it() -> None:
    first, second = Wire(YES), Wire(YES)
    connections = over(first, second)
    connections.exchange(b"1")
    first.is_connected = False
    connections.exchange(b"2")
    assert (first.sent, first.is_closed, second.sent) == ([b"1"], True, [b"2"])


def test_given_a_server_that_closes_behind_its_answer_then_the_next_request_has_a_new_connection() -> None:
    first, second = Wire(LAST), Wire(YES)
    connections = over(first, second)
    connections.exchange(b"1")
    connections.exchange(b"2")
    assert (first.is_closed, second.sent) == (True, [b"2"])


@pytest.mark.parametrize(
    ("make", "error"),
    [
        pytest.param(lambda: Wire(b""), ConnectionClosedError, id="closed"),
        pytest.param(lambda: Wire(YES[:-1], b""), ConnectionClosedError, id="cut"),
        pytest.param(lambda: Wire(b"<html>\r\n\r\n"), ConnectionClosedError, id="something else"),
        pytest.param(lambda: Wire(ConnectionResetError()), ConnectionClosedError, id="reset"),
        pytest.param(lambda: Wire(TimeoutError()), ReadTimeoutError, id="silent"),
        pytest.param(lambda: Wire(on_send=TimeoutError()), ReadTimeoutError, id="does not read"),
        pytest.param(lambda: Wire(ssl.SSLError()), SSLError, id="TLS broke"),
        pytest.param(lambda: Wire(KeyboardInterrupt()), KeyboardInterrupt, id="interrupted"),
    ],
)
def test_given_trouble_on_the_way_then_it_is_sent_once_and_the_connection_is_gone(
    make: Callable[[], Any], error: type[BaseException]
) -> None:
    broken, fresh = make(), Wire(YES)
    connections = over(broken, fresh)
    with pytest.raises(error):
        connections.exchange(b"1")
    assert (broken.sent, broken.is_closed, fresh.sent) == ([b"1"], True, [])
    connections.exchange(b"2")
    assert fresh.sent == [b"2"]


@pytest.mark.parametrize("hung_up", [BrokenPipeError(), ConnectionResetError()])
def test_given_a_server_that_answers_and_hangs_up_before_it_has_read_all_then_its_answer_counts(
    hung_up: OSError,
) -> None:
    assert over(Wire(LAST, on_send=hung_up)).exchange(b"1").status == 200
    with pytest.raises(BotoCoreError):
        over(Wire(b"", on_send=hung_up)).exchange(b"1")


def test_given_more_at_once_than_are_kept_then_the_rest_is_closed_behind_its_answer() -> None:
    class Nested(Wire):
        """While it waits for its answer, another thread asks."""

        def recv(self, size: int) -> bytes:
            if route.rest:
                connections.exchange(b"1")
            return super().recv(size)

    wires = [Nested(YES) for _ in range(4)]
    route = Wires(*wires)
    connections = Connections(cast(Route, route), 2)
    connections.exchange(b"1")
    assert [(wire.sent, wire.is_closed) for wire in wires] == [
        ([b"1"], closed) for closed in (True, True, False, False)
    ]


def test_given_a_file_of_certificates_that_is_not_there_then_the_start_names_it() -> None:
    encrypted = Endpoint("https://store.test/", "local")
    with pytest.raises(ValueError, match="/absent"):
        Route(encrypted, DynamoSettings(), "/absent")
    Route(ENDPOINT, DynamoSettings(), "/absent")
