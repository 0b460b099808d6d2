"""Fields for a time of day and for days of the week.

A time of day is `HH:MM` in documents and seconds since midnight in the program. Days are names, ranges or lists of them in
documents, and one canonical list in the program.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from tidegate_core.language.values.problems import did_you_mean, refused

_TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?", re.ASCII)


def seconds_of(value: Any) -> int:
    match = _TIME_OF_DAY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        hint = 'write it in quotes, such as "22:00": some YAML readers take 22:00 for a number'
        raise refused("is not a time of day from 00:00 to 23:59", hint="" if isinstance(value, str) else hint)
    return int(match[1]) * 3600 + int(match[2]) * 60 + int(match[3] or 0)


def time_text(seconds: int) -> str:
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
    return f"{text}:{seconds % 60:02d}" if seconds % 60 else text


TimeOfDay = Annotated[
    int,
    BeforeValidator(seconds_of),
    PlainSerializer(time_text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": "^([01]\\d|2[0-3]):[0-5]\\d(:[0-5]\\d)?$", "examples": ["22:00"]}),
]


WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_FULL: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS: Final = {name: number for names in (WEEKDAYS, _FULL) for number, name in enumerate(names)}
_WORDS_MAX: Final = 32
DAY_SECONDS: Final = 86_400
_EPOCH_WEEKDAY: Final = WEEKDAYS.index("thu")


def weekday_of(wall: int) -> str:
    """Returns the weekday of a local time in seconds since 1970-01-01T00:00."""
    return WEEKDAYS[(wall // DAY_SECONDS + _EPOCH_WEEKDAY) % 7]


def _days_of(given: Any) -> tuple[str, ...]:
    words = re.split(r"[\s,]+", given.strip()) if isinstance(given, str) else given
    if not isinstance(words, list | tuple) or not 1 <= len(words) <= _WORDS_MAX or words == [""]:
        raise refused("names no days", hint="write days such as mon-fri, or a list such as [sat, sun]")
    numbers = {number for word in words for number in _numbers_of(word)}
    return tuple(WEEKDAYS[number] for number in sorted(numbers))


def _numbers_of(word: Any) -> list[int]:
    """Returns the days of one name or range. The range `fri-mon` crosses the end of the week."""
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
"""Days of the week as a field: `mon-fri`, `"sat, sun"`, `[mon, wed, fri]`, or full names, in upper or lower case."""
