"""Comparisons of one value of a JSON document, and the form of filters that combine them: total on every value, without code.

Filters of triggers and of sources are made of these. A comparison with a value that is missing, or is of another kind, is false.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final

from pydantic import BeforeValidator, Field, Strict, StringConstraints, WithJsonSchema

from tidegate_core.language.values.document import AtMost, Document, Flag
from tidegate_core.language.values.json_pointers import MISSING
from tidegate_core.language.values.problems import refused

MAX_CHOICES: Final = 100
LARGEST_NUMBER: Final = 1.7976931348623157e308
"""Of a comparison: a float's largest. Other readers of JSON take no larger one."""
COMPARISONS: Final = ("equals", "in", "prefix", "above", "at_least", "below", "at_most", "exists")
COMBINATIONS: Final = ("all_of", "any_of", "not")
_ATTRIBUTES: Final = {"in": "one_of", "not": "negated"}
"""Of the words that Python has for itself."""
MAX_DEPTH: Final = 5
"""Of a filter."""
MAX_COMPARISONS: Final = 50
"""Likewise."""


def _scalar(value: Any) -> Any:
    if isinstance(value, str | bool):
        return value
    if _is_number(value):
        return _within_bounds(value)
    hint = 'quote it: "null"' if value is None else ""
    raise refused("is neither a text, a number nor true/false", hint=hint)


def _number(value: Any) -> Any:
    if _is_number(value):
        return _within_bounds(value)
    raise refused("is not a number", hint="write one without quotes, such as 1024")


def _within_bounds(value: float) -> float:
    if abs(value) > LARGEST_NUMBER:
        raise refused("is beyond 1.8e308", hint="give a number that fits a float")
    return value


def _is_number(value: Any) -> bool:
    """Whether it can be compared. A whole number always can: of those Python knows no largest one, and JSON neither."""
    if isinstance(value, bool):
        return False
    return isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))


Scalar = Annotated[Any, BeforeValidator(_scalar), WithJsonSchema({"type": ["string", "number", "boolean"]})]
Number = Annotated[Any, BeforeValidator(_number), WithJsonSchema({"type": "number"})]


class Comparison(Document):
    """What a value is compared with; all that is said has to hold. A filter adds which value that is, and combinations of filters.

    Attributes:
        equals: The same text, number or truth.
        one_of: One of these; `in` in JSON.
        prefix: A text that begins so.
        above, at_least, below, at_most: A number; several of them bound it from both sides.
        exists: Whether it is there at all; null is there.
    """

    FIELD_HINTS: ClassVar = {
        "and": "the word is all_of",
        "or": "the word is any_of",
        "gt": "the word is above",
        "gte": "the word is at_least",
        "lt": "the word is below",
        "lte": "the word is at_most",
        "eq": "the word is equals",
    }

    equals: Scalar | None = None
    one_of: Annotated[tuple[Scalar, ...], Field(min_length=1), AtMost(MAX_CHOICES)] | None = Field(
        default=None, alias="in"
    )
    prefix: Annotated[str, Strict(), StringConstraints(max_length=1024)] | None = None
    above: Number | None = None
    at_least: Number | None = None
    below: Number | None = None
    at_most: Number | None = None
    exists: Flag | None = None

    def parts(self) -> Sequence[Comparison]:
        """Returns the filters that it combines."""
        return ()

    @property
    def depth(self) -> int:
        return 1 + max((each.depth for each in self.parts()), default=0)

    @property
    def comparisons(self) -> int:
        return sum(each.comparisons for each in self.parts()) or 1

    def check_form(self, places: Sequence[str], what: str, example: str) -> None:
        """Passes one value with comparisons, or one combination, within the bounds.

        Args:
            places: Fields that it has and that say which value is compared.
            what: What such a field is, for people.
            example: A comparison.

        Raises:
            PydanticCustomError: It is something else.
        """
        compares = self._given(COMPARISONS)
        combines = self._given(COMBINATIONS)
        if len(combines) + len(places) != 1 or (compares and not places):
            raise refused(
                f"needs either {what} with a comparison, or one of all_of, any_of, not", hint=f"such as {example}"
            )
        if places and not compares:
            raise refused(f"is not compared with anything: one of {', '.join(COMPARISONS)}", field=places[0])
        if self.depth > MAX_DEPTH:
            raise refused(f"is {self.depth} levels deep, at most {MAX_DEPTH} are allowed")
        if self.comparisons > MAX_COMPARISONS:
            raise refused(f"has {self.comparisons} comparisons, at most {MAX_COMPARISONS} are allowed")

    def _given(self, names: Sequence[str]) -> list[str]:
        return [name for name in names if getattr(self, _ATTRIBUTES.get(name, name)) is not None]

    def holds_of(self, value: Any) -> bool:
        """Returns whether all comparisons with a value hold; there may be several of one field."""
        return (
            (self.exists is None or self.exists == (value is not MISSING))
            and (self.equals is None or _same(value, self.equals))
            and (self.one_of is None or any(_same(value, each) for each in self.one_of))
            and (self.prefix is None or (isinstance(value, str) and value.startswith(self.prefix)))
            and self._in_bounds(value)
        )

    def _in_bounds(self, value: Any) -> bool:
        if self.above is None and self.at_least is None and self.below is None and self.at_most is None:
            return True
        if not _is_number(value):
            return False
        return (
            (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.below is None or value < self.below)
            and (self.at_most is None or value <= self.at_most)
        )


def _same(value: Any, wanted: Any) -> bool:
    """Python takes True for 1, and nobody else does."""
    return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)
