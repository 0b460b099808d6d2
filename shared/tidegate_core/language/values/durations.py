"""Durations in whole milliseconds. Users write `90s`, `15m`, `4h`, `7d`, `1h30m` or ISO 8601; the stored form is canonical."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from tidegate_core.language.values.problems import refused

Duration: TypeAlias = int
"""Milliseconds, 0 to `LONGEST_DURATION_MS`."""

LONGEST_DURATION_MS: Duration = 3653 * 86_400_000
"""Ten years, the horizon of all definitions and messages."""

_UNITS_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_PARTS = re.compile(r"(\d{1,15})(ms|d|h|m|s)", re.ASCII)
_TEXT = re.compile(r"(?:\d{1,15}d)?(?:\d{1,15}h)?(?:\d{1,15}m(?!s))?(?:\d{1,15}s)?(?:\d{1,15}ms)?", re.ASCII)
_ISO_8601 = re.compile(
    r"P(?:(?P<w>\d{1,9})W)?(?:(?P<d>\d{1,9})D)?"
    r"(?:T(?:(?P<h>\d{1,9})H)?(?:(?P<m>\d{1,12})M)?(?:(?P<s>\d{1,12})(?:\.(?P<f>\d{1,3}))?S)?)?",
    re.ASCII,
)
_ISO_YEARS_OR_MONTHS = re.compile(r"P\d+[YM].*|P(?:\d+[WD])*\d+[YM].*", re.ASCII)


def parse_duration(text: str) -> Duration:
    """Returns the milliseconds of a duration's text.

    Raises:
        ValueError: The text is no duration, or is longer than ten years. The error's text says which.
    """
    compact = text.strip()
    if compact[:1] == "P":
        milliseconds = _iso_8601_ms(compact)
    elif compact and _TEXT.fullmatch(compact):
        milliseconds = sum(int(number) * _UNITS_MS[unit] for number, unit in _PARTS.findall(compact))
    else:
        raise ValueError("is not a duration such as 90s, 15m, 4h, 7d or 1h30m")
    if milliseconds > LONGEST_DURATION_MS:
        raise ValueError("is longer than ten years")
    return milliseconds


def _iso_8601_ms(text: str) -> Duration:
    if _ISO_YEARS_OR_MONTHS.fullmatch(text):
        raise ValueError("counts years or months, whose length varies; write days, such as 30d")
    match = _ISO_8601.fullmatch(text)
    if match is None or text.endswith("T") or text == "P":
        raise ValueError("is not an ISO 8601 duration such as PT90M")
    parts = {unit: int(number) for unit, number in match.groupdict().items() if number is not None and unit != "f"}
    weeks_ms = parts.pop("w", 0) * 7 * _UNITS_MS["d"]
    fraction_ms = int((match["f"] or "0").ljust(3, "0"))
    return weeks_ms + fraction_ms + sum(number * _UNITS_MS[unit] for unit, number in parts.items())


def format_duration(milliseconds: Duration) -> str:
    """Returns the canonical text: one number in the largest unit that divides the duration; `0s` for 0."""
    if milliseconds == 0:
        return "0s"
    for unit, unit_ms in _UNITS_MS.items():
        if milliseconds % unit_ms == 0:
            return f"{milliseconds // unit_ms}{unit}"
    raise ValueError(f"{milliseconds} is not a whole number of milliseconds")


def duration_of(value: Any) -> Duration:
    if not isinstance(value, str):
        # A number without a unit could mean seconds or milliseconds.
        raise refused("is not a duration", hint="write a text with a unit, such as 90s, 15m, 4h or 7d")
    try:
        return parse_duration(value)
    except ValueError as error:
        raise refused(f'"{value[:64]}" {error}') from error


DurationField = Annotated[
    int,
    BeforeValidator(duration_of),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "examples": ["90s", "15m", "4h", "7d", "1h30m", "PT90M"]}),
]
"""A duration as a field: a text with units in documents, milliseconds in the program."""

NO_END: Duration = 0
"""Value of an `EndlessDurationField` that never ends, written `none`."""


def _endless_of(value: Any) -> Duration:
    if value == "none":
        return NO_END
    milliseconds = duration_of(value)
    if milliseconds == NO_END:
        raise refused("has to be above 0", hint="write none for one that never ends")
    return milliseconds


def is_read_as_duration(notes: Iterable[Any]) -> bool:
    """Whether a field with these annotations is written with units. Error texts then show its bounds with units as well."""
    return any(getattr(note, "func", None) in (duration_of, _endless_of) for note in notes)


EndlessDurationField = Annotated[
    int,
    BeforeValidator(_endless_of),
    PlainSerializer(lambda duration: "none" if duration == NO_END else format_duration(duration), return_type=str),
    WithJsonSchema({"type": "string", "examples": ["90s", "24h", "none"]}),
]
"""A duration, or `none` for a duration that never ends (`NO_END`)."""
