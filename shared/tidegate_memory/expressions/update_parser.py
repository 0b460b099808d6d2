"""Parses and applies update expressions: SET (`=`, `+`, `-`, `if_not_exists`), REMOVE, ADD and DELETE.

All operands are read from the item before the update. `list_append`, targets inside lists and parentheses are refused:
tidegate's items do not need them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

from tidegate_core.rows.store_operations import Item, Value
from tidegate_memory.expressions.attribute_types import MISSING, Found, InvalidExpression, Missing, checked_number
from tidegate_memory.expressions.condition_parser import PARSED_MAX
from tidegate_memory.expressions.operands import (
    NUMBER,
    Operand,
    Path,
    Scope,
    TypeRule,
    Values,
    parse_literal,
    parse_path,
    parse_path_or_literal,
)
from tidegate_memory.expressions.tokenizer import Cursor

KEY_ATTRIBUTES: Final = ("pk", "sk")
_ABSENT = "The provided expression refers to an attribute that does not exist in the item"
_WRONG_TYPE = "An operand in the update expression has an incorrect data type"

NewValue: TypeAlias = Callable[[Item, Values], Found]
"""Computes the new value of a target from the former item; MISSING removes the attribute."""


@dataclass(frozen=True, slots=True)
class ParsedUpdate:
    """An update with its names resolved."""

    names_used: frozenset[str]
    values_used: frozenset[str]
    rules: tuple[TypeRule, ...]
    changes: tuple[tuple[Path, NewValue], ...]

    @property
    def reaches_inside(self) -> bool:
        """Whether it writes inside a map and not only to the item's top level."""
        return any(len(target.parts) > 1 for target, _ in self.changes)

    def check(self, values: Values) -> None:
        """Raises InvalidExpression for a literal whose type its operator refuses, whatever the item holds."""
        for rule in self.rules:
            rule.check(values)

    def applied_to(self, item: Item, values: Values) -> Item:
        """Returns the updated item and leaves `item` unchanged. The result may share parts with it and with `values`.

        Raises:
            InvalidExpression: An operand is missing or has the wrong type, or a target's parent is no map.
        """
        changed = dict(item)
        for target, new_value in self.changes:
            _put(changed, target, new_value(item, values))
        return changed


@lru_cache(maxsize=PARSED_MAX)
def parse_update(expression: str, names: tuple[tuple[str, str], ...]) -> ParsedUpdate:
    """Parses an expression, once for each text and set of names.

    Raises:
        InvalidExpression: It does not parse, names something undefined or reserved, changes a key, or changes one
            place twice.
    """
    return _Parser(expression, Scope(dict(names))).parsed()


class _Parser:
    def __init__(self, expression: str, scope: Scope) -> None:
        self._cursor = Cursor(expression)
        self._scope = scope
        self._changes: list[tuple[Path, NewValue]] = []

    def parsed(self) -> ParsedUpdate:
        clauses: Mapping[str, Callable[[], None]] = {
            "SET": self._set,
            "REMOVE": self._remove,
            "ADD": self._add,
            "DELETE": self._delete,
        }
        seen: set[str] = set()
        while self._cursor.peek().kind != "end":
            section = self._cursor.take().text
            if section not in clauses:
                raise InvalidExpression(f'Syntax error; token: "{section}"')
            if section in seen:
                raise InvalidExpression(f'The "{section}" section can only be used once in an update expression;')
            seen.add(section)
            clauses[section]()
            while self._cursor.takes(","):
                clauses[section]()
        scope = self._scope
        return ParsedUpdate(
            frozenset(scope.names_used), frozenset(scope.values_used), tuple(scope.rules), tuple(self._changes)
        )

    def _set(self) -> None:
        target = self._target()
        self._cursor.expect("=")
        left = self._set_operand()
        for sign, factor in (("+", 1), ("-", -1)):
            if self._cursor.takes(sign):
                right = self._set_operand()
                for operand in (left, right):
                    self._scope.require(operand, NUMBER, sign)
                self._note(target, _sum_of(left, factor, right))
                return
        self._note(target, lambda item, values: _present(left.read(item, values)))

    def _set_operand(self) -> Operand:
        cursor = self._cursor
        if cursor.peek().kind == "word" and cursor.peek(1).text == "(":
            return self._if_not_exists()
        return parse_path_or_literal(cursor, self._scope)

    def _if_not_exists(self) -> Operand:
        name = self._cursor.take().text
        if name != "if_not_exists":
            raise InvalidExpression(f"The function is not allowed in an update expression; function: {name}")
        self._cursor.expect("(")
        if self._cursor.peek().kind == "value":
            raise InvalidExpression(f"Operator or function requires a document path; operator or function: {name}")
        path = parse_path(self._cursor, self._scope)
        self._cursor.expect(",")
        otherwise = self._set_operand()
        self._cursor.expect(")")
        return _IfNotExists(path, otherwise)

    def _remove(self) -> None:
        self._note(self._target(), lambda item, values: MISSING)

    def _add(self) -> None:
        target, literal = self._target(), parse_literal(self._cursor, self._scope)
        self._scope.require(literal, frozenset({"N", "SS"}), "ADD")
        self._note(target, lambda item, values: _added(target.read(item, values), values[literal.placeholder]))

    def _delete(self) -> None:
        target, literal = self._target(), parse_literal(self._cursor, self._scope)
        self._scope.require(literal, frozenset({"SS"}), "DELETE")
        self._note(target, lambda item, values: _without(target.read(item, values), values[literal.placeholder]))

    def _target(self) -> Path:
        target = parse_path(self._cursor, self._scope)
        if target.parts[0] in KEY_ATTRIBUTES and len(target.parts) == 1:
            raise InvalidExpression(f"Cannot update attribute {target.parts[0]}. This attribute is part of the key")
        if not all(isinstance(part, str) for part in target.parts):
            raise InvalidExpression("targets inside lists are not in the subset that this store evaluates")
        return target

    def _note(self, target: Path, new_value: NewValue) -> None:
        for other, _ in self._changes:
            if target.overlaps(other):
                raise InvalidExpression(
                    "Two document paths overlap with each other; must remove or rewrite one of these paths; "
                    f"path one: {list(other.parts)}, path two: {list(target.parts)}"
                )
        self._changes.append((target, new_value))


@dataclass(frozen=True, slots=True)
class _IfNotExists:
    path: Path
    otherwise: Operand

    def read(self, item: Item, values: Values) -> Found:
        # The fallback is read, and must exist, even when the path exists: DynamoDB does the same.
        fallback = _present(self.otherwise.read(item, values))
        found = self.path.read(item, values)
        return fallback if found is MISSING else found


def _sum_of(left: Operand, factor: int, right: Operand) -> NewValue:
    def new_value(item: Item, values: Values) -> Found:
        augend, addend = _present(left.read(item, values)), _present(right.read(item, values))
        if type(augend) is not int or type(addend) is not int:
            raise InvalidExpression(_WRONG_TYPE)
        return checked_number(augend + factor * addend)

    return new_value


def _added(found: Found, addend: Value) -> Found:
    if isinstance(found, Missing):
        return addend
    if type(found) is int and type(addend) is int:
        return checked_number(found + addend)
    if isinstance(found, frozenset) and isinstance(addend, frozenset):
        return found | addend
    raise InvalidExpression(_WRONG_TYPE)


def _without(found: Found, members: Value) -> Found:
    if isinstance(found, Missing):
        return MISSING
    if isinstance(found, frozenset) and isinstance(members, frozenset):
        # A set is never empty: the attribute is removed with its last member.
        return (found - members) or MISSING
    raise InvalidExpression(_WRONG_TYPE)


def _present(found: Found) -> Value:
    if isinstance(found, Missing):
        raise InvalidExpression(_ABSENT)
    return found


def _put(changed: Item, target: Path, new: Found) -> None:
    """Writes into `changed`, whose top level is a copy; deeper maps are shared with the former item and are copied
    here.
    """
    *parents, last = (str(part) for part in target.parts)
    container = changed
    for name in parents:
        inner = container.get(name)
        if not isinstance(inner, dict):
            raise InvalidExpression("The document path provided in the update expression is invalid for update")
        inner = dict(inner)
        container[name] = inner
        container = inner
    if isinstance(new, Missing):
        container.pop(last, None)
    else:
        container[last] = new
