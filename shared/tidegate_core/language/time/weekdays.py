"""Days of the week as a field of a document: names, ranges and lists of them outside, one canonical list inside."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, WithJsonSchema

from tidegate_core.language.values.problems import did_you_mean, refused

WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS: Final = {name: number for names in (WEEKDAYS, _FULL) for number, name in enumerate(names)}
_WORDS_MAX: Final = 32
DAY_SECONDS: Final = 86_400
_EPOCH_WEEKDAY: Final = WEEKDAYS.index("thu")


def weekday_of(wall: int) -> str:
    """Returns the day's name of a local time in seconds since 1970-01-01T00:00."""
    return WEEKDAYS[(wall // DAY_SECONDS + _EPOCH_WEEKDAY) % 7]


def _days_of(given: Any) -> tuple[str, ...]:
    words = re.split(r"[\s,]+", given.strip()) if isinstance(given, str) else given
    if not isinstance(words, list | tuple) or not 1 <= len(words) <= _WORDS_MAX or words == [""]:
        raise refused("names no days", hint="write days such as mon-fri, or a list such as [sat, sun]")
    numbers = {number for word in words for number in _numbers_of(word)}
    return tuple(WEEKDAYS[number] for number in sorted(numbers))


def _numbers_of(word: Any) -> list[int]:
    """Returns the days of one name or range; `fri-mon` goes over the end of the week."""
    ends = word.strip().lower().split("-") if isinstance(word, str) else []
    for end in ends:
        if end not in _NUMBERS:
            raise refused(f'"{end[:16]}" is no day of the week', hint=did_you_mean(end[:16], WEEKDAYS))
    if len(ends) not in {1, 2}:
        raise refused("is neither a day of the week nor a range of them", hint="write days such as mon or mon-fri")
    first, last = _NUMBERS[ends[0]], _NUMBERS[ends[-1]]
    return [(first + step) % 7 for step in range((last - first) % 7 + 1)]


Weekdays = Annotated[
    tuple[str, ...],
    BeforeValidator(_days_of),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}],
            "examples": ["mon-fri", ["sat", "sun"]],
        }
    ),
]
"""Days of the week as a field: `mon-fri`, `"sat, sun"`, `[mon, wed, fri]`, full names too; in any case of letters."""
