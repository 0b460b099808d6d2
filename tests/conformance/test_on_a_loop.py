"""What only a loop can do to a call, and only a loop's store has to bound."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.credentials import RefreshableCredentials

from tests.conformance.http_servers import answers, http_server, message
from tidegate_core.rows.store_operations import Applied, Key, Put, Throttled, Transaction
from tidegate_dynamo.async_item_client import AsyncItemsClient
from tidegate_dynamo.async_store import AsyncDynamoStore
from tidegate_dynamo.client_factory import make_client
from tidegate_dynamo.endpoint import Endpoint
from tidegate_dynamo.http_connections import Route
from tidegate_dynamo.settings import DynamoSettings
from tidegate_ports.store import NotSent, StoreUnavailable

KEY = Key("P", "S")
ROW = Put(KEY, {"pk": "P", "sk": "S"})
PUT = Transaction("claim", (ROW,), "token", None)
PATIENCE_S = 30.0


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "tidegate")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "tidegate")


def settings_for(url: str, **more: Any) -> DynamoSettings:
    given: dict[str, Any] = {"connect_timeout_s": PATIENCE_S, "read_timeout_s": PATIENCE_S, **more}
    return DynamoSettings(endpoint_url=url, region="us-east-1", **given)


def client_of(settings: DynamoSettings) -> AsyncItemsClient:
    client = make_client(settings).on_loop
    assert client is not None
    return client


async def test_given_a_call_that_is_cancelled_then_its_answer_is_not_the_next_ones() -> None:
    asked, may_answer = threading.Event(), threading.Event()

    def answers_late(connection: socket.socket, _: bytes, number: int) -> bool:
        if number == 1:
            asked.set()
            assert may_answer.wait(PATIENCE_S)
        connection.sendall(message("200 OK", b'{"n": %d}' % number))
        return True

    with http_server(answers_late) as server:
        client = client_of(settings_for(server.url))
        first = asyncio.ensure_future(client.call("put_item", {}))
        assert await asyncio.to_thread(asked.wait, PATIENCE_S)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        may_answer.set()
        assert (await client.call("put_item", {}))["n"] == 2
        assert server.connections == 2
        client.close()


async def test_given_an_answer_that_comes_in_pieces_then_each_piece_has_its_own_patience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a socket's time-out is one for each time that is waited; only silence means that nobody is there."""
    body = b'{"text": "' + b"x" * 200_000 + b'"}'
    whole = message("200 OK", body)
    pieces = [whole[first : first + 20_000] for first in range(0, len(whole), 20_000)]
    next_piece, sent = threading.Semaphore(0), threading.Semaphore(0)

    def drips(connection: socket.socket, _: bytes, __: int) -> bool:
        for piece in pieces:
            assert next_piece.acquire(timeout=PATIENCE_S)
            connection.sendall(piece)
            sent.release()
        return True

    with http_server(drips) as server:
        client = client_of(settings_for(server.url, read_timeout_s=2.0))
        loop = asyncio.get_running_loop()
        begun, passed_s = loop.time(), 0.0
        # The loop's clock stands still but for what the test says: no stall of the machine is taken for silence.
        monkeypatch.setattr(loop, "time", lambda: begun + passed_s)
        asking = asyncio.ensure_future(client.call("put_item", {}))
        for _ in pieces:
            next_piece.release()
            assert await asyncio.to_thread(sent.acquire, timeout=PATIENCE_S)
            passed_s += 0.25
            await asyncio.sleep(0)
        assert len((await asking)["text"]) == 200_000
        assert passed_s > 2.0
        client.close()


async def test_given_more_calls_than_the_store_may_make_then_the_rest_waits_for_its_turn() -> None:
    at_once, most, lock = 0, 0, threading.Lock()
    arrived, gate = threading.Semaphore(0), threading.Semaphore(0)

    def counts(connection: socket.socket, _: bytes, __: int) -> bool:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
        arrived.release()
        assert gate.acquire(timeout=PATIENCE_S)
        with lock:
            at_once -= 1
        connection.sendall(message("200 OK", b"{}"))
        return True

    with http_server(counts) as server:
        settings = settings_for(server.url, connections_max=2)
        client = client_of(settings)
        store = AsyncDynamoStore(client, settings)
        calls = [asyncio.ensure_future(store.transact(PUT)) for _ in range(6)]
        for _ in range(2):
            assert await asyncio.to_thread(arrived.acquire, timeout=PATIENCE_S)
        gate.release(len(calls))
        assert await asyncio.gather(*calls) == [Applied()] * 6
        assert (most, server.connections) == (2, 2)
        client.close()


async def test_given_rows_that_wait_for_a_place_then_they_leave_only_if_they_still_may() -> None:
    """Found in review: asked before the wait alone, a node's rows left seconds behind the loss of their shard."""
    arrived, gate = threading.Event(), threading.Event()

    def holds_up(connection: socket.socket, _: bytes, number: int) -> bool:
        if number == 1:
            arrived.set()
            assert gate.wait(PATIENCE_S)
        connection.sendall(message("200 OK", b'{"UnprocessedItems": {}}'))
        return True

    may_leave = True
    with http_server(holds_up) as server:
        settings = settings_for(server.url, connections_max=1)
        client = client_of(settings)
        store = AsyncDynamoStore(client, settings)
        first = asyncio.ensure_future(store.transact(PUT))
        assert await asyncio.to_thread(arrived.wait, PATIENCE_S)
        rows = asyncio.ensure_future(store.write([ROW], lambda: may_leave))
        await asyncio.sleep(0)
        may_leave = False
        gate.set()
        assert await first == Applied()
        with pytest.raises(NotSent):
            await rows
        assert not await store.write([ROW])
        assert [b"BatchWriteItem" in request for request in server.requests] == [False, True]
        client.close()


async def test_given_a_name_whose_first_address_nobody_answers_under_then_the_next_one_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found in review: an interface endpoint with a lost zone, IPv6 that leads nowhere. All the patience went to the first."""
    with http_server(answers("200 OK")) as server, nobody_answers(server.port) as dead:

        async def both(_: str, port: int, **__: Any) -> list[Any]:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port)) for host in (dead, "127.0.0.1")]

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", both)
        client = client_of(settings_for(f"http://store.test:{server.port}", connect_timeout_s=5.0))
        await client.call("put_item", {})
        assert (server.connections, len(server.requests)) == (1, 1)
        client.close()


async def test_given_a_host_without_threads_then_the_name_is_not_looked_up_and_nothing_was_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Found in review: it was raised as a bug. Programs of the host that have all threads took its node's actors, then the node."""

    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with http_server(answers("200 OK", b'{"Responses": {}, "UnprocessedKeys": {}}')) as server:
        settings = settings_for(f"http://localhost:{server.port}")
        client = client_of(settings)
        store = AsyncDynamoStore(client, settings)
        with monkeypatch.context() as full:
            full.setattr(threading.Thread, "start", start)
            assert await store.transact(PUT) == Throttled()
            with pytest.raises(StoreUnavailable):
                await store.get([KEY])
        assert await store.get([KEY]) == {}
        client.close()


@contextmanager
def nobody_answers(port: int) -> Iterator[str]:
    """An address whose port takes no more connections: a listener with a full queue that nobody empties."""
    host = "127.0.0.2"
    with ExitStack() as held:
        listener = held.enter_context(socket.create_server((host, port), backlog=0))
        assert listener is not None
        while True:
            connection = held.enter_context(socket.socket())
            connection.settimeout(0.2)
            try:
                connection.connect((host, port))
            except TimeoutError:
                break
        yield host


async def test_given_credentials_that_are_fetched_anew_then_the_loop_goes_on_meanwhile() -> None:
    """An instance's own service may take a second to answer, in which nobody would be served."""
    fetched_by: list[threading.Thread] = []

    def fetch() -> dict[str, str]:
        fetched_by.append(threading.current_thread())
        expires = datetime.now(UTC) + timedelta(hours=6)
        return {"access_key": "K", "secret_key": "S", "token": "T", "expiry_time": expires.isoformat()}

    stale = datetime.now(UTC) - timedelta(hours=1)
    credentials = RefreshableCredentials("OLD", "S", "T", stale, fetch, "test")
    with http_server(answers("200 OK")) as server:
        settings = settings_for(server.url)
        route = Route(Endpoint(f"{server.url}/", "us-east-1"), settings, None)
        client = AsyncItemsClient(credentials, route, settings)
        for _ in range(3):
            await client.call("put_item", {})
        assert [thread is threading.main_thread() for thread in fetched_by] == [False]
        assert all(b"Credential=K/" in request for request in server.requests)
        client.close()
