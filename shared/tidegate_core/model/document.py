"""The base of everything that users write or read: frozen, closed to unknown fields, with one canonical JSON form."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Strict, WithJsonSchema

from tidegate_core.model.planned import Planned
from tidegate_core.model.problems import refused


class Document(BaseModel):
    """A frozen model that explains itself.

    Attributes:
        EXAMPLE: A valid document of this kind; documentation, schema and tests use it.
        PLANNED_FIELDS: Fields of a later version, refused with that version's name.
        PLANNED_VALUES: The same for values of a field: field name, then value.
        FIELD_HINTS: For fields that people try and that are called otherwise here.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, serialize_by_alias=True)

    EXAMPLE: ClassVar[Mapping[str, Any]] = {}
    PLANNED_FIELDS: ClassVar[Mapping[str, Planned]] = {}
    PLANNED_VALUES: ClassVar[Mapping[str, Mapping[str, Planned]]] = {}
    FIELD_HINTS: ClassVar[Mapping[str, str]] = {}

    def canonical_json(self) -> str:
        """Returns the stored form: defaults spelled out (a later default changes nothing), absent fields left out."""
        fields = self.model_dump(mode="json", exclude_none=True)
        return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _as_text(value: Any) -> str:
    if isinstance(value, bool):  # before int: a bool is one, and Spark and shells spell it in lower case
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        raise refused("is not a text", hint="write a text, a number or true/false")
    if "\x00" in value:
        # Neither a command line nor an environment can carry it.
        raise refused("contains a NUL character")
    return value


Text = Annotated[str, BeforeValidator(_as_text), WithJsonSchema({"type": ["string", "number", "boolean"]})]
"""A text that YAML may have read as a number or as a boolean, such as a Spark property."""

Whole = Annotated[int, Strict()]
"""A whole number; a text or a fraction is no number here."""

Flag = Annotated[bool, Strict()]
"""True or false; never a word that sounds like one."""
