"""All sources as they are stored: one item, moved by compare-and-set by the owner of its home shard (decision 19)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache

from tidegate_core.language.events.event_source import SourceSpec
from tidegate_core.rows.item_codec import from_nested

SPECS_KEPT = 256
"""Parsed specs per process; there are at most 64 sources."""


class UnreadableSource(Exception):
    """A source's definition is none in this release's grammar: a newer release has accepted it, and this one was rolled back to."""


@lru_cache(maxsize=SPECS_KEPT)
def _parsed(body: str) -> SourceSpec:
    return SourceSpec.model_validate_json(body)


@lru_cache(maxsize=SPECS_KEPT)
def _topic_of(body: str) -> str:
    return str(json.loads(body)["topic"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """What was said of one source.

    Attributes:
        position: Text of the position of the last request on it; older ones are superseded.
        version: Of its definition; it grows on when the source is deleted and made anew.
        body: Its definition as JSON; None: deleted.
        vector: Id of the item with the first offset that it maps of each topic partition; None: it is being opened, and maps
            nothing yet.
        opened: Version of the list of sources with which it got that; None: of a time at which nobody said so.
        opened_by: Id of the request that is opening it; None: nobody is.
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
        """Whether it is not deleted; it may still be being opened."""
        return self.body is not None

    @property
    def is_open(self) -> bool:
        return self.body is not None and self.vector is not None

    @property
    def topic(self) -> str:
        """Of one that is there, whether or not this release can read the rest."""
        assert self.body is not None
        return _topic_of(self.body)

    @property
    def spec(self) -> SourceSpec:
        """Of one that is there.

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
    """All of them under one version, which each change raises."""

    version: int = 0
    entries: tuple[Source, ...] = ()

    def find(self, namespace: str, name: str) -> Source | None:
        return next((each for each in self.entries if (each.namespace, each.name) == (namespace, name)), None)

    def topics_of(self, namespaces: Iterable[str] | None) -> tuple[str, ...]:
        """Returns the topics whose records become events of these namespaces (None: of any), or will at once."""
        wanted = None if namespaces is None else frozenset(namespaces)
        there = (each for each in self.entries if each.is_there and (wanted is None or each.namespace in wanted))
        return tuple(sorted({each.topic for each in there}))

    def changed(self, entry: Source) -> Sources:
        """Returns them with this one in the place of the one of its name."""
        others = [each for each in self.entries if (each.namespace, each.name) != (entry.namespace, entry.name)]
        return Sources(version=self.version + 1, entries=(*others, entry))


NO_SOURCES = Sources()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSources:
    """`SOURCES`.

    Attributes:
        entries: JSON: what it nests is nothing that a store's item holds natively.
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
