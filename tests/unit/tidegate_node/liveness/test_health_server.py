"""Health: it says why, it never blames the bricks for a dead process, and it shows the figures."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tidegate_node.liveness.health_server import POLL_SILENCE_MS_MAX, STORE_SILENCE_MS_MAX, HealthServer, Standing
from tidegate_telemetry import idle_connections
from tidegate_telemetry.metrics import Metrics

GOOD = Standing({"membership": 5, "reader": 9}, True, frozenset({0, 1}), frozenset({0, 1}), 100)


@pytest.mark.parametrize(
    ("standing", "dead", "unready"),
    [
        pytest.param(GOOD, None, None, id="good"),
        pytest.param(
            dataclasses.replace(GOOD, poll_silence_ms={"reader": POLL_SILENCE_MS_MAX + 1}),
            "reader did not turn",
            "reader did not turn",
            id="a thread hangs",
        ),
        pytest.param(dataclasses.replace(GOOD, joined=False), None, "not joined", id="not joined"),
        pytest.param(
            dataclasses.replace(GOOD, serving=frozenset({0})), None, "topic partitions 1 are being", id="taking over"
        ),
        pytest.param(
            dataclasses.replace(GOOD, store_silence_ms=STORE_SILENCE_MS_MAX + 1), None, "the store", id="store away"
        ),
        pytest.param(dataclasses.replace(GOOD, map_is_known=False), None, "the map", id="map away"),
        pytest.param(
            dataclasses.replace(GOOD, store_silence_ms=STORE_SILENCE_MS_MAX + 1, map_is_known=False),
            None,
            "the store",
            id="store away for a minute",
        ),
        pytest.param(
            dataclasses.replace(GOOD, standing_still=frozenset({("t.events", 3), ("t.events", 5)})),
            None,
            "topic t.events, topic partitions 3, 5 are stuck",
            id="positions are gone",
        ),
        pytest.param(
            dataclasses.replace(GOOD, made_anew=("t.requests", "do it"), standing_still=frozenset({("t.requests", 3)})),
            None,
            "topic t.requests was made anew: do it",
            id="the requests topic is another one, which is why its positions are gone",
        ),
        pytest.param(dataclasses.replace(GOOD, stopping=True), None, "stopping", id="stopping"),
        pytest.param(
            dataclasses.replace(GOOD, held=frozenset(), serving=frozenset()), None, None, id="joined and given nothing"
        ),
    ],
)
def test_given_a_standing_then_its_reasons_are_said(standing: Standing, dead: str | None, unready: str | None) -> None:
    """CD-108: 503 until it serves."""
    for reasons, said in ((standing.why_dead(), dead), (standing.why_unready(), unready)):
        if said is None:
            assert reasons == []
        else:
            (reason,) = reasons
            assert said in reason


@pytest.mark.parametrize(
    "elsewhere",
    [
        pytest.param({"store_silence_ms": STORE_SILENCE_MS_MAX + 1}, id="a store that is silent"),
        pytest.param({"map_is_known": False}, id="a map that cannot be read"),
        pytest.param({"standing_still": frozenset({("t.events", 3)})}, id="a position that is gone"),
        pytest.param({"open_transactions": ("topic t.events: a transaction is open",)}, id="an open transaction"),
        pytest.param({"made_anew": ("t.requests", "do it")}, id="a topic that was made anew"),
    ],
)
async def test_given_what_no_restart_mends_then_readyz_tells_it_and_no_roll_out_waits_for_it(
    elsewhere: dict[str, Any],
) -> None:
    """With a position gone in one topic partition no machine of the cluster could be drained any more."""
    async with _server(dataclasses.replace(GOOD, **elsewhere), Metrics()) as url:
        assert (await _get(f"{url}/readyz"))[0] == 503
        assert await _get(f"{url}/rolloutz") == (200, '{"ok":true,"reasons":[]}')


@pytest.mark.parametrize(
    "own",
    [
        pytest.param({"poll_silence_ms": {"reader": POLL_SILENCE_MS_MAX + 1}}, id="a thread hangs"),
        pytest.param({"clock_agreed": False}, id="brokers that never answered"),
        pytest.param({"joined": False}, id="not joined, as without a store that others reach"),
        pytest.param(
            {"serving": frozenset({0})}, id="taking over, as with a store that does not answer from the start"
        ),
        pytest.param({"drained": True}, id="drained"),
        pytest.param({"overloaded": True}, id="too busy"),
        pytest.param({"stopping": True}, id="stopping"),
    ],
)
async def test_given_a_process_that_is_not_in_its_place_then_a_roll_out_waits_for_it(own: dict[str, Any]) -> None:
    async with _server(dataclasses.replace(GOOD, **own), Metrics()) as url:
        assert (await _get(f"{url}/rolloutz"))[0] == 503


async def test_given_a_long_transaction_in_a_sources_topic_then_the_node_is_ready_and_names_it() -> None:
    """A sink that commits every 5 minutes made each node unready for four of them."""
    async with _server(dataclasses.replace(GOOD, waits_for_transactions=("topic orders: open",)), Metrics()) as url:
        status, body = await _get(f"{url}/readyz")
    assert status == 200
    assert json.loads(body) == {"ok": True, "reasons": [], "waits_for_transactions": ["topic orders: open"]}


@asynccontextmanager
async def _server(standing: Standing, metrics: Metrics) -> AsyncIterator[str]:
    def refresh() -> None:
        metrics.set("tidegate_owned_shards", 16)

    server = HealthServer("127.0.0.1", 0, lambda: standing, refresh, metrics)
    server.start()
    yield f"http://127.0.0.1:{server.port}"
    await server.stop()


async def _get(url: str) -> tuple[int, str]:
    def get() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode()

    return await asyncio.to_thread(get)


async def test_given_a_good_node_then_it_is_alive_and_ready() -> None:
    async with _server(GOOD, Metrics()) as url:
        assert await _get(f"{url}/livez") == (200, '{"ok":true,"reasons":[]}')
        assert (await _get(f"{url}/readyz"))[0] == 200
        assert (await _get(f"{url}/nothing"))[0] == 404


async def test_given_a_node_that_takes_over_then_it_is_alive_and_not_ready() -> None:
    async with _server(dataclasses.replace(GOOD, serving=frozenset()), Metrics()) as url:
        assert (await _get(f"{url}/livez"))[0] == 200
        status, body = await _get(f"{url}/readyz")

    assert status == 503
    assert json.loads(body) == {"ok": False, "reasons": ["topic partitions 0, 1 are being taken over"]}


async def test_given_figures_then_they_are_fresh() -> None:
    async with _server(GOOD, Metrics()) as url:
        status, body = await _get(f"{url}/metrics")

    assert status == 200
    assert "tidegate_owned_shards 16.0" in body.splitlines()


async def test_given_a_port_that_is_taken_then_it_says_so_at_once() -> None:
    async with _server(GOOD, Metrics()) as url:
        port = int(url.rpartition(":")[2])
        with pytest.raises(OSError, match="in use"):
            HealthServer("127.0.0.1", port, lambda: GOOD, lambda: None, Metrics())


async def test_given_a_client_that_asks_for_nothing_then_its_connection_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many as the process may have descriptors, and it could open no connection to broker or store any more."""
    monkeypatch.setattr(idle_connections, "HEAD_S_MAX", 0.1)
    async with _server(GOOD, Metrics()) as url:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
        assert await asyncio.wait_for(reader.read(), 60) == b""
        writer.close()
