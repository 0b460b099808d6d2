"""`python -m tests.chaos.proxies PLAN`: all proxies of a rig in a process of their own, until a signal ends it."""

from __future__ import annotations

import asyncio
import signal
import sys

from tests.chaos.proxies.control import Control
from tests.chaos.proxies.link import Link
from tests.chaos.proxies.proxy_plan import Plan
from tests.chaos.proxies.store_proxy import StoreProxy


async def serve(plan: Plan) -> None:
    """Runs the plan's proxies until SIGTERM or SIGINT."""
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    stores = {way.name: StoreProxy(way.upstream, f"{plan.seed}/{way.name}", way.port) for way in plan.stores}
    links = {way.name: Link(way.upstream, way.port) for way in plan.links}
    control = Control(stores, links, plan.control)
    parts: list[StoreProxy | Link | Control] = [*stores.values(), *links.values(), control]
    for part in parts:
        await part.start()
    await ended.wait()
    for part in reversed(parts):
        await part.close()


if __name__ == "__main__":
    asyncio.run(serve(Plan.of(sys.argv[1])))
