"""Splits an expression into tokens and walks over them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from tidegate_memory.expressions.attribute_types import InvalidExpression

EXPRESSION_BYTES_MAX: Final = 4_096
KEYWORDS: Final = frozenset({"AND", "OR", "NOT", "IN", "BETWEEN", "SET", "REMOVE", "ADD", "DELETE"})

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<name>[#][A-Za-z0-9_]+)|(?P<value>:[A-Za-z0-9_]+)|(?P<word>[A-Za-z][A-Za-z0-9_]*)"
    r"|(?P<index>\[[0-9]+\])|(?P<sign><>|<=|>=|[=<>(),.+-]))"
)


@dataclass(frozen=True, slots=True)
class Token:
    """`kind`: `name` (#placeholder), `value` (:placeholder), `word`, `index`, `sign`, `keyword` or `end`."""

    kind: str
    text: str


END: Final = Token("end", "<EOF>")


def tokens_of(expression: str) -> tuple[Token, ...]:
    """Returns the tokens, keywords in capitals.

    Raises:
        InvalidExpression: Empty, longer than 4 KB, or with a character that belongs to no token.
    """
    if not expression.strip():
        raise InvalidExpression("The expression can not be empty;")
    if len(expression.encode()) > EXPRESSION_BYTES_MAX:
        raise InvalidExpression("Expression size has exceeded the maximum allowed size of 4 KB")
    found: list[Token] = []
    text = expression.rstrip()
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise InvalidExpression(f'Syntax error; near: "{text[position : position + 12]}"')
        kind = match.lastgroup
        assert kind is not None
        word = match.group(kind)
        is_keyword = kind == "word" and word.upper() in KEYWORDS
        found.append(Token("keyword", word.upper()) if is_keyword else Token(kind, word))
        position = match.end()
    return tuple(found)


class Cursor:
    """Reads tokens from left to right."""

    def __init__(self, expression: str) -> None:
        self._tokens = tokens_of(expression)
        self._closing = _closing_parentheses(self._tokens)
        self._refuse_redundant_parentheses()
        self._position = 0

    def peek(self, ahead: int = 0) -> Token:
        """Returns the token `ahead` positions after the next one without taking it; `END` after the last."""
        position = self._position + ahead
        return self._tokens[position] if position < len(self._tokens) else END

    def take(self) -> Token:
        """Returns the next token and moves past it."""
        token = self.peek()
        self._position += 1
        return token

    def takes(self, text: str) -> bool:
        """Moves past the next sign or keyword if it is `text`, and returns whether it was."""
        token = self.peek()
        if token.text == text and token.kind in ("sign", "keyword"):
            self._position += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Moves past the sign or keyword `text`; any other token is a syntax error."""
        if not self.takes(text):
            raise self.syntax_error()

    def syntax_error(self) -> InvalidExpression:
        """Returns an error that names the unexpected token."""
        return InvalidExpression(f'Syntax error; token: "{self.peek().text}"')

    def behind_parentheses(self) -> Token:
        """Returns the token after the parenthesis that closes the next opening one."""
        behind = self._closing[self._position] + 1
        return self._tokens[behind] if behind < len(self._tokens) else END

    def _refuse_redundant_parentheses(self) -> None:
        for opening, closing in self._closing.items():
            before = self._tokens[opening - 1] if opening else END
            is_call = before.kind == "word" or before.text == "IN"
            if not is_call and self._closing.get(opening + 1) == closing - 1:
                raise InvalidExpression("The expression has redundant parentheses;")


def _closing_parentheses(tokens: tuple[Token, ...]) -> dict[int, int]:
    pairs: dict[int, int] = {}
    opened: list[int] = []
    for position, token in enumerate(tokens):
        if token == Token("sign", "("):
            opened.append(position)
        elif token == Token("sign", ")"):
            if not opened:
                raise InvalidExpression('Syntax error; token: ")"')
            pairs[opened.pop()] = position
    if opened:
        raise InvalidExpression('Syntax error; token: "<EOF>"')
    return pairs
