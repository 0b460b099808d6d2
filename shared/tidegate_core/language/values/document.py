"""Base class of all documents that users write or read, and the tables of features planned for later versions.

A document is frozen, refuses unknown fields, and has one canonical JSON form. A field, kind or value of a later version is
refused by its name, so that a user does not take the refusal for a typing error.
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
"""Release with the audit of deliveries."""
LANGUAGE = "0.3"
"""Release with the scheduling language: dialects, composites, catch-up, overlap policies, priorities, retries, suspend modes."""
OPERATIONS = "0.4"
"""Release with chaos tests, growth while running, audit, dead-letter replay and authentication of users."""
PLATFORM = "0.5"
"""Release with all later features: shared objects, applications, workflows."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A field, kind or value that is reserved for a later version.

    Attributes:
        version: Release that will have it; empty if this release has it in another kind of document.
        hint: Alternative until that release.
    """

    version: str
    hint: str = ""

    @property
    def problem(self) -> str:
        return f"is planned for {self.version}" if self.version else "does not belong here"


@dataclass(frozen=True, slots=True, eq=False)
class PlannedKinds:
    """Annotation of a discriminated union: the kinds that a later version adds to it.

    `typing` hashes the annotations of optional fields, and a mapping has no hash. So instances compare by identity.
    """

    kinds: Mapping[str, Planned]


def planned(version: str, *names: str, hint: str = "") -> dict[str, Planned]:
    """Returns a table with one entry per name, for planned fields, kinds or values."""
    return {name: Planned(version, hint) for name in names}


MAX_FIELDS = 64
"""Fields of one document, four times as many as the largest kind has. A larger document is refused unread: each field would be a problem."""

MAX_LEVELS = 32
"""Nested lists and objects outside of payloads; the composites and filters of a schedule need 26."""

MAX_CONTAINERS = 5_000
"""Lists and objects of one schedule: its 64 KiB hold no more useful ones. A larger document is refused unread."""

WIDEST = 256
"""Entries of the longest list or mapping that any field accepts (`AtMost`). The field refuses a longer one unread."""


def overgrown(document: Any) -> str | None:
    """Returns the problem if a document is nested too deeply or has too many lists and mappings. Reads no field."""
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
    """A frozen model with an example and with hints for refusals.

    Attributes:
        EXAMPLE: Valid document of this kind, for documentation, schema and tests.
        PLANNED_FIELDS: Fields of a later version; the refusal names that version.
        PLANNED_VALUES: Values of a later version, by field name and value.
        FIELD_HINTS: Hints for wrong field names that users try.
        LATER_FIELDS: Fields that were added after documents of this kind had been stored. The stored form omits them at their
            default, so that the hash of an older document does not change.
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
        """Returns the stored form: with defaults, so that a later default changes nothing; without absent fields."""
        fields = self.model_dump(mode="json", exclude_none=True, exclude=self.left_out())
        return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)

    def left_out(self) -> set[str]:
        """Returns the fields of `LATER_FIELDS` that have their default."""
        known = type(self).model_fields
        return {
            name
            for name in self.LATER_FIELDS
            if getattr(self, name) == known[name].get_default(call_default_factory=True)
        }


class AtMost(GroupedMetadata):
    """Bounds a list or mapping before its entries are read: to report a million faulty entries would take seconds."""

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
        # A NUL cannot be passed on a command line or in an environment variable.
        raise refused("contains a NUL character", hint="no command line can carry it: take it out")
    return value


Text = Annotated[str, BeforeValidator(_as_text), WithJsonSchema({"type": ["string", "number", "boolean"]})]
"""A text that may be written as a number or boolean, such as a Spark property. It keeps the written digits if its reader kept them."""

Whole = Annotated[int, Strict()]
"""A whole number; texts and fractions are refused."""

Flag = Annotated[bool, Strict()]
"""True or false; words such as `yes` are refused."""
