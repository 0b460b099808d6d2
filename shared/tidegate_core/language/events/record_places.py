"""Where in a record of a source's topic a value lies: in a header, in its JSON, or in one element of a list in it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Final, Self

from pydantic import StringConstraints, model_validator

from tidegate_core.language.values.document import Document
from tidegate_core.language.values.names import VISIBLE_PATTERN
from tidegate_core.language.values.planned_features import PLATFORM, planned
from tidegate_core.language.values.problems import refused

PARTS_MAX: Final = 256
"""Characters of a header's name or of a pointer: a source lies in the item of all sources."""
PLACES: Final = ("header", "pointer", "record")

HeaderName = Annotated[str, StringConstraints(strict=True, max_length=PARTS_MAX, pattern=VISIBLE_PATTERN)]
Pointer = Annotated[str, StringConstraints(strict=True, max_length=PARTS_MAX)]


class Place(Document):
    """Where a value lies.

    Attributes:
        header: Name of a header of the record; of several the last one counts.
        pointer: JSON pointer (RFC 6901) into the record's value, such as `/file/day`; with `each` into one of its elements.
        record: With `each`: JSON pointer into the record's value as a whole.
    """

    PLANNED_FIELDS: ClassVar = planned(PLATFORM, "expression", "key")

    header: HeaderName | None = None
    pointer: Pointer | None = None
    record: Pointer | None = None

    @model_validator(mode="after")
    def _pointers_begin_with_a_slash(self) -> Self:
        for name in ("pointer", "record"):
            check_pointer(getattr(self, name), name)
        return self

    @property
    def places(self) -> tuple[str, ...]:
        """The fields that it has of `PLACES`."""
        return tuple(name for name in PLACES if getattr(self, name) is not None)


def check_pointer(pointer: str | None, field: str) -> None:
    """Passes a JSON pointer, or none."""
    if pointer and not pointer.startswith("/"):
        raise refused("is no JSON pointer", hint="begin it with a slash, such as /file/day", field=field)
