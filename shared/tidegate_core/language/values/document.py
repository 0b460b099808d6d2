"""What a later version does. It is refused by name, so that nobody mistakes it for a typing error or waits in vain.

The base of everything that users write or read: frozen, closed to unknown fields, with one canonical JSON form.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from annotated_types import GroupedMetadata, MaxLen
from pydantic import BaseModel, BeforeValidator, ConfigDict, Strict, WithJsonSchema, model_validator

from tidegate_core.language.values.json_values import WrittenNumber
from tidegate_core.language.values.problems import refused

PROOFS = "0.2"
"""The proofs: audit of what was delivered."""
LANGUAGE = "0.3"
"""The scheduling language: dialects, composites, catch-up, overlap policies, priorities, retries, suspend modes."""
OPERATIONS = "0.4"
"""Chaos, growth while running, audit, dead-letter replay, authentication of users."""
PLATFORM = "0.5"
"""Everything later: shared objects, quotas, applications, workflows, wide controls."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A word of the language that this version does not speak yet.

    Attributes:
        version: The release that does; empty: this one does, in another kind of document.
        hint: What to do until then.
    """

    version: str
    hint: str = ""

    @property
    def problem(self) -> str:
        return f"is planned for {self.version}" if self.version else "does not belong here"


@dataclass(frozen=True, slots=True, eq=False)
class PlannedKinds:
    """Annotation of a discriminated union: kinds that a later version adds to it.

    Each is equal to itself only: typing hashes the annotations of what may be absent, and a mapping has no hash.
    """

    kinds: Mapping[str, Planned]


def planned(version: str, *names: str, hint: str = "") -> dict[str, Planned]:
    """Returns one table entry per name: tables of planned fields, kinds and values are made of these."""
    return {name: Planned(version, hint) for name in names}


MAX_FIELDS = 64
"""Fields of one document; four times what the largest kind has. More are refused unread: each would be a problem to tell."""


MAX_LEVELS = 32
"""Lists and objects inside of each other, in what is no payload; a schedule's composites and filters need 26."""
MAX_CONTAINERS = 5_000
"""Of a schedule, whose 64 KiB have no room for more that mean something. More are refused unread: each fault would be told."""


WIDEST = 256
"""Entries of the longest list and mapping that any field takes (`AtMost`); a longer one is refused by its field, unread."""


def overgrown(document: Any) -> str | None:
    """Returns what is wrong with a document's size as a tree, before any of its fields is looked at."""
    level, count = [document], 1
    for _ in range(MAX_LEVELS):
        below = [
            inner
            for each in level
            if len(each) <= WIDEST
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, dict | list)
        ]
        count += len(below)
        if count > MAX_CONTAINERS:
            return f"has more than {MAX_CONTAINERS} lists and mappings"
        if not below:
            return None
        level = below
    return f"is more than {MAX_LEVELS} levels deep"


class Document(BaseModel):
    """A frozen model that explains itself.

    Attributes:
        EXAMPLE: A valid document of this kind; documentation, schema and tests use it.
        PLANNED_FIELDS: Fields of a later version, refused with that version's name.
        PLANNED_VALUES: The same for values of a field: field name, then value.
        FIELD_HINTS: For fields that people try and that are called otherwise here.
        LATER_FIELDS: Fields that joined the language after documents of this kind had been stored. They are left out of the
            stored form where they say nothing, so that the hash of an older document stays what it was (SEMANTICS 12.1).
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, serialize_by_alias=True)

    EXAMPLE: ClassVar[Mapping[str, Any]] = {}
    PLANNED_FIELDS: ClassVar[Mapping[str, Planned]] = {}
    PLANNED_VALUES: ClassVar[Mapping[str, Mapping[str, Planned]]] = {}
    FIELD_HINTS: ClassVar[Mapping[str, str]] = {}
    LATER_FIELDS: ClassVar[frozenset[str]] = frozenset()

    @model_validator(mode="before")
    @classmethod
    def _few_fields(cls, given: Any) -> Any:
        if isinstance(given, dict) and len(given) > MAX_FIELDS:
            raise refused(f"has {len(given)} fields, at most {MAX_FIELDS} are allowed")
        return given

    def canonical_json(self) -> str:
        """Returns the stored form: defaults spelled out (a later default changes nothing), absent fields left out."""
        fields = self.model_dump(mode="json", exclude_none=True, exclude=self.left_out())
        return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def left_out(self) -> set[str]:
        """Returns the later fields that say what their absence says."""
        known = type(self).model_fields
        return {
            name
            for name in self.LATER_FIELDS
            if getattr(self, name) == known[name].get_default(call_default_factory=True)
        }


class AtMost(GroupedMetadata):
    """Bounds a list or mapping before its entries are looked at: a million faulty ones would take seconds to be told."""

    def __init__(self, entries: int) -> None:
        self._entries = entries

    def __iter__(self) -> Iterator[object]:
        yield MaxLen(self._entries)  # For the schema.
        yield BeforeValidator(self._checked)

    def _checked(self, given: Any) -> Any:
        if isinstance(given, list | tuple | dict) and len(given) > self._entries:
            raise refused(f"has {len(given)} entries, at most {self._entries} are allowed")
        return given


def _as_text(value: Any) -> str:
    if isinstance(value, bool):  # before int: a bool is one, and Spark and shells spell it in lower case
        return "true" if value else "false"
    if isinstance(value, int | float):
        return value.written if isinstance(value, WrittenNumber) else str(value)
    if value is None:
        raise refused("is null", hint='quote it where "null" or "~" is the text, or leave it out')
    if not isinstance(value, str):
        raise refused("is not a text", hint="write a text, a number or true/false")
    if "\x00" in value:
        # Neither a command line nor an environment can carry it.
        raise refused("contains a NUL character", hint="no command line can carry it: take it out")
    return value


Text = Annotated[str, BeforeValidator(_as_text), WithJsonSchema({"type": ["string", "number", "boolean"]})]
"""A text that may come as a number or as a boolean, such as a Spark property: what was written, as far as its reader has kept that."""

Whole = Annotated[int, Strict()]
"""A whole number; a text or a fraction is no number here."""

Flag = Annotated[bool, Strict()]
"""True or false; never a word that sounds like one."""
