"""Items of cron fields in all dialects: values, steps, `H`, errors, and the nearest valid expression for a hint."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from tidegate_core.language.time.calendar_periods import SpecialDay
from tidegate_core.language.values.derived_ids import hash_of
from tidegate_core.language.values.problems import nearest

Dialect: TypeAlias = Literal["unix5", "unix6", "quartz"]

MAX_EXPRESSION_CHARACTERS = 256
MAX_CORRECTIONS = 8
"""Errors that are corrected in the search for the nearest valid form. A text with more errors is not close to any form."""

MONTHS = {name: n for n, name in enumerate("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), start=1)}
WEEKDAYS = {name: n for n, name in enumerate("SUN MON TUE WED THU FRI SAT".split())}
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,31}", re.ASCII)
_NAMES = "|".join((*MONTHS, *WEEKDAYS))
_FIELD_LIKE = re.compile(rf"(?:[-0-9*/,?#LW]|H(?:\([0-9-]+\))?|{_NAMES})+", re.ASCII | re.IGNORECASE)
"""Text that may be a further field, of another dialect."""
_STARRED_NUMBER = re.compile(r"\*+/?(\d{1,4})", re.ASCII)
EVERY_UNITS: Mapping[str, str] = {"second": "s", "minute": "m", "hour": "h"}
"""Fields whose step users often take for a period, with the unit of that period."""

_Read = TypeVar("_Read")


class FieldKind(NamedTuple):
    """Kind of a field: its name, its bounds and its words for values."""

    name: str
    low: int
    high: int
    names: Mapping[str, int]


SECOND = FieldKind("second", 0, 59, {})
MINUTE = FieldKind("minute", 0, 59, {})
HOUR = FieldKind("hour", 0, 23, {})
DAY_OF_MONTH = FieldKind("day of month", 1, 31, {})
DAY_OF_WEEK = FieldKind("day of week", 0, 7, WEEKDAYS)
MONTH = FieldKind("month", 1, 12, MONTHS)


class CronError(ValueError):
    """An invalid expression.

    Attributes:
        problem: Clause that names the field and its column.
        column: Column of the error, from 1; 0 for the expression as a whole.
        hint: Nearest valid form, or another correction.
    """

    def __init__(self, problem: str, *, column: int = 0, hint: str = "") -> None:
        self.problem = problem
        self.column = column
        self.hint = hint
        super().__init__(f"{problem}; {hint}" if hint else problem)


class ItemFault(CronError):
    """An error inside one list item, with a replacement that may be valid.

    Attributes:
        start, end: Part of the expression that `instead` replaces.
        instead: Replacement; None if there is no obvious one.
        note: Text that follows the nearest valid form in the hint.
    """

    def __init__(
        self,
        problem: str,
        *,
        start: int,
        end: int,
        instead: str | None = None,
        hint: str = "",
        note: str = "",
        column: int | None = None,
    ) -> None:
        super().__init__(problem, column=start + 1 if column is None else column, hint=hint)
        self.start, self.end, self.instead, self.note = start, end, instead, note


@dataclass(frozen=True, slots=True)
class FieldText:
    """A checked field.

    Attributes:
        text: Text as written.
        values: Values of the field. In the weekday field of the unix dialects 0 and 7 are both Sunday.
        special: Further days of the field, in Quartz.
    """

    text: str
    values: frozenset[int]
    special: tuple[SpecialDay, ...] = ()


def read_with_hint(read: Callable[[str], _Read], expression: str) -> _Read:
    """Returns the result of `read`. If `read` raises an `ItemFault`, raises it again with the nearest valid form as hint."""
    try:
        return read(expression)
    except ItemFault as fault:
        corrected = _nearest_valid(read, expression, fault)
        if corrected is None:
            raise
        hint = f'nearest valid form: "{corrected.strip()}"{fault.note}'
        raise CronError(fault.problem, column=fault.column, hint=hint) from fault


def _nearest_valid(read: Callable[[str], object], expression: str, fault: ItemFault) -> str | None:
    for _ in range(MAX_CORRECTIONS):
        if fault.instead is None:
            return None
        expression = expression[: fault.start] + fault.instead + expression[fault.end :]
        try:
            read(expression)
        except ItemFault as following:
            fault = following
        except CronError:
            return None
        else:
            return expression
    return None


def is_no_item(item: str, text: str, place: str, start: int, at: int) -> ItemFault:
    """Returns the error of an item that has no form that cron knows.

    Args:
        item: Text of the item.
        text: Text of its field.
        place: Name and column of the field, for the error text.
        start: Index of the item in the expression.
        at: Index of the item in its field.
    """
    problem = f'{place}: "{item}" is not a number, a name, a range, a step or a list of them'
    if not item:
        # There is one comma too many. A star in its place would name every value, so the comma is removed.
        before = 1 if at else 0
        end = start if before else start + 1
        return ItemFault(problem, start=start - before, end=end, instead="", column=start + 1)
    step = _STARRED_NUMBER.fullmatch(item)
    instead = f"*/{step[1]}" if step else "*" if item.startswith("*") and item == text else None
    return ItemFault(problem, start=start, end=start + len(item), instead=instead)


def check_length(expression: str) -> None:
    if len(expression) > MAX_EXPRESSION_CHARACTERS:
        raise CronError(f"has {len(expression)} characters, at most {MAX_EXPRESSION_CHARACTERS} are allowed")


def crontab_line(words: Sequence[str], fields: int, read: Callable[[str], object]) -> str:
    """Returns the hint for a text that is a whole line of a crontab; empty if the text is no such line.

    Args:
        words: Words of the text.
        fields: Number of fields of an expression.
        read: Function that raises CronError for an invalid expression.
    """
    count = 1 if words and words[0].startswith("@") else fields
    expression, more = " ".join(words[:count]), words[count:]
    if not more or _FIELD_LIKE.fullmatch(more[0]):
        return ""
    try:
        read(expression)
    except CronError:
        return ""
    line = f'a line of a crontab? Its expression is "{expression}"'
    if len(more) > 1 and _USER.fullmatch(more[0]):
        return f'{line}, "{more[0]}" is the user column, and the command belongs into target.program'
    return f"{line}, and the command belongs into target.program"


def without_macro(expression: str, macros: Mapping[str, str]) -> str:
    """Returns the fields of a macro; returns other expressions unchanged."""
    macro = expression.strip()
    if not macro.startswith("@"):
        return expression
    if line := crontab_line(macro.split(), 1, lambda text: without_macro(text, macros)):
        raise CronError(f'"{macro[:64]}" is more than a macro', column=len(macro.split()[0]) + 2, hint=line)
    if macro == "@reboot":
        raise CronError("@reboot names no time", hint="a cluster does not boot; use a trigger of type at")
    if macro not in macros:
        guess = nearest(macro, (*macros, "@every"))
        guess = "@every 90m" if guess == "@every" else guess
        known = f"did you mean {guess}?" if guess else f"one of: {', '.join(macros)}, @every 90m"
        raise CronError(f'"{macro}" is no macro', column=1, hint=known)
    return macros[macro]


def value_of(kind: FieldKind, word: str, place: str, start: int, *, begins_range: bool = False) -> int:
    end = start + len(word)
    bounds = f"{kind.low}-{kind.high}"
    if word.isdigit():
        number = int(word)
        if kind.low <= number <= kind.high:
            return number
        closest: str | None = str(kind.low if number < kind.low else kind.high)
        if begins_range and number > kind.high:
            closest = None  # For 70-10 the range 59-10 is no better guess than any other.
        raise ItemFault(f"{place}: {word} is not in {bounds}", start=start, end=end, instead=closest)
    known = kind.names.get(word.upper())
    if known is not None:
        return known
    guess = nearest(word[:3], kind.names) if kind.names else None
    expected = (
        f"{bounds} or {min(kind.names, key=kind.names.__getitem__)}-{max(kind.names, key=kind.names.__getitem__)}"
        if kind.names
        else bounds
    )
    raise ItemFault(f'{place}: "{word}" is not in {expected}', start=start, end=end, instead=guess)


def check_step(kind: FieldKind, step: int, place: str, start: int, end: int, *, widest: int) -> None:
    """Refuses a step below 1 or above `widest`."""
    if step > widest and kind.name in EVERY_UNITS:
        # Each hour starts the minute field again: a step of 90 would fire once an hour, not every 90 minutes.
        period = f"{step}{EVERY_UNITS[kind.name]}"
        hint = f"for an elapsed time use a trigger of type every with period {period}"
        raise ItemFault(f"{place}: a step of {step} is not in 1-{widest}", start=start, end=end, hint=hint)
    if not 1 <= step <= widest:
        instead = str(1 if step < 1 else widest)
        raise ItemFault(f"{place}: a step of {step} is not in 1-{widest}", start=start, end=end, instead=instead)


HASHED_ITEM = re.compile(r"H(?:\((?P<low>\d{1,2})-(?P<high>\d{1,2})\))?(?:/(?P<step>\d{1,4}))?", re.ASCII)
_HIGHEST: Mapping[str, int] = {"day of month": 28, "day of week": 6}
"""Highest value of `H` if it is lower than the field's: a day that each month has, and Sunday as 0 only."""


@lru_cache(maxsize=2048)
def is_hashed(expression: str) -> bool:
    """Whether the expression contains an `H`, so that its times differ between schedules."""
    return any(HASHED_ITEM.fullmatch(item) is not None for item in re.split(r"[\s,]+", expression))


def hashed_values(kind: FieldKind, match: re.Match[str], start: int, identity: str) -> range:
    """Expands `H`, `H/15` and `H(0-29)` by a hash of the schedule's identity.

    The value of one schedule never changes, and the values of many schedules spread over the range.
    """
    place = f"{kind.name} (column {start + 1})"
    end = start + len(match[0])
    bottom, top = kind.low, _HIGHEST.get(kind.name, kind.high)
    low, high = int(match["low"] or bottom), top if match["high"] is None else int(match["high"])
    if not bottom <= low <= high <= top:
        problem = f'{place}: "{match[0]}" is not a range within {bottom}-{top}'
        raise ItemFault(problem, start=start, end=end, instead=None if match["step"] else "H")
    step = high - low + 1
    if match["step"] is not None:
        step = int(match["step"])
        check_step(kind, step, place, start + match.start("step"), start + match.end("step"), widest=high - low)
    first = low + int.from_bytes(hash_of("cron", identity, kind.name)[:8], "big") % step
    return range(first, high + 1, step)
