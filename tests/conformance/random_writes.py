"""Random pairs of an item and a conditional write, for comparing one store with another.

Most expressions are sensible, some are not: wrong types, missing operands and places that overlap belong to what has to
get the same verdict everywhere.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tidegate_core.rows.store_operations import Action, Condition, Delete, Item, Key, Put, Update, Value

DEPTH_MAX: Final = 3
ODD: Final = 0.06
"""How often a value or operand is of a type that does not fit."""
ABSENT: Final = 0.2

NUMBERS: Final = ("tally", "epoch", "rev")
TEXTS: Final = ("spec", "who", "w")
SETS: Final = ("tags", "holders")
OTHERS: Final = ("flag", "packed", "nothing", "entries", "doc")
INNER_NUMBERS: Final = ("doc.tally", "doc.deep.rev", "entries[0]")
NEVER_THERE: Final = ("ghost", "doc.ghost", "tally.ghost", "entries[7]", "ghost.deep")


class RandomWrite(NamedTuple):
    """`before` is the stored item, None for none; `action` is to be tried on it."""

    before: Item | None
    action: Action


@dataclass(slots=True)
class _Placeholders:
    random: random.Random
    prefix: str
    names: dict[str, str] = field(default_factory=dict)
    values: dict[str, Value] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)

    def path(self, dotted: str) -> str:
        """Returns the path with some of its names behind placeholders."""
        return ".".join(self._name(part) for part in dotted.split("."))

    def target(self, choices: Sequence[str]) -> str:
        """Returns a path to change, as a rule one that shares no first name with those before."""
        fresh = [dotted for dotted in choices if dotted.split(".")[0] not in self.changed]
        dotted = self.random.choice(choices if not fresh or self.random.random() < ODD else fresh)
        self.changed.add(dotted.split(".")[0])
        return self.path(dotted)

    def value(self, value: Value) -> str:
        placeholder = f":{self.prefix}{len(self.values)}"
        self.values[placeholder] = value
        return placeholder

    def _name(self, part: str) -> str:
        name, bracket, index = part.partition("[")
        if self.random.random() < 0.5:
            return part
        placeholder = f"#{self.prefix}{len(self.names)}"
        self.names[placeholder] = name
        return placeholder + bracket + index


def random_write(seed: int, key: Key) -> RandomWrite:
    """Returns the pair of a seed: the same one on every machine."""
    return _Generator(random.Random(seed), key).pair()


class _Generator:
    def __init__(self, source: random.Random, key: Key) -> None:
        self._random = source
        self._key = key

    def pair(self) -> RandomWrite:
        before = None if self._chance(0.08) else self._item()
        condition = None if self._chance(0.05) else self._condition()
        kind = self._random.random()
        if kind < 0.1:
            return RandomWrite(before, Put(self._key, self._item(), condition))
        if kind < 0.15:
            return RandomWrite(before, Delete(self._key, condition))
        return RandomWrite(before, self._update(condition))

    # -- values -----------------------------------------------------------------------------------------------------

    def _item(self) -> Item:
        families: dict[str, Callable[[], Value]] = {
            **dict.fromkeys(NUMBERS, self._number),
            **dict.fromkeys(TEXTS, self._text),
            **dict.fromkeys(SETS, self._set),
            "flag": lambda: self._chance(0.5),
            "packed": self._binary,
            "nothing": lambda: None,
            "entries": self._list,
            "doc": self._document,
        }
        item: Item = {"pk": self._key.pk, "sk": self._key.sk}
        for name, make in families.items():
            if not self._chance(ABSENT):
                item[name] = self._any() if self._chance(ODD) else make()
        return item

    def _number(self) -> Value:
        return self._random.choice((0, 1, 2, 3, -1, 7, 10**12, 10**37 * 9, 10**38 - 1))

    def _text(self) -> Value:
        return self._random.choice(("", "a", "ab", "abc", "b", "B", "é", "z\u0101", "a b", "\U0001f600"))

    def _binary(self) -> Value:
        return self._random.choice((b"", b"\x00", b"\x00\xff", b"a"))

    def _set(self) -> Value:
        return frozenset(self._random.sample(("a", "b", "ab", "c"), self._random.randint(1, 3)))

    def _list(self) -> Value:
        return [self._random.choice((1, 2, "a", True, None)) for _ in range(self._random.randint(0, 3))]

    def _document(self) -> Value:
        return {"tally": self._number(), "line": self._text(), "deep": {"rev": self._number(), "entries": self._list()}}

    def _any(self) -> Value:
        makers = (self._number, self._text, self._set, self._list, self._document, self._binary)
        return self._random.choice((*makers, lambda: None, lambda: True, lambda: False))()

    # -- conditions -------------------------------------------------------------------------------------------------

    def _condition(self) -> Condition:
        held = _Placeholders(self._random, "c")
        return Condition(self._test(held, 0), held.names, held.values)

    def _test(self, held: _Placeholders, depth: int) -> str:
        kind = self._random.random()
        if depth >= DEPTH_MAX or kind < 0.5:
            return self._leaf(held)
        if kind < 0.6:
            return f"NOT {self._in_parentheses(self._test(held, depth + 1))}"
        parts = [self._test(held, depth + 1) for _ in range(self._random.randint(2, 3))]
        joined = self._random.choice((" AND ", " OR ", " and ", "\n  OR "))
        if self._chance(0.5):
            parts = [self._in_parentheses(part) for part in parts]
        return joined.join(parts)

    def _in_parentheses(self, text: str) -> str:
        return text if text.startswith("(") and not self._chance(0.02) else f"({text})"

    def _leaf(self, held: _Placeholders) -> str:
        kinds = (self._comparison, self._comparison, self._comparison, self._between, self._in, self._function)
        return self._random.choice(kinds)(held)

    def _comparison(self, held: _Placeholders) -> str:
        names, make = self._family()
        if self._chance(0.15):
            names, make = self._collections(), self._number
            left = f"size({held.path(self._random.choice(names))})"
            return f"{left} {self._sign()} {held.value(self._random.choice((0, 1, 2, 3)))}"
        operands = [held.path(self._random.choice(names)), self._operand(held, names, make)]
        if self._chance(0.2):
            operands.reverse()
        return f"{operands[0]} {self._sign()} {operands[1]}"

    def _sign(self) -> str:
        return self._random.choice(("=", "=", "<>", "<>", "<", "<=", ">", ">="))

    def _between(self, held: _Placeholders) -> str:
        names, make = self._family()
        name = held.path(self._random.choice(names))
        if make != self._any and not self._chance(ODD):
            low, high = sorted((make(), make()), key=_rank)
            return f"{name} BETWEEN {held.value(low)} AND {held.value(high)}"
        return f"{name} BETWEEN {self._operand(held, names, make)} AND {self._operand(held, names, make)}"

    def _in(self, held: _Placeholders) -> str:
        names, make = self._family()
        choices = [self._operand(held, names, make) for _ in range(self._random.randint(1, 4))]
        return f"{held.path(self._random.choice(names))} IN ({', '.join(choices)})"

    def _function(self, held: _Placeholders) -> str:
        name = self._random.choice(("attribute_exists", "attribute_not_exists", "contains", "begins_with"))
        if name.startswith("attribute"):
            return f"{name}({held.path(self._random.choice((*NUMBERS, *TEXTS, *SETS, *OTHERS, *NEVER_THERE)))})"
        if name == "begins_with":
            make = self._binary if self._chance(0.1) else self._text
            return f"{name}({held.path(self._random.choice((*TEXTS, 'packed')))}, {self._operand(held, TEXTS, make)})"
        return (
            f"{name}({held.path(self._random.choice(self._collections()))}, {self._operand(held, TEXTS, self._text)})"
        )

    def _operand(self, held: _Placeholders, names: Sequence[str], make: Callable[[], Value]) -> str:
        if self._chance(0.2):
            return held.path(self._random.choice((*names, *names, *NEVER_THERE)))
        return held.value(self._any() if self._chance(ODD) else make())

    def _family(self) -> tuple[Sequence[str], Callable[[], Value]]:
        kind = self._random.random()
        if kind < 0.45:
            return (*NUMBERS, *INNER_NUMBERS), self._number
        if kind < 0.8:
            return (*TEXTS, "doc.line"), self._text
        return (*NUMBERS, *TEXTS, *SETS, *OTHERS, *NEVER_THERE), self._any

    def _collections(self) -> Sequence[str]:
        return (*TEXTS, *SETS, "entries", "doc", "packed", "doc.deep", "doc.deep.entries", "nothing", "tally", "ghost")

    # -- updates ----------------------------------------------------------------------------------------------------

    def _update(self, condition: Condition | None) -> Update:
        held = _Placeholders(self._random, "u")
        makers = {"SET": self._set_clause, "REMOVE": self._remove_clause, "ADD": self._add_clause}
        makers["DELETE"] = self._delete_clause
        sections = self._random.sample(sorted(makers), self._random.choice((1, 1, 2, 3)))
        texts = []
        for section in sections:
            clauses = [makers[section](held) for _ in range(self._random.choice((1, 1, 2)))]
            texts.append(f"{section} {', '.join(clauses)}")
        return Update(self._key, " ".join(texts), held.names, held.values, condition)

    def _set_clause(self, held: _Placeholders) -> str:
        target = held.target((*NUMBERS, *TEXTS, *OTHERS, "doc.line", "doc.fresh", "doc.deep.fresh", "fresh", "fresh2"))
        return f"{target} = {self._right_side(held)}"

    def _right_side(self, held: _Placeholders) -> str:
        kind = self._random.random()
        if kind < 0.3:
            return held.value(self._any())
        if kind < 0.4:
            return held.path(self._random.choice((*NUMBERS, *TEXTS, *OTHERS)))
        number = held.path(self._random.choice((*NUMBERS, *INNER_NUMBERS)))
        if kind < 0.6:
            return f"{number} {self._random.choice('+-')} {held.value(self._random.choice((1, 2, 10**30)))}"
        if kind < 0.8:
            return f"if_not_exists({number}, {held.value(self._any())})"
        return f"if_not_exists({number}, {held.value(0)}) + {held.value(1)}"

    def _remove_clause(self, held: _Placeholders) -> str:
        return held.target((*NUMBERS, *TEXTS, *OTHERS, "doc.line", "doc.ghost", "doc.deep.entries", "ghost"))

    def _add_clause(self, held: _Placeholders) -> str:
        if self._chance(0.5):
            return f"{held.target((*NUMBERS, 'doc.tally', 'fresh3'))} {held.value(self._number())}"
        return f"{held.target((*SETS, 'doc.tags', 'fresh4'))} {held.value(self._set())}"

    def _delete_clause(self, held: _Placeholders) -> str:
        return f"{held.target((*SETS, 'ghost'))} {held.value(self._set())}"

    def _chance(self, probability: float) -> bool:
        return self._random.random() < probability


def _rank(value: Value) -> tuple[int, str]:
    return (value, "") if isinstance(value, int) else (0, str(value))
