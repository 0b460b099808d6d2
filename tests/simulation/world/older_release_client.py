"""The way to the store of a node whose release knows no fields of newer versions: what it reads, it reads without them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tests.simulation.world.store_client import StoreClient, Verdict
from tests.support.harness.two_releases import known_before
from tidegate_core.rows.effects import Items, Refused, Unavailable
from tidegate_core.rows.store_operations import Item, Key, Page, RangeRead, Transaction


class OlderStoreClient(StoreClient):
    """As its base, otherwise."""

    def commit(self, transaction: Transaction, done: Callable[[Verdict], None]) -> None:
        def without(verdict: Verdict) -> None:
            if isinstance(verdict, Refused):
                verdict = replace(verdict, failed=tuple((key, _known(item)) for key, item in verdict.failed))
            done(verdict)

        super().commit(transaction, without)

    def read(self, keys: Sequence[Key], done: Callable[[Items | Unavailable], None], attempt: int = 1) -> None:
        def without(answer: Items | Unavailable) -> None:
            done(Items(_all_known(answer.found)) if isinstance(answer, Items) else answer)

        super().read(keys, without, attempt)

    def read_range(self, wanted: RangeRead, done: Callable[[Page | Unavailable], None], attempt: int = 1) -> None:
        def without(answer: Page | Unavailable) -> None:
            done(
                Page(tuple(map(known_before, answer.items)), answer.next_after) if isinstance(answer, Page) else answer
            )

        super().read_range(wanted, without, attempt)


def _known(item: Item | None) -> Item | None:
    return None if item is None else known_before(item)


def _all_known(found: Mapping[Key, Item]) -> dict[Key, Item]:
    return {key: known_before(item) for key, item in found.items()}
