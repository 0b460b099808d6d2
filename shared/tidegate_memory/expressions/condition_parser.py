"""Parses and evaluates condition expressions with DynamoDB's rules.

Rules observed on DynamoDB Local 2.6.1 and compared by the conformance suite: if operands have different types, or one
is missing, every comparison is false, except `<>`, which is true. A literal of a wrong type makes the whole request
invalid.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from tidegate_core.rows.store_operations import Item
from tidegate_memory.expressions.attribute_types import (
    MEASURED_TYPES,
    MISSING,
    ORDERED_TYPES,
    InvalidExpression,
    is_same,
)
from tidegate_memory.expressions.comparisons import begins_with, check_range, contains, has_type, in_order
from tidegate_memory.expressions.operands import (
    Literal,
    Operand,
    Path,
    Scope,
    Size,
    TypeRule,
    Values,
    parse_path_or_literal,
)
from tidegate_memory.expressions.tokenizer import Cursor

Test: TypeAlias = Callable[[Item, Values], bool]

PARSED_MAX: Final = 4_096
"""Size of the cache of parsed expressions: tidegate uses a few hundred texts, some with varying names."""
IN_OPERANDS_MAX: Final = 100
_COMPARATORS: Final = ("=", "<>", "<", "<=", ">", ">=")
_ORDERINGS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_FUNCTION_ARITY: Final = {
    "attribute_exists": 1,
    "attribute_not_exists": 1,
    "attribute_type": 2,
    "contains": 2,
    "begins_with": 2,
}
_TEXT_TYPES: Final = frozenset({"S", "B"})


@dataclass(frozen=True, slots=True)
class ParsedCondition:
    """A condition with its names resolved, ready for any number of items."""

    names_used: frozenset[str]
    values_used: frozenset[str]
    rules: tuple[TypeRule, ...]
    ranges: tuple[tuple[str, str], ...]
    test: Test

    def check(self, values: Values) -> None:
        """Raises InvalidExpression for a literal that its operator refuses, in any branch."""
        for rule in self.rules:
            rule.check(values)
        for low, high in self.ranges:
            check_range(values[low], values[high])

    def holds(self, item: Item | None, values: Values) -> bool:
        """Evaluates the condition with values that `check` accepted; None stands for a missing item."""
        return self.test(item if item is not None else {}, values)


@lru_cache(maxsize=PARSED_MAX)
def parse_condition(expression: str, names: tuple[tuple[str, str], ...]) -> ParsedCondition:
    """Parses an expression, once for each text and set of names.

    Args:
        expression: The condition's text.
        names: Items of the mapping from `#placeholder` to attribute name (a tuple, so that it can be a cache's key).

    Raises:
        InvalidExpression: It does not parse, or names something undefined or reserved.
    """
    return _Parser(expression, Scope(dict(names))).parsed()


class _Parser:
    def __init__(self, expression: str, scope: Scope) -> None:
        self._cursor = Cursor(expression)
        self._scope = scope
        self._ranges: list[tuple[str, str]] = []

    def parsed(self) -> ParsedCondition:
        test = self._either()
        if self._cursor.peek().kind != "end":
            raise self._cursor.syntax_error()
        scope = self._scope
        return ParsedCondition(
            frozenset(scope.names_used), frozenset(scope.values_used), tuple(scope.rules), tuple(self._ranges), test
        )

    def _either(self) -> Test:
        tests = [self._all()]
        while self._cursor.takes("OR"):
            tests.append(self._all())
        return tests[0] if len(tests) == 1 else _any_of(tests)

    def _all(self) -> Test:
        tests = [self._negation()]
        while self._cursor.takes("AND"):
            tests.append(self._negation())
        return tests[0] if len(tests) == 1 else _all_of(tests)

    def _negation(self) -> Test:
        if self._cursor.takes("NOT"):
            inner = self._negation()
            return lambda item, values: not inner(item, values)
        return self._primary()

    def _primary(self) -> Test:
        cursor = self._cursor
        token = cursor.peek()
        if token.text == "(" and not _continues_operand(cursor.behind_parentheses().text):
            cursor.take()
            inner = self._either()
            cursor.expect(")")
            return inner
        if token.kind == "word" and cursor.peek(1).text == "(" and token.text != "size":
            return self._function()
        left = self._operand()
        sign = cursor.take().text
        if sign in _COMPARATORS:
            return self._comparison(left, sign, self._operand())
        if sign == "BETWEEN":
            return self._between(left)
        if sign == "IN":
            return self._membership(left)
        raise InvalidExpression(f'Syntax error; token: "{sign}"')

    def _operand(self) -> Operand:
        cursor = self._cursor
        if cursor.takes("("):
            inner = self._operand()
            cursor.expect(")")
            return inner
        if cursor.peek().kind == "word" and cursor.peek(1).text == "(":
            return self._size()
        return parse_path_or_literal(cursor, self._scope)

    def _size(self) -> Size:
        name = self._cursor.take().text
        if name != "size":
            raise InvalidExpression(
                f"The function is not allowed to be used this way in an expression; function: {name}"
            )
        self._cursor.expect("(")
        inner = parse_path_or_literal(self._cursor, self._scope)
        self._cursor.expect(")")
        self._scope.require(inner, MEASURED_TYPES, "size")
        return Size(inner)

    def _function(self) -> Test:
        name = self._cursor.take().text
        if name not in _FUNCTION_ARITY:
            raise InvalidExpression(f"Invalid function name; function: {name}")
        self._cursor.expect("(")
        operands = [self._operand()]
        while self._cursor.takes(","):
            operands.append(self._operand())
        self._cursor.expect(")")
        if len(operands) != _FUNCTION_ARITY[name]:
            raise InvalidExpression(
                f"Incorrect number of operands for operator or function; operator or function: {name}"
            )
        return self._call(name, operands)

    def _call(self, name: str, operands: Sequence[Operand]) -> Test:
        first = operands[0]
        if name.startswith("attribute_") and not isinstance(first, Path):
            raise InvalidExpression(f"Operator or function requires a document path; operator or function: {name}")
        if name == "attribute_exists":
            return lambda item, values: first.read(item, values) is not MISSING
        if name == "attribute_not_exists":
            return lambda item, values: first.read(item, values) is MISSING
        second = operands[1]
        if name == "attribute_type":
            return self._has_type(first, second)
        _refuse_equal_paths(name, first, [second])
        if name == "contains":
            return lambda item, values: contains(first.read(item, values), second.read(item, values))
        for operand in operands:
            self._scope.require(operand, _TEXT_TYPES, name)
        return lambda item, values: begins_with(first.read(item, values), second.read(item, values))

    def _has_type(self, first: Operand, second: Operand) -> Test:
        if not isinstance(second, Literal):
            raise InvalidExpression("Incorrect operand type for operator or function: attribute_type")
        self._scope.require(second, frozenset({"S"}), "attribute_type")
        return lambda item, values: has_type(first.read(item, values), second.read(item, values))

    def _comparison(self, left: Operand, sign: str, right: Operand) -> Test:
        _refuse_equal_paths(sign, left, [right])
        if sign == "=":
            return lambda item, values: is_same(left.read(item, values), right.read(item, values))
        if sign == "<>":
            return lambda item, values: not is_same(left.read(item, values), right.read(item, values))
        for operand in (left, right):
            self._scope.require(operand, ORDERED_TYPES, sign)
        ordering = _ORDERINGS[sign]
        return lambda item, values: in_order(ordering, left.read(item, values), right.read(item, values))

    def _between(self, middle: Operand) -> Test:
        low = self._operand()
        self._cursor.expect("AND")
        high = self._operand()
        _refuse_equal_paths("BETWEEN", middle, [low, high])
        for operand in (middle, low, high):
            self._scope.require(operand, ORDERED_TYPES, "BETWEEN")
        if isinstance(low, Literal) and isinstance(high, Literal):
            self._ranges.append((low.placeholder, high.placeholder))

        def test(item: Item, values: Values) -> bool:
            found = middle.read(item, values)
            return in_order(operator.le, low.read(item, values), found) and in_order(
                operator.le, found, high.read(item, values)
            )

        return test

    def _membership(self, wanted: Operand) -> Test:
        self._cursor.expect("(")
        choices = [self._operand()]
        while self._cursor.takes(","):
            choices.append(self._operand())
        self._cursor.expect(")")
        if len(choices) > IN_OPERANDS_MAX:
            raise InvalidExpression(f"The IN operator takes at most {IN_OPERANDS_MAX} operands, not {len(choices)}")
        _refuse_equal_paths("IN", wanted, choices)

        def test(item: Item, values: Values) -> bool:
            found = wanted.read(item, values)
            return any(is_same(found, choice.read(item, values)) for choice in choices)

        return test


def _continues_operand(text: str) -> bool:
    return text in _COMPARATORS or text in ("IN", "BETWEEN")


def _any_of(tests: Sequence[Test]) -> Test:
    return lambda item, values: any(test(item, values) for test in tests)


def _all_of(tests: Sequence[Test]) -> Test:
    return lambda item, values: all(test(item, values) for test in tests)


def _refuse_equal_paths(name: str, first: Operand, others: Sequence[Operand]) -> None:
    if isinstance(first, Path) and first in others:
        raise InvalidExpression(
            "The first operand must be distinct from the remaining operands for this operator or function; "
            f"operator: {name}, first operand: {list(first.parts)}"
        )
