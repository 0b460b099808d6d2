"""Times of day as a field of a document: `HH:MM` outside, seconds since midnight inside."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from tidegate_core.language.values.problems import refused

_TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?", re.ASCII)


def seconds_of(value: Any) -> int:
    match = _TIME_OF_DAY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        hint = 'write it in quotes, such as "22:00": some readers of YAML take 22:00 for a number'
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
