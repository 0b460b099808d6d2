"""Reads the text of cron expressions in the Quartz dialect.

The fields are second, minute, hour, day of month, month, day of week (1-7 from Sunday) and optionally year. Exactly one of the
two day fields is `?`, as in Quartz itself. A range may cross the end of its field: 22-2 means 22:00 to 02:00.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from tidegate_core.language.time.calendar_periods import SpecialDay
from tidegate_core.language.time.cron_items import (
    DAY_OF_MONTH,
    HASHED_ITEM,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    WEEKDAYS,
    CronError,
    FieldKind,
    FieldText,
    ItemFault,
    check_length,
    check_step,
    crontab_line,
    is_no_item,
    value_of,
    without_macro,
)

FIRST_YEAR, LAST_YEAR = 1970, 2099
"""Years of Quartz itself."""

_WEEKDAY = FieldKind("day of week", 1, 7, {name: number + 1 for name, number in WEEKDAYS.items()})
_YEAR = FieldKind("year", FIRST_YEAR, LAST_YEAR, {})
_KINDS = (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, _WEEKDAY, _YEAR)
_NAMES = "second minute hour day-of-month month day-of-week [year]"
_MACROS: Mapping[str, str] = {
    "@yearly": "0 0 0 1 1 ?",
    "@annually": "0 0 0 1 1 ?",
    "@monthly": "0 0 0 1 * ?",
    "@weekly": "0 0 0 ? * SUN",
    "@daily": "0 0 0 * * ?",
    "@midnight": "0 0 0 * * ?",
    "@hourly": "0 0 * * * ?",
}
_ITEM = re.compile(r"(?:(?P<low>\*|[A-Za-z0-9]+)(?:-(?P<high>[A-Za-z0-9]+))?)?(?:/(?P<step>\d{1,4}))?", re.ASCII)
_OF_MONTH = re.compile(r"L(?:-(?P<before>\d{1,2}))?(?P<weekday>W)?|(?P<near>\d{1,2})W", re.ASCII)
_OF_WEEK = re.compile(r"(?P<day>[1-7]|[A-Za-z]{3})(?:#(?P<nth>[1-5])|(?P<last>L))", re.ASCII)


def checked_fields(expression: str) -> tuple[FieldText, ...]:
    """Returns the six or seven fields of an expression; a macro is replaced first.

    Weekdays are returned as 0 to 6 from Sunday. A field `?` has no values.

    Raises:
        CronError: The expression is invalid. The error has the place and, if there is one, a replacement.
    """
    check_length(expression)
    words = list(re.finditer(r"\S+", without_macro(expression, _MACROS)))
    if len(words) not in {6, 7}:
        raise _wrong_count(expression, [word[0] for word in words])
    fields = tuple(_field(kind, word[0], word.start()) for kind, word in zip(_KINDS, words, strict=False))
    _check_days(words[3], words[5])
    return fields


def _wrong_count(expression: str, words: Sequence[str]) -> CronError:
    problem = f"has {len(words)} fields, dialect quartz has 6 or 7 ({_NAMES})"
    if len(words) == 5:
        note = ", with seconds in front and weekdays counted from 1 = Sunday"
        start = len(expression) - len(expression.lstrip())
        return ItemFault(problem, start=start, end=start, instead="0 ", note=note, column=0)
    return CronError(problem, hint=crontab_line(words, 6, checked_fields))


def _check_days(of_month: re.Match[str], of_week: re.Match[str]) -> None:
    """Refuses day fields unless exactly one is `?`. If one day field is a star, the hint replaces it."""
    unset = [word[0] == "?" for word in (of_month, of_week)]
    if unset.count(True) == 1:
        return
    if all(unset):
        raise _day_fault(of_month, "both day fields are ?", instead="*")
    problem = "day of month and day of week are both given, and Quartz takes one of them"
    if of_week[0] == "*" or of_month[0] == "*":
        raise _day_fault(of_week if of_week[0] == "*" else of_month, problem, instead="?")
    raise _day_fault(of_week, problem, hint="write ? for one of them; dialect unix6 with day_rule takes both")


def _day_fault(word: re.Match[str], problem: str, *, instead: str | None = None, hint: str = "") -> ItemFault:
    return ItemFault(problem, start=word.start(), end=word.end(), instead=instead, hint=hint)


def _field(kind: FieldKind, text: str, start: int) -> FieldText:
    if text == "?" and kind in (DAY_OF_MONTH, _WEEKDAY):
        return FieldText(text, frozenset())
    values, special = set[int](), list[SpecialDay]()
    at = 0
    for item in text.split(","):
        day = _special_day(kind, item, start + at)
        if day is None:
            values.update(_expanded(kind, item, text, start + at, at))
        else:
            special.append(day)
        at += len(item) + 1
    if kind is _WEEKDAY:
        values = {number - 1 for number in values}
    return FieldText(text, frozenset(values), tuple(special))


def _special_day(kind: FieldKind, item: str, start: int) -> SpecialDay | None:
    place = f"{kind.name} (column {start + 1})"
    if kind is DAY_OF_MONTH and (match := _OF_MONTH.fullmatch(item.upper())) is not None:
        if match["near"]:
            return SpecialDay("nearest_weekday", value_of(kind, match["near"], place, start))
        before = int(match["before"] or 0)
        if before > 30:
            raise ItemFault(
                f"{place}: no month has a day {before} before its last",
                start=start,
                end=start + len(item),
                instead=f"L-30{match['weekday'] or ''}",
            )
        return SpecialDay("last_weekday" if match["weekday"] else "last", before)
    if kind is _WEEKDAY and (match := _OF_WEEK.fullmatch(item.upper())) is not None:
        weekday = value_of(kind, match["day"], place, start) - 1
        if match["last"]:
            return SpecialDay("last_of_week", weekday)
        return SpecialDay("nth_of_week", weekday, int(match["nth"]))
    return None


def _expanded(kind: FieldKind, item: str, text: str, start: int, at: int) -> Iterable[int]:
    place = f"{kind.name} (column {start + 1})"
    end = start + len(item)
    if HASHED_ITEM.fullmatch(item):
        raise ItemFault(
            f'{place}: "{item}" belongs to the unix dialects', start=start, end=end, hint="say dialect: unix5 or unix6"
        )
    if kind is _WEEKDAY and item.upper() == "L":
        return (7,)  # A lone L is the last day of the week, Saturday; 6L is the last Friday of the month.
    match = _ITEM.fullmatch(item)
    if match is None or not item or (match["low"] == "*" and match["high"] is not None):
        raise is_no_item(item, text, place, start, at)
    low, high = kind.low, kind.high
    if match["low"] not in {None, "*"}:
        low = value_of(kind, match["low"], place, start)
        if match["high"] is not None:
            high = value_of(kind, match["high"], place, start + match.start("high"))
        elif match["step"] is None:
            high = low
    step = int(match["step"] or 1)
    if match["step"] is not None:
        check_step(
            kind, step, place, start + match.start("step"), start + match.end("step"), widest=kind.high - kind.low
        )
    if high < low and kind is _YEAR:
        raise ItemFault(f'{place}: the range "{item}" runs backwards', start=start, end=end)
    span = kind.high - kind.low + 1
    return (
        kind.low + (number - kind.low) % span for number in range(low, high + (span if high < low else 0) + 1, step)
    )
