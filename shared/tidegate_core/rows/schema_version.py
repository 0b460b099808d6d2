"""The row version of a store: it lets nodes of two releases serve one store at the same time.

A new version marks rows that an older release would misread. A field that an older release may ignore needs no
version: the item codec ignores unknown attributes. So most releases write the same version as the release before.
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
"""Version of a store whose releases knew no versions."""
BOUNDS: Final = 2
"""`next_nominal` in a state may be a search bound, and every queue entry states its order."""
NEWEST: Final = BOUNDS
"""Newest version that this release reads and writes."""
OLDEST: Final = FIRST
"""Oldest version that this release reads.

It rises in the release after the one whose `tidegate migrate` converts such rows.
"""

FIELDS: Final[Mapping[type, Mapping[str, int]]] = MappingProxyType({ScheduleState: {"next_nominal_is_bound": BOUNDS}})
"""Fields that change the meaning of others, with the version from which they may be written.

A field that an older release may ignore has no place here, nor one that only its writer reads. `next_tick_is_bound`
is absent because each tick is searched for where it stands.
"""


class Readable(NamedTuple):
    """Row versions that a release reads, both ends included; it writes up to the newest."""

    oldest: int = OLDEST
    newest: int = NEWEST


THIS_RELEASE: Final = Readable()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreSchema:
    """The row version of the store (`SCHEMA`).

    `tidegate migrate` moves it by compare-and-set; nodes read it after fencing and every few seconds.

    Attributes:
        writes: Version in which nodes write. A node that cannot read it does not serve.
        rows_from: Oldest version of existing rows. A node that cannot read it does not serve.
        closing: Next value of `writes`. A node that cannot read it acquires no shards.
        cursor: Progress of a pass over the rows that has begun and not ended.
    """

    writes: int = FIRST
    rows_from: int = FIRST
    closing: int | None = None
    cursor: str | None = None

    @classmethod
    def of(cls, item: Item | None) -> StoreSchema:
        """Returns the schema in an item. A store without the item was created by a release without versions."""
        return cls() if item is None else from_item(cls, item)

    @property
    def demands(self) -> int:
        """Version that a node must read in order to acquire shards."""
        return max(self.writes, self.closing or 0)

    def refusal(self, readable: Readable = THIS_RELEASE) -> str | None:
        """Returns why a process of this release must not serve, and the remedy; None when it may."""
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
    """Yields the set fields of a record that must not be written in a version."""
    for name, since in FIELDS.get(type(record), {}).items():
        if since > version and _says(record, name):
            yield name


def _says(record: DataclassInstance, name: str) -> bool:
    value: Any = getattr(record, name)
    default = next(field.default for field in fields(record) if field.name == name)
    return bool(value != default)
