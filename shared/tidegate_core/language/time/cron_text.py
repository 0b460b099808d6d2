"""Reads the text of cron expressions in the unix dialects, item by item, and a zone in front of an expression."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from tidegate_core.language.time.cron_items import (
    DAY_OF_MONTH,
    DAY_OF_WEEK,
    HASHED_ITEM,
    HOUR,
    MINUTE,
    MONTH,
    SECOND,
    CronError,
    FieldKind,
    FieldText,
    ItemFault,
    check_length,
    check_step,
    crontab_line,
    hashed_values,
    is_no_item,
    value_of,
    without_macro,
)
from tidegate_core.language.values.problems import MAX_SHOWN, refused

MACROS: Mapping[str, str] = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_QUARTZ_HINT = "say dialect: quartz, which has seconds first and counts weekdays 1-7 from Sunday"

_ITEM = re.compile(r"(?P<low>\*|[A-Za-z0-9]+)(?:-(?P<high>[A-Za-z0-9]+))?(?:/(?P<step>\d{1,4}))?", re.ASCII)
_QUARTZ_ITEM = re.compile(r"\?|.*#.*|\d*L(?:-\d+)?W?|\d+W", re.ASCII | re.IGNORECASE)
_RANDOM_ITEM = re.compile(r"R(?:\(\d+-\d+\))?(?:/\d+)?", re.ASCII | re.IGNORECASE)

UnixDialect: TypeAlias = Literal["unix5", "unix6"]
FIELDS: Mapping[UnixDialect, tuple[FieldKind, ...]] = {
    "unix5": (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK),
    "unix6": (SECOND, MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK),
}


def checked_fields(expression: str, dialect: UnixDialect, identity: str = "") -> tuple[FieldText, ...]:
    """Returns the fields of an expression; a macro is replaced first.

    Args:
        expression: Text of at most 256 characters.
        dialect: Dialect, which decides the number of fields.
        identity: Input of the hash for `H`.

    Raises:
        CronError: The expression is invalid. The error has the place and, if there is one, a replacement.
    """
    check_length(expression)
    kinds = FIELDS[dialect]
    written = without_macro(expression, MACROS)
    if dialect == "unix6" and written is not expression:
        written = f"0 {written}"
    words = list(re.finditer(r"\S+", written))
    if len(words) != len(kinds):
        raise _wrong_count(expression, [word[0] for word in words], dialect)
    return tuple(_field(kind, word[0], word.start(), identity) for kind, word in zip(kinds, words, strict=True))


def _wrong_count(expression: str, words: Sequence[str], dialect: UnixDialect) -> CronError:
    count = len(words)
    expected = len(FIELDS[dialect])
    names = " ".join(kind.name.replace(" ", "-") for kind in FIELDS[dialect])
    problem = f"has {count} fields, dialect {dialect} has {expected} ({names})"
    if line := crontab_line(words, len(FIELDS[dialect]), lambda text: checked_fields(text, dialect)):
        return CronError(problem, hint=line)
    if dialect == "unix5" and count in {6, 7}:
        return CronError(
            f"{problem}; with {count} fields the dialect has to be given",
            hint="say dialect: unix6 (seconds first, weekdays 0-7 from Sunday) or dialect: quartz; it is never guessed, "
            "because Quartz counts weekdays 1-7 from Sunday and the same text would mean other days",
        )
    if dialect == "unix6" and count == 5:
        start = len(expression) - len(expression.lstrip())
        return ItemFault(problem, start=start, end=start, instead="0 ", column=0)
    return CronError(problem)


def _field(kind: FieldKind, text: str, start: int, identity: str) -> FieldText:
    values: set[int] = set()
    at = 0
    for item in text.split(","):
        hashed = HASHED_ITEM.fullmatch(item)
        here = start + at
        values.update(
            _expanded(kind, item, text, here, at) if hashed is None else hashed_values(kind, hashed, here, identity)
        )
        at += len(item) + 1
    return FieldText(text, frozenset(values))


def _expanded(kind: FieldKind, item: str, text: str, start: int, at: int) -> range:
    place = f"{kind.name} (column {start + 1})"
    end = start + len(item)
    _refuse_other_dialects(item, place, start, end)
    match = _ITEM.fullmatch(item)
    if match is None or (match["low"] == "*" and match["high"] is not None):
        raise is_no_item(item, text, place, start, at)
    if match["low"] == "*":
        low, high = kind.low, min(kind.high, 6) if kind is DAY_OF_WEEK else kind.high
    else:
        low = value_of(kind, match["low"], place, start, begins_range=match["high"] is not None)
        high = low if match["high"] is None else value_of(kind, match["high"], place, start + match.start("high"))
    if high < low:
        raise _backwards(kind, match, place, start, end)
    if match["step"] is not None:
        _check_step(kind, match, place, start)
    return range(low, high + 1, int(match["step"] or 1))


def _refuse_other_dialects(item: str, place: str, start: int, end: int) -> None:
    if _RANDOM_ITEM.fullmatch(item):
        raise ItemFault(f'{place}: "{item}" is random', start=start, end=end, hint="an occurrence needs one known time")
    if _QUARTZ_ITEM.fullmatch(item):
        instead = "*" if item == "?" else None
        problem = f'{place}: "{item}" belongs to the Quartz dialect'
        raise ItemFault(problem, start=start, end=end, instead=instead, hint=_QUARTZ_HINT)


def _backwards(kind: FieldKind, match: re.Match[str], place: str, start: int, end: int) -> ItemFault:
    first, last = match["low"], match["high"]
    top, bottom = str(kind.high if kind is not DAY_OF_WEEK else 6), str(kind.low)
    if first.isalpha() or last.isalpha():
        # The hint uses names if the expression does.
        by_number = {str(number): name.lower() for name, number in kind.names.items()}
        top, bottom = by_number[top], by_number[bottom]
    # The user means a range over midnight or the new year. Cron does not read it so; the hint splits the range.
    instead = None if match["step"] else f"{_span(first, top)},{_span(bottom, last)}"
    return ItemFault(f'{place}: the range "{match[0]}" runs backwards', start=start, end=end, instead=instead)


def _span(first: str, last: str) -> str:
    return first if first.lower() == last.lower() else f"{first}-{last}"


def _check_step(kind: FieldKind, match: re.Match[str], place: str, start: int) -> None:
    step_start, step_end = start + match.start("step"), start + match.end("step")
    step = int(match["step"])
    if match["low"] != "*" and match["high"] is None:
        # Vixie cron reads 5/15 as 5, Quartz reads 5-59/15. The user's intention is unknown, so the text is refused.
        raise ItemFault(
            f'{place}: "{match[0]}" steps from a single value',
            start=start,
            end=start + len(match[0]),
            instead=f"{match['low']}-{kind.high if kind is not DAY_OF_WEEK else 6}/{step}",
        )
    check_step(kind, step, place, step_start, step_end, widest=kind.high - kind.low)


_WITH_ZONE: Final = re.compile(r"\s*(?:CRON_TZ|TZ)=(\S+)\s+(\S.*)", re.ASCII | re.DOTALL)


def with_zone_of_expression(given: Any) -> Any:
    """Moves a zone in front of an expression to the field `zone`, for a cron trigger or exclusion.

    Crontabs and Kubernetes write `CRON_TZ=Europe/Rome 0 6 * * *`.

    Raises:
        PydanticCustomError: The field `zone` names another zone.
    """
    expression = given.get("expression") if isinstance(given, dict) else None
    match = _WITH_ZONE.fullmatch(expression) if isinstance(expression, str) else None
    if match is None:
        return given
    if given.get("zone", match[1]) != match[1]:
        raise refused(
            f'"{match[1][:MAX_SHOWN]}" stands before the expression, and zone differs',
            field="zone",
            hint="keep one of them",
        )
    return {**given, "zone": match[1], "expression": match[2]}
