"""Reads event sources; all are in one item."""

from __future__ import annotations

import json

from tidegate_api.http.problem_responses import not_found
from tidegate_api.thread_pools import Pools
from tidegate_client.views import SourceView
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.source_list import NO_SOURCES, Source, Sources, StoredSources
from tidegate_ports.store import Store


class SourceReads:
    """Reads event sources, consistent with the receipts."""

    def __init__(self, store: Store, pools: Pools) -> None:
        self._store = store
        self._pools = pools

    async def all(self, namespace: str | None) -> list[SourceView]:
        """Returns the sources of a namespace, or all, by name; at most 64."""
        present = await self._present()
        there = [each for each in present.entries if each.is_there and namespace in (None, each.namespace)]
        return [_view(each) for each in sorted(there, key=lambda each: (each.namespace, each.name))]

    async def one(self, namespace: str, name: str) -> SourceView:
        """Returns a source. Raises ApiProblem (404)."""
        found = (await self._present()).find(namespace, name)
        if found is None or not found.is_there:
            raise not_found(f"source {namespace}/{name}: does not exist; tidegate source list shows the sources")
        return _view(found)

    async def _present(self) -> Sources:
        item = (await self._pools.read(lambda: self._store.get([keys.SOURCES_KEY]))).get(keys.SOURCES_KEY)
        return NO_SOURCES if item is None else from_item(StoredSources, item).sources


def _view(source: Source) -> SourceView:
    return SourceView(
        namespace=source.namespace,
        name=source.name,
        status="open" if source.is_open else "opening",
        version=source.version,
        topic=source.topic,
        spec=json.loads(source.body or "{}"),
    )
