"""All event sources in one item. Only the owner of one shard moves it, by compare-and-set."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache

from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.rows.item_codec import from_nested

SPECS_KEPT = 256
"""Parsed definitions per process; a cluster has at most 64 sources."""


class UnreadableSource(Exception):
    """This release cannot read a source's definition: a newer release accepted it, then was rolled back."""


@lru_cache(maxsize=SPECS_KEPT)
def _parsed(body: str) -> SourceSpec:
    return SourceSpec.model_validate_json(body)


@lru_cache(maxsize=SPECS_KEPT)
def _topic_of(body: str) -> str:
    return str(json.loads(body)["topic"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One event source.

    Attributes:
        position: Text of the position of the last request about it; older requests are superseded.
        version: Version of its definition; it keeps growing when the source is deleted and recreated.
        body: Definition as JSON; None: deleted.
        vector: Id of the item with the first offset that it maps per topic partition. None while it opens and maps
            nothing.
        opened: Version of the source list that set the vector; None in rows of older releases.
        opened_by: Id of the request that is opening it; None when none is.
    """

    namespace: str
    name: str
    position: str
    version: int
    body: str | None = None
    vector: str | None = None
    opened: int | None = None
    opened_by: str | None = None

    @property
    def is_there(self) -> bool:
        """Whether it exists; it may still be opening."""
        return self.body is not None

    @property
    def is_open(self) -> bool:
        return self.body is not None and self.vector is not None

    @property
    def topic(self) -> str:
        """Topic of an existing source, readable even when this release cannot read the rest."""
        assert self.body is not None
        return _topic_of(self.body)

    @property
    def spec(self) -> SourceSpec:
        """Definition of an existing source.

        Raises:
            UnreadableSource: This release cannot read it.
        """
        assert self.body is not None
        try:
            return _parsed(self.body)
        except ValueError as error:
            raise UnreadableSource(f"{self.namespace}/{self.name} version {self.version}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """All event sources under one version, which each change raises."""

    version: int = 0
    entries: tuple[Source, ...] = ()

    def find(self, namespace: str, name: str) -> Source | None:
        return next((each for each in self.entries if (each.namespace, each.name) == (namespace, name)), None)

    def topics_of(self, namespaces: Iterable[str] | None) -> tuple[str, ...]:
        """Returns the topics of sources that serve, or soon will serve, these namespaces (None: any)."""
        wanted = None if namespaces is None else frozenset(namespaces)
        there = (each for each in self.entries if each.is_there and (wanted is None or each.namespace in wanted))
        return tuple(sorted({each.topic for each in there}))

    def changed(self, entry: Source) -> Sources:
        """Returns the list with this source in place of its namesake."""
        others = [each for each in self.entries if (each.namespace, each.name) != (entry.namespace, entry.name)]
        return Sources(version=self.version + 1, entries=(*others, entry))


NO_SOURCES = Sources()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSources:
    """The stored form of all event sources (`SOURCES`).

    Attributes:
        entries: JSON, because an item cannot hold this nesting natively.
    """

    version: int
    entries: str

    @classmethod
    def of(cls, sources: Sources) -> StoredSources:
        entries = [
            {name: value for name, value in asdict(each).items() if value is not None} for each in sources.entries
        ]
        return cls(version=sources.version, entries=json.dumps(entries, separators=(",", ":"), ensure_ascii=False))

    @property
    def sources(self) -> Sources:
        return Sources(
            version=self.version, entries=tuple(from_nested(Source, each) for each in json.loads(self.entries))
        )
