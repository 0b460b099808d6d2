"""Operands of conditions and updates: document paths, value placeholders and `size`.

Name placeholders are resolved when an expression is parsed, value placeholders when it is evaluated.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from tidegate_core.rows.store_operations import Item, Value
from tidegate_memory.expressions.attribute_types import MISSING, Found, InvalidExpression, measured, type_name
from tidegate_memory.expressions.reserved_words import RESERVED_WORDS
from tidegate_memory.expressions.tokenizer import Cursor

Values: TypeAlias = Mapping[str, Value]
PathParts: TypeAlias = tuple[str | int, ...]


class Operand(Protocol):
    """Operand on the left or right of an operator."""

    def read(self, item: Item, values: Values) -> Found: ...


@dataclass(frozen=True, slots=True)
class Path:
    """`a.b[0].#c` with its names resolved."""

    parts: PathParts

    def read(self, item: Item, values: Values) -> Found:
        found: Found = item
        for part in self.parts:
            if isinstance(found, dict) and part in found:
                found = found[str(part)]
            elif isinstance(found, list) and isinstance(part, int) and part < len(found):
                found = found[part]
            else:
                return MISSING
        return found

    def overlaps(self, other: Path) -> bool:
        """Returns whether one path equals, contains or lies inside the other."""
        shorter = min(len(self.parts), len(other.parts))
        return self.parts[:shorter] == other.parts[:shorter]


@dataclass(frozen=True, slots=True)
class Literal:
    """`:value`."""

    placeholder: str

    def read(self, item: Item, values: Values) -> Found:
        return values[self.placeholder]


@dataclass(frozen=True, slots=True)
class Size:
    """`size(path or :value)`."""

    of: Path | Literal

    def read(self, item: Item, values: Values) -> Found:
        return measured(self.of.read(item, values))


@dataclass(frozen=True, slots=True)
class TypeRule:
    """Rule for a literal's type, checked before evaluation in every branch."""

    placeholder: str
    allowed: frozenset[str]
    operator: str

    def check(self, values: Values) -> None:
        found = type_name(values[self.placeholder])
        if found not in self.allowed:
            raise InvalidExpression(
                "Incorrect operand type for operator or function; "
                f"operator or function: {self.operator}, operand type: {found}"
            )


NUMBER: Final = frozenset({"N"})


@dataclass(slots=True)
class Scope:
    """Names and values that an expression may use, and those that it used when it was parsed."""

    names: Mapping[str, str]
    names_used: set[str] = field(default_factory=set)
    values_used: set[str] = field(default_factory=set)
    rules: list[TypeRule] = field(default_factory=list)

    def require(self, operand: Operand, allowed: frozenset[str], operator: str) -> None:
        """Records the types that the operator accepts from literals. A stored attribute of another type simply does not
        match.
        """
        if isinstance(operand, Literal):
            self.rules.append(TypeRule(operand.placeholder, allowed, operator))
        elif isinstance(operand, Size) and "N" not in allowed:
            raise InvalidExpression(f"Incorrect operand type for operator or function: {operator}, operand type: N")


def parse_path(cursor: Cursor, scope: Scope) -> Path:
    """Reads a path: `name` or `#name`, then any number of `.name` or `[n]`."""
    parts: list[str | int] = [_path_name(cursor, scope)]
    while True:
        if cursor.takes("."):
            parts.append(_path_name(cursor, scope))
        elif cursor.peek().kind == "index":
            parts.append(int(cursor.take().text[1:-1]))
        else:
            return Path(tuple(parts))


def parse_literal(cursor: Cursor, scope: Scope) -> Literal:
    """Reads `:value`."""
    if cursor.peek().kind != "value":
        raise cursor.syntax_error()
    placeholder = cursor.take().text
    scope.values_used.add(placeholder)
    return Literal(placeholder)


def parse_path_or_literal(cursor: Cursor, scope: Scope) -> Path | Literal:
    """Reads a path or a literal, also in parentheses."""
    if cursor.takes("("):
        inner = parse_path_or_literal(cursor, scope)
        cursor.expect(")")
        return inner
    return parse_literal(cursor, scope) if cursor.peek().kind == "value" else parse_path(cursor, scope)


def _path_name(cursor: Cursor, scope: Scope) -> str:
    token = cursor.peek()
    if token.kind == "name":
        cursor.take()
        if token.text not in scope.names:
            raise InvalidExpression(
                f"An expression attribute name used in the document path is not defined; attribute name: {token.text}"
            )
        scope.names_used.add(token.text)
        return scope.names[token.text]
    if token.kind not in ("word", "keyword"):
        raise cursor.syntax_error()
    if token.text.upper() in RESERVED_WORDS:
        raise InvalidExpression(f"Attribute name is a reserved keyword; reserved keyword: {token.text}")
    cursor.take()
    return token.text
