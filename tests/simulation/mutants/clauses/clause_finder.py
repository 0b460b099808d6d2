"""The clauses of the condition expressions, found by reading the expressions: so that none can be left without a planted bug.

An expression is cut where `AND` and `OR` cut it, at every depth. What a bug makes of a clause follows from where it stands:
a part of an `AND` is not demanded any more (`always`); an alternative of an `OR` is not granted any more (`never`), because
granting it always is the whole `OR` not demanded, which is a part of its own; an expression that is one part is `always`.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tests.simulation.mutants.mutant import Patch
from tidegate_core.rows.store_operations import Condition
from tidegate_core.writes import conditions

EXAMPLES: Final[Mapping[str, Sequence[Any]]] = {
    "int": (0, 1),
    "str": ("x",),
    "bool": (False, True),
    "int | None": (1, None),
    "str | None": ("x", None),
    "Sequence[str]": (("x", "y"),),
    "Sequence[int]": ((1, 2),),
    "frozenset[str]": (frozenset({"x"}),),
    "list[Value]": ([], ["x"]),
    "Mapping[int, int]": ({1: 2, 3: 4},),
}
"""Arguments to call a builder with, by their annotation: each that may lead to another expression."""
_WORD: Final = re.compile(r"\(|\)|\bAND\b|\bOR\b|\bBETWEEN\b")
_NUMBER: Final = re.compile(r"([:#][a-z_]+?)\d+\b")


class _Part(NamedTuple):
    """Where a clause stands in its expression, and what a bug makes of it."""

    begin: int
    end: int
    always: bool


@dataclass(frozen=True, slots=True, order=True)
class Clause:
    """One clause of one builder.

    Attributes:
        text: As it stands in the expression; a clause that is repeated for each of several names or values is one (`:run0`,
            `:run1` are `:run`).
        always: Whether the bug is that it holds always; else never.
    """

    builder: str
    text: str
    always: bool

    def __str__(self) -> str:
        return f"{self.builder}: {self.text} {'always' if self.always else 'never'}"


def builders() -> dict[str, Callable[..., Condition]]:
    """Returns all that build a condition, by name."""
    return {
        name: each
        for name, each in vars(conditions).items()
        if inspect.isfunction(each) and each.__module__ == conditions.__name__ and not name.startswith("_")
    }


def clauses_of(builder: str) -> list[Clause]:
    """Returns a builder's clauses, whatever it is called with."""
    function = builders()[builder]
    wanted = {name: each.annotation for name, each in inspect.signature(function).parameters.items()}
    unknown = {name: annotation for name, annotation in wanted.items() if annotation not in EXAMPLES}
    assert not unknown, f"{builder}: EXAMPLES has none of {unknown}"
    examples = [EXAMPLES[annotation] for annotation in wanted.values()]
    expressions = [function(*arguments).expression for arguments in itertools.product(*examples)]
    found = [_clause(builder, expression, part) for expression in expressions for part in _parts_of(expression)]
    return list(dict.fromkeys(found))


def spoilt(clause: Clause) -> Patch:
    """Returns the bug: what it makes of the clause, everything else as in production."""

    def changed(build: Callable[..., Condition]) -> Callable[..., Condition]:
        def mutated(*arguments: Any, **named: Any) -> Condition:
            whole = build(*arguments, **named)
            return Condition(_spoilt(whole.expression, clause), whole.names, whole.values)

        return mutated

    return Patch(conditions, clause.builder, changed)


def always(builder: str, text: str) -> Patch:
    """Returns the bug that a part of a condition is not demanded: to switch a layer off beside another one."""
    return spoilt(Clause(builder, text, always=True))


def _spoilt(expression: str, clause: Clause) -> str:
    for part in sorted(_parts_of(expression), reverse=True):
        if _clause(clause.builder, expression, part) == clause:
            text = expression[part.begin : part.end]
            # Built from the clause itself: every name and value stays in use, as the store demands.
            negation = text if _without_parentheses(text, 0, len(text)) != (0, len(text)) else f"({text})"
            spoilt_text = f"({text} {'OR' if clause.always else 'AND'} NOT {negation})"
            expression = expression[: part.begin] + spoilt_text + expression[part.end :]
    return expression


def _clause(builder: str, expression: str, part: _Part) -> Clause:
    return Clause(builder, _NUMBER.sub(r"\1", expression[part.begin : part.end]), part.always)


# -- cutting ------------------------------------------------------------------------------------------------------------


def _parts_of(expression: str) -> list[_Part]:
    begin, end = 0, len(expression)
    parts = list(_inside(expression, begin, end))
    is_conjunction = len(_cut(expression, begin, end, "OR")) == 1 and len(_cut(expression, begin, end, "AND")) > 1
    return parts if is_conjunction else [_Part(begin, end, always=True), *parts]


def _inside(expression: str, begin: int, end: int) -> Iterator[_Part]:
    """Yields the clauses within a part, at every depth."""
    begin, end = _without_parentheses(expression, begin, end)
    for word in ("OR", "AND"):
        cut = _cut(expression, begin, end, word)
        if len(cut) > 1:
            for each in cut:
                yield _Part(*each, always=word == "AND")
                yield from _inside(expression, *each)
            return


def _cut(expression: str, begin: int, end: int, word: str) -> list[tuple[int, int]]:
    """Cuts at a word that stands outside of all parentheses; the `AND` of a `BETWEEN` cuts nothing."""
    pieces: list[tuple[int, int]] = []
    depth, since, in_between = 0, begin, False
    for match in _WORD.finditer(expression, begin, end):
        found = match.group()
        depth += (found == "(") - (found == ")")
        if found == "AND" and in_between:
            in_between = False
        elif found == "BETWEEN":
            in_between = True
        elif found == word and depth == 0:
            pieces.append(_trimmed(expression, since, match.start()))
            since = match.end()
    return [*pieces, _trimmed(expression, since, end)]


def _without_parentheses(expression: str, begin: int, end: int) -> tuple[int, int]:
    """Takes off parentheses that enclose all of a part."""
    begin, end = _trimmed(expression, begin, end)
    while expression[begin] == "(" and _closing(expression, begin) == end - 1:
        begin, end = _trimmed(expression, begin + 1, end - 1)
    return begin, end


def _closing(expression: str, opening: int) -> int:
    depth = 0
    for position in range(opening, len(expression)):
        depth += (expression[position] == "(") - (expression[position] == ")")
        if depth == 0:
            return position
    raise ValueError(f"{expression}: parentheses do not match")


def _trimmed(expression: str, begin: int, end: int) -> tuple[int, int]:
    text = expression[begin:end]
    return begin + len(text) - len(text.lstrip()), end - len(text) + len(text.rstrip())
