from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.chaos.proxies.control import Control, ControlClient, ControlRefused
from tests.chaos.proxies.link import Link
from tests.chaos.proxies.proxy_plan import Plan, Way
from tests.chaos.proxies.store_faults import StoreFaults
from tests.chaos.proxies.store_proxy import StoreProxy


@asynccontextmanager
async def a_control(stores: dict[str, StoreProxy], links: dict[str, Link]) -> AsyncIterator[ControlClient]:
    control = Control(stores, links)
    await control.start()
    try:
        yield ControlClient(control.port)
    finally:
        await control.close()


async def test_given_settings_over_http_then_the_named_proxy_has_them_and_others_do_not() -> None:
    stores, links = {"node-1": StoreProxy(1, 1), "node-2": StoreProxy(1, 1)}, {"node-1-kafka": Link(1)}
    faults = StoreFaults(rates={"throttle": 0.1}, operations=frozenset({"Query"}))
    async with a_control(stores, links) as client:
        assert await asyncio.to_thread(lambda: client.answers)
        await asyncio.to_thread(client.set_faults, "node-1", faults)
        await asyncio.to_thread(client.cut, "node-1-kafka", ["to_client"])
    assert (stores["node-1"].faults, stores["node-2"].faults) == (faults, StoreFaults())
    assert links["node-1-kafka"].cut_directions == ["to_client"]


async def test_given_counters_then_they_are_told_of_all_or_of_one() -> None:
    stores, links = {"node-1": StoreProxy(1, 1), "node-2": StoreProxy(1, 1)}, {"link": Link(1)}
    for proxy in stores.values():
        proxy.counts["throttle", "Query"] = 2
    links["link"].counts["stalled"] = 3
    async with a_control(stores, links) as client:
        assert await asyncio.to_thread(client.store_counts) == {("throttle", "Query"): 4}
        assert await asyncio.to_thread(client.store_counts, "node-2") == {("throttle", "Query"): 2}
        assert await asyncio.to_thread(client.link_counts, "link") == {"stalled": 3}


async def test_given_what_cannot_be_then_it_is_refused_with_a_reason() -> None:
    async with a_control({"node-1": StoreProxy(1, 1)}, {"link": Link(1)}) as client:
        with pytest.raises(ControlRefused, match="there is no /stores/node-9"):
            await asyncio.to_thread(client.set_faults, "node-9", StoreFaults())
        with pytest.raises(ControlRefused, match="directions are"):
            await asyncio.to_thread(client.cut, "link", ["sideways"])


def test_given_a_plan_as_text_then_it_comes_back() -> None:
    plan = Plan(7, 1, (Way("node-1", 2, 3),), (Way("node-1-kafka", 4, 5),))
    assert Plan.of(plan.text()) == plan
