"""In which version rows are written: what nodes of two releases, side by side on one store, may expect of each other (decision 26).

A row of a newer version is one that an older release would misread. Fields that an older release may leave aside without
harm need no version: `codec.from_item` does so. So most releases write the same version as the one before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tidegate_core.rows.item_codec import from_item
from tidegate_core.rows.schedule import ScheduleState
from tidegate_core.rows.store_operations import Item

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FIRST: Final = 1
"""What a store is written in whose makers knew of no versions."""
BOUNDS: Final = 2
"""A state's `next_nominal` may be a bound of a search; rows of queues all say their order."""
NEWEST: Final = BOUNDS
"""What this release can write, and read."""
OLDEST: Final = FIRST
"""The oldest rows that this release can read. It rises when code that reads them goes, a release after `tidegate migrate` could."""

FIELDS: Final[Mapping[type, Mapping[str, int]]] = MappingProxyType({ScheduleState: {"next_nominal_is_bound": BOUNDS}})
"""Fields that change what others mean, and since which version they may be written. (`next_tick_is_bound` changes nothing: a tick is
looked for where it stands. A new field that an older release may overlook has no place here, nor one that only its own writer reads.)
"""


class Readable(NamedTuple):
    """What a release can read, both ends included; it writes up to the newest."""

    oldest: int = OLDEST
    newest: int = NEWEST


THIS_RELEASE: Final = Readable()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSchema:
    """`SCHEMA`: one item, moved by compare-and-set by `tidegate migrate`. Nodes read it, after they fence and every few seconds.

    Attributes:
        writes: Version in which nodes write. Whoever cannot read it does not serve.
        rows_from: Oldest version of which there may be rows. Whoever cannot read those does not serve.
        closing: Version that is about to be `writes`: who cannot read it takes nothing over any more.
        cursor: How far the rows have been moved, where a pass has begun and not ended.
    """

    writes: int = FIRST
    rows_from: int = FIRST
    closing: int | None = None
    cursor: str | None = None

    @classmethod
    def of(cls, item: Item | None) -> StoreSchema:
        """Returns what a read has found: a store without the item was made by a release that knew of no versions."""
        return cls() if item is None else from_item(cls, item)

    @property
    def demands(self) -> int:
        """What who takes something over has to be able to read."""
        return max(self.writes, self.closing or 0)

    def refusal(self, readable: Readable = THIS_RELEASE) -> str | None:
        """Returns why a process of such a release must not serve, and what to do; None when it may."""
        if self.demands > readable.newest:
            return (
                f"the store is written in version {self.demands} and this release reads up to {readable.newest}: "
                "run the newer release, there is no way back"
            )
        if self.rows_from < readable.oldest:
            return (
                f"the store may hold rows of version {self.rows_from} and this release reads from {readable.oldest} on: "
                "run `tidegate migrate --finish` of the release before this one first, while its nodes serve"
            )
        return None


def newer_fields(record: DataclassInstance, version: int) -> Iterator[str]:
    """Yields the fields of a record that say something, and must not be written in a version."""
    for name, since in FIELDS.get(type(record), {}).items():
        if since > version and _says(record, name):
            yield name


def _says(record: DataclassInstance, name: str) -> bool:
    value: Any = getattr(record, name)
    default = next(field.default for field in fields(record) if field.name == name)
    return bool(value != default)
