"""Reads the ledger: outcomes of occurrences, in pages."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate_api.cluster_map import MapReader
from tidegate_api.http.page_tokens import Place
from tidegate_api.reads.range_scan import RangeReader, Span
from tidegate_api.reads.view_builders import occurrence_view
from tidegate_api.thread_pools import Pools
from tidegate_client.views import OccurrenceView, Page
from tidegate_core.language.values.derived_ids import schedule_shard
from tidegate_core.rows import keys
from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.keys import LAST, instant_text
from tidegate_core.rows.ledger import LedgerRow
from tidegate_core.rows.store_operations import Item


class OccurrenceReads:
    """Reads the ledger."""

    def __init__(self, pools: Pools, cluster: MapReader, ranges: RangeReader) -> None:
        self._pools = pools
        self._cluster = cluster
        self._ranges = ranges

    async def page(
        self,
        namespace: str,
        schedule: str | None,
        since: int | None,
        until: int | None,
        place: Place,
        size: int,
    ) -> Page[OccurrenceView]:
        """Returns rows with `since` <= nominal < `until`. The rows of one schedule are ordered by nominal time."""
        cluster = await self._cluster.current()
        shards: Sequence[int] = range(cluster.shards)
        span = Span.of_prefix(f"{keys.LEDGER_PREFIX}{namespace}/", "history")
        if schedule is not None:
            shards = [schedule_shard(namespace, schedule, cluster.shards)]
            span = _between(f"{keys.LEDGER_PREFIX}{namespace}/{schedule}#", since, until)

        def keep(item: Item) -> bool:
            nominal = item["nominal"]
            assert isinstance(nominal, int)
            return (since is None or nominal >= since) and (until is None or nominal < until)

        found, after = await self._ranges.listed(shards, [span], place, size, keep)

        def views() -> list[OccurrenceView]:
            return [occurrence_view(from_item(LedgerRow, item)) for _, item in found]

        return Page(items=await self._pools.read(views), next_page_token="" if after is None else after.text())


def _between(prefix: str, since: int | None, until: int | None) -> Span:
    low = prefix if since is None else prefix + instant_text(since)
    # A sort key continues after the instant, so the bare text of the instant sorts before all keys with it.
    high = prefix + (LAST if until is None else instant_text(until))
    return Span(low, high, "history")
