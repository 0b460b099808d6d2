"""A bench whose holder is of this release, or of one that knows of no versions of rows. For tests of what both do side by side."""

from __future__ import annotations

from tests.support.harness.actor_harness import ActorHarness
from tidegate_core.rows import keys
from tidegate_core.rows.effects import EffectRequest, Items, Refused, Result
from tidegate_core.rows.item_codec import to_item
from tidegate_core.rows.schema_version import FIELDS, FIRST, StoreSchema
from tidegate_core.rows.store_operations import Item, Page, Put

NEWER_FIELDS = frozenset(name for versions in FIELDS.values() for name, since in versions.items() if since > FIRST)


class TwoReleases(ActorHarness):
    """The older release sees no newer fields, so it writes none either, and decides as all did before there were any.

    Attributes:
        older: Whether the present holder is of that one.
    """

    def __init__(self, schema: StoreSchema) -> None:
        self.older = False
        super().__init__(writes=schema.writes)
        self.migrated_to(schema)

    def migrated_to(self, schema: StoreSchema) -> None:
        self.store.write([Put(keys.SCHEMA_KEY, {**to_item(schema, keys.SCHEMA_KEY), "rev": 1})])

    def is_taken_over(self, *, to_older: bool) -> None:
        """Another holder takes over from where this one stands."""
        self.older = to_older
        self._holding["writes"] = FIRST
        self.crash()

    def _result(self, ask: EffectRequest) -> Result | None:
        result = super()._result(ask)
        if not self.older:
            return result
        match result:
            case Items(found):
                return Items({key: known_before(item) for key, item in found.items() if key != keys.SCHEMA_KEY})
            case Page(items, next_after):
                return Page(tuple(map(known_before, items)), next_after)
            case Refused(failed, doubtful):
                return Refused(
                    tuple((key, None if item is None else known_before(item)) for key, item in failed), doubtful
                )
            case _:
                return result


def known_before(item: Item) -> Item:
    """Returns an item as a release reads it that knows rows of the first version only."""
    return {name: value for name, value in item.items() if name not in NEWER_FIELDS}
