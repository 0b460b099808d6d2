"""The text of cron expressions: splitting, checking and expanding item by item, and the nearest valid form."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from tidegate_core.model.planned import LANGUAGE, Planned
from tidegate_core.model.problems import nearest

Dialect: TypeAlias = Literal["unix5", "unix6"]

MAX_EXPRESSION_CHARACTERS = 256
MAX_CORRECTIONS = 8
"""Faults that are mended on the way to the nearest valid form; a text with more is not close to any."""

MACROS: Mapping[str, str] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
QUARTZ = Planned(LANGUAGE, hint="? L W and # belong to the Quartz dialect")
HASHED = Planned(LANGUAGE, hint="write the minute or hour yourself")

_ITEM = re.compile(r"(?P<low>\*|[A-Za-z0-9]+)(?:-(?P<high>[A-Za-z0-9]+))?(?:/(?P<step>\d{1,4}))?", re.ASCII)
_QUARTZ_ITEM = re.compile(r"\?|.*#.*|\d*L(?:-\d+)?|LW|\d+W", re.ASCII | re.IGNORECASE)
_HASHED_ITEM = re.compile(r"H(?:\(\d+-\d+\))?(?:/\d+)?", re.ASCII | re.IGNORECASE)
_RANDOM_ITEM = re.compile(r"R(?:\(\d+-\d+\))?(?:/\d+)?", re.ASCII | re.IGNORECASE)
_MONTHS = {name: n for n, name in enumerate("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), start=1)}
_WEEKDAYS = {name: n for n, name in enumerate("SUN MON TUE WED THU FRI SAT".split())}
EVERY_UNITS: Mapping[str, str] = {"second": "s", "minute": "m", "hour": "h"}
"""Fields whose step people take for a period."""


class FieldKind(NamedTuple):
    """One of the fields of an expression: what it counts and its bounds."""

    name: str
    low: int
    high: int
    names: Mapping[str, int]


SECOND = FieldKind("second", 0, 59, {})
MINUTE = FieldKind("minute", 0, 59, {})
HOUR = FieldKind("hour", 0, 23, {})
DAY_OF_MONTH = FieldKind("day of month", 1, 31, {})
MONTH = FieldKind("month", 1, 12, _MONTHS)
DAY_OF_WEEK = FieldKind("day of week", 0, 7, _WEEKDAYS)
FIELDS: Mapping[Dialect, tuple[FieldKind, ...]] = {
    "unix5": (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK),
    "unix6": (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK),
}


class CronError(ValueError):
    """An expression is not valid.

    Attributes:
        problem: A clause that names the field and its column.
        column: Where the fault begins, from 1; 0 for the expression as a whole.
        hint: The nearest valid form, or what to write instead.
    """

    def __init__(self, problem: str, *, column: int = 0, hint: str = "") -> None:
        self.problem = problem
        self.column = column
        self.hint = hint
        super().__init__(f"{problem}; {hint}" if hint else problem)


class _ItemFault(CronError):
    """A fault inside one list item, with what would be valid in its place."""

    def __init__(self, problem: str, *, start: int, end: int, instead: str | None = None, hint: str = "") -> None:
        super().__init__(problem, column=start + 1, hint=hint)
        self.start, self.end, self.instead = start, end, instead


@dataclass(frozen=True, slots=True)
class FieldText:
    """A checked field.

    Attributes:
        text: As it was written.
        values: What it names; in the day of week both 0 and 7 are Sunday.
    """

    text: str
    values: frozenset[int]


def checked_fields(expression: str, dialect: Dialect) -> tuple[FieldText, ...]:
    """Returns the fields of an expression, macros replaced.

    Raises:
        CronError: With the place of the fault and, where there is one, the nearest valid expression.
    """
    try:
        return _fields(expression, dialect)
    except _ItemFault as fault:
        corrected = _nearest_valid(expression, dialect, fault)
        if corrected is None:
            raise
        raise CronError(fault.problem, column=fault.column, hint=f'nearest valid form: "{corrected}"') from fault


def _nearest_valid(expression: str, dialect: Dialect, fault: _ItemFault) -> str | None:
    for _ in range(MAX_CORRECTIONS):
        if fault.instead is None:
            return None
        expression = expression[: fault.start] + fault.instead + expression[fault.end :]
        try:
            _fields(expression, dialect)
        except _ItemFault as following:
            fault = following
        except CronError:
            return None
        else:
            return expression
    return None


def _fields(expression: str, dialect: Dialect) -> tuple[FieldText, ...]:
    if len(expression) > MAX_EXPRESSION_CHARACTERS:
        raise CronError(f"has {len(expression)} characters, at most {MAX_EXPRESSION_CHARACTERS} are allowed")
    kinds = FIELDS[dialect]
    words = list(re.finditer(r"\S+", _without_macro(expression, dialect)))
    if len(words) != len(kinds):
        raise _wrong_count(expression, len(words), dialect)
    return tuple(_field(kind, word[0], word.start()) for kind, word in zip(kinds, words, strict=True))


def _without_macro(expression: str, dialect: Dialect) -> str:
    macro = expression.strip()
    if not macro.startswith("@"):
        return expression
    if macro == "@reboot":
        raise CronError("@reboot names no time", hint="a cluster does not boot; use a trigger of type at")
    if macro not in MACROS:
        guess = nearest(macro, MACROS)
        known = f"did you mean {guess}?" if guess else f"one of: {', '.join(MACROS)}, @every 90m"
        raise CronError(f'"{macro}" is no macro', column=1, hint=known)
    return MACROS[macro] if dialect == "unix5" else f"0 {MACROS[macro]}"


def _wrong_count(expression: str, count: int, dialect: Dialect) -> CronError:
    expected = len(FIELDS[dialect])
    names = " ".join(kind.name.replace(" ", "-") for kind in FIELDS[dialect])
    problem = f"has {count} fields, dialect {dialect} has {expected} ({names})"
    if dialect == "unix5" and count in {6, 7}:
        return CronError(
            f"{problem}; with {count} fields the dialect has to be given",
            hint="say dialect: unix6 (seconds first, weekdays 0-7 from Sunday); it is never guessed, because Quartz "
            "counts weekdays 1-7 from Sunday and the same text would mean other days",
        )
    if dialect == "unix6" and count == 5:
        return CronError(problem, hint=f'nearest valid form: "0 {expression.strip()}"')
    return CronError(problem)


def _field(kind: FieldKind, text: str, start: int) -> FieldText:
    values: set[int] = set()
    for item in text.split(","):
        values.update(_expanded(kind, item, start))
        start += len(item) + 1
    return FieldText(text, frozenset(values))


def _expanded(kind: FieldKind, item: str, start: int) -> range:
    place = f"{kind.name} (column {start + 1})"
    end = start + len(item)
    _refuse_other_dialects(item, place, start, end)
    match = _ITEM.fullmatch(item)
    if match is None or (match["low"] == "*" and match["high"] is not None):
        raise _ItemFault(
            f'{place}: "{item}" is not a number, a name, a range, a step or a list of them',
            start=start,
            end=end,
            instead="*" if item[:1] == "*" or not item else None,
        )
    if match["low"] == "*":
        low, high = kind.low, min(kind.high, 6) if kind is DAY_OF_WEEK else kind.high
    else:
        low = _value(kind, match["low"], place, start, begins_range=match["high"] is not None)
        high = low if match["high"] is None else _value(kind, match["high"], place, start + match.start("high"))
    if high < low:
        raise _backwards(kind, match, place, start, end)
    if match["step"] is not None:
        _check_step(kind, match, place, start)
    return range(low, high + 1, int(match["step"] or 1))


def _refuse_other_dialects(item: str, place: str, start: int, end: int) -> None:
    if _RANDOM_ITEM.fullmatch(item):
        raise _ItemFault(
            f'{place}: "{item}" is random', start=start, end=end, hint="an occurrence needs one known time"
        )
    if _HASHED_ITEM.fullmatch(item):
        raise _ItemFault(f'{place}: "{item}" {HASHED.problem}', start=start, end=end, hint=HASHED.hint)
    if _QUARTZ_ITEM.fullmatch(item):
        instead = "*" if item == "?" else None
        raise _ItemFault(f'{place}: "{item}" {QUARTZ.problem}', start=start, end=end, instead=instead, hint=QUARTZ.hint)


def _value(kind: FieldKind, word: str, place: str, start: int, *, begins_range: bool = False) -> int:
    end = start + len(word)
    bounds = f"{kind.low}-{kind.high}"
    if word.isdigit():
        number = int(word)
        if kind.low <= number <= kind.high:
            return number
        closest: str | None = str(kind.low if number < kind.low else kind.high)
        if begins_range and number > kind.high:
            closest = None  # 59-10 is no nearer to what 70-10 was meant to be than anything else.
        raise _ItemFault(f"{place}: {word} is not in {bounds}", start=start, end=end, instead=closest)
    known = kind.names.get(word.upper())
    if known is not None:
        return known
    guess = nearest(word[:3], kind.names) if kind.names else None
    expected = (
        f"{bounds} or {min(kind.names, key=kind.names.__getitem__)}-{max(kind.names, key=kind.names.__getitem__)}"
        if kind.names
        else bounds
    )
    raise _ItemFault(f'{place}: "{word}" is not in {expected}', start=start, end=end, instead=guess)


def _backwards(kind: FieldKind, match: re.Match[str], place: str, start: int, end: int) -> _ItemFault:
    first, last = match["low"], match["high"]
    top, bottom = str(kind.high if kind is not DAY_OF_WEEK else 6), str(kind.low)
    if first.isalpha() or last.isalpha():
        # In the words that it was written in.
        by_number = {str(number): name.lower() for name, number in kind.names.items()}
        top, bottom = by_number[top], by_number[bottom]
    # Over midnight or over the new year: what was meant is clear, but cron has never read it so.
    instead = None if match["step"] else f"{_span(first, top)},{_span(bottom, last)}"
    return _ItemFault(f'{place}: the range "{match[0]}" runs backwards', start=start, end=end, instead=instead)


def _span(first: str, last: str) -> str:
    return first if first.lower() == last.lower() else f"{first}-{last}"


def _check_step(kind: FieldKind, match: re.Match[str], place: str, start: int) -> None:
    step_start, step_end = start + match.start("step"), start + match.end("step")
    step = int(match["step"])
    if match["low"] != "*" and match["high"] is None:
        # Vixie cron reads 5/15 as 5, Quartz as 5-59/15: whoever writes it is surprised by one of them.
        raise _ItemFault(
            f'{place}: "{match[0]}" steps from a single value',
            start=start,
            end=start + len(match[0]),
            instead=f"{match['low']}-{kind.high if kind is not DAY_OF_WEEK else 6}/{step}",
        )
    widest = kind.high - kind.low
    if step > widest and kind.name in EVERY_UNITS:
        # Each field begins anew: a step beyond it would fire once per hour (or minute, or day), not every 90 minutes.
        period = f"{step}{EVERY_UNITS[kind.name]}"
        hint = f"for an elapsed time use a trigger of type every with period {period}"
        raise _ItemFault(f"{place}: a step of {step} is not in 1-{widest}", start=step_start, end=step_end, hint=hint)
    if not 1 <= step <= widest:
        raise _ItemFault(
            f"{place}: a step of {step} is not in 1-{widest}",
            start=step_start,
            end=step_end,
            instead=str(1 if step < 1 else widest),
        )
