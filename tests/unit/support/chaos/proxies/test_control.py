from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.chaos.proxies.control import Control, ControlClient, ControlRefused
from tests.chaos.proxies.link import Link
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


async def test_given_what_cannot_be_then_it_is_refused_with_a_reason() -> None:
    async with a_control({"node-1": StoreProxy(1, 1)}, {"link": Link(1)}) as client:
        with pytest.raises(ControlRefused, match="there is no /stores/node-9"):
            await asyncio.to_thread(client.set_faults, "node-9", StoreFaults())
        with pytest.raises(ControlRefused, match="directions are"):
            await asyncio.to_thread(client.cut, "link", ["sideways"])
