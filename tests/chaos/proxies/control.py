"""Sets and asks the proxies of another process over HTTP, while they work."""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from tests.chaos.proxies.connections import LOOPBACK, Listener
from tests.chaos.proxies.http_wire import HttpMessage, NotHttp, answer, read_message
from tests.chaos.proxies.link import CutRefused, Ending, Link
from tests.chaos.proxies.store_faults import FaultsRefused, StoreFaults
from tests.chaos.proxies.store_proxy import StoreProxy

ASK_TIMEOUT_S = 30.0
"""It answers at once; the machine may be busy."""
JSON = "application/json"


class ControlRefused(Exception):
    """The control did not take it; the text says why."""


class Control:
    """Answers `GET /` with all counters, and takes `PUT /stores/<name>` and `PUT /links/<name>`."""

    def __init__(self, stores: Mapping[str, StoreProxy], links: Mapping[str, Link], port: int = 0) -> None:
        self._stores = stores
        self._links = links
        self._listener = Listener(self._serve, port)

    @property
    def port(self) -> int:
        """Where it listens, once started."""
        return self._listener.port

    async def start(self) -> None:
        await self._listener.start()

    async def close(self) -> None:
        await self._listener.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(NotHttp):
            request = await read_message(reader)
            if request is not None:
                writer.write(self._answer(request).encoded())
                await writer.drain()

    def _answer(self, request: HttpMessage) -> HttpMessage:
        method, path, *_ = request.start.split(" ")
        try:
            if method == "PUT":
                self._set(path, json.loads(request.body))
            return _json("200 OK", self._state())
        except KeyError:
            return _json("404 Not Found", {"problem": f"there is no {path}"})
        except (FaultsRefused, CutRefused, ValueError, TypeError) as wrong:
            return _json("400 Bad Request", {"problem": str(wrong)})

    def _set(self, path: str, document: Any) -> None:
        _, what, name = path.split("/")
        if what == "stores":
            self._stores[name].faults = StoreFaults.of(document)
        elif what == "links":
            self._links[name].cut(document["directions"], document.get("ending", "deliver"))
        else:
            raise KeyError(what)

    def _state(self) -> dict[str, Any]:
        return {
            "stores": {
                name: {
                    "faults": proxy.faults.document(),
                    "counts": [[kind, operation, count] for (kind, operation), count in sorted(proxy.counts.items())],
                }
                for name, proxy in self._stores.items()
            },
            "links": {
                name: {"cut": link.cut_directions, "counts": dict(link.counts)} for name, link in self._links.items()
            },
        }


class ControlClient:
    """Asks a control at that port. Raises ControlRefused where it says no."""

    def __init__(self, port: int) -> None:
        self._url = f"http://{LOOPBACK}:{port}"

    @property
    def answers(self) -> bool:
        try:
            self._ask("GET", "/")
        except OSError:
            return False
        return True

    def set_faults(self, store: str, faults: StoreFaults) -> None:
        self._ask("PUT", f"/stores/{store}", faults.document())

    def cut(self, link: str, directions: Collection[str], ending: Ending = "deliver") -> None:
        """Cuts a link; no directions open it."""
        self._ask("PUT", f"/links/{link}", {"directions": sorted(directions), "ending": ending})

    def store_counts(self, store: str | None = None) -> Counter[tuple[str, str]]:
        """Returns requests by (kind, operation), of all ways or of one."""
        counts: Counter[tuple[str, str]] = Counter()
        for name, state in self._ask("GET", "/")["stores"].items():
            for kind, operation, count in state["counts"] if store in (None, name) else ():
                counts[kind, operation] += count
        return counts

    def link_counts(self, link: str) -> Counter[str]:
        return Counter(self._ask("GET", "/")["links"][link]["counts"])

    def _ask(self, method: str, path: str, document: Any = None) -> Any:
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(self._url + path, body, {"Content-Type": JSON}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=ASK_TIMEOUT_S) as reply:
                return json.loads(reply.read())
        except urllib.error.HTTPError as refusal:
            with refusal:
                raise ControlRefused(json.loads(refusal.read())["problem"]) from refusal


def _json(status: str, document: Any) -> HttpMessage:
    return answer(status, json.dumps(document).encode(), JSON)
