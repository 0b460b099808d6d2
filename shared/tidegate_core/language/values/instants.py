"""Instants in whole milliseconds since the Unix epoch, UTC. In documents they are RFC 3339 texts."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

from tidegate_core.language.values.problems import refused

Instant: TypeAlias = int
"""Milliseconds since 1970-01-01T00:00:00Z; 0 to `LATEST_INSTANT`."""

LATEST_INSTANT: Instant = 9_999_999_999_999
"""November 2286: the last instant of 13 digits, the width in a position's text and in a timer row's slot."""

TEN_YEARS_MS = 3653 * 86_400_000
"""Horizon of definitions and messages. Ten calendar years have at most three leap days."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_RFC_3339 = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d{1,9})?(?P<offset>[Zz]|[+-]\d{2}:\d{2})?", re.ASCII
)


def parse_instant(text: str) -> Instant:
    """Returns the instant that an RFC 3339 text names.

    Args:
        text: Date, time and offset, such as `2026-11-20T22:00:00+01:00`. Fractions finer than a millisecond are
            rounded up, so that nothing happens before the requested time.

    Raises:
        ValueError: The text is not RFC 3339, has no offset, names no existing date, or is outside of 1970 to 2286. The
            error's text says which.
    """
    match = _RFC_3339.fullmatch(text)
    if match is None:
        raise ValueError("is not an RFC 3339 time such as 2026-11-20T22:00:00Z")
    if match["offset"] is None:
        raise ValueError("has no offset; end it with Z or with an offset such as +01:00")
    try:
        moment = datetime.fromisoformat(text.upper())
    except ValueError as error:
        raise ValueError(f"names no date and time that exists ({error})") from error
    return from_datetime(moment)


def from_datetime(moment: datetime) -> Instant:
    """Returns the instant of an aware datetime, rounded up to a millisecond.

    Raises:
        ValueError: The datetime is naive, or outside of 1970 to 2286.
    """
    if moment.tzinfo is None:
        raise ValueError("has no offset; end it with Z or with an offset such as +01:00")
    instant = -((_EPOCH - moment) // _MILLISECOND)
    if not 0 <= instant <= LATEST_INSTANT:
        raise ValueError("lies outside of 1970 to 2286")
    return instant


def as_datetime(instant: Instant) -> datetime:
    return _EPOCH + timedelta(milliseconds=instant)


def format_instant(instant: Instant) -> str:
    """Returns RFC 3339 in UTC: a whole second has no fraction, other instants have three digits."""
    precision = "milliseconds" if instant % 1000 else "seconds"
    return f"{as_datetime(instant).replace(tzinfo=None).isoformat(timespec=precision)}Z"


def _instant_of(value: Any) -> Instant:
    if not isinstance(value, str):
        raise refused("is not a time", hint="write an RFC 3339 text such as 2026-11-20T22:00:00Z")
    try:
        return parse_instant(value)
    except ValueError as error:
        raise refused(f'"{value[:64]}" {error}') from error


InstantField = Annotated[
    int,
    BeforeValidator(_instant_of),
    PlainSerializer(format_instant, return_type=str),
    WithJsonSchema({"type": "string", "format": "date-time", "examples": ["2026-11-20T22:00:00Z"]}),
]
"""An instant as a field: RFC 3339 with an offset in documents, milliseconds in the program."""
