"""Days that a month has at most one of: its last, the nearest weekday to a date, the third Friday (Quartz, SEMANTICS 1.1)."""

from __future__ import annotations

from calendar import monthrange
from datetime import date
from typing import Literal, NamedTuple, TypeAlias

SpecialKind: TypeAlias = Literal["last", "last_weekday", "nearest_weekday", "nth_of_week", "last_of_week"]

_SUNDAY, _SATURDAY = 0, 6


class SpecialDay(NamedTuple):
    """One day of some months.

    Attributes:
        kind: `L` and `L-n`, `LW` and `L-nW`, `nW`, `n#k`, `nL`.
        number: Days before the last (`last`, `last_weekday`), the date (`nearest_weekday`), or the weekday, 0 to 6 from Sunday.
        nth: For `nth_of_week`: 1 to 5.
    """

    kind: SpecialKind
    number: int = 0
    nth: int = 0

    def day_in(self, year: int, month: int) -> int | None:
        """Returns the day of that month, or None where the month has none."""
        length = monthrange(year, month)[1]
        match self.kind:
            case "last":
                return length - self.number if self.number < length else None
            case "last_weekday":
                return _nearest_weekday(year, month, length - self.number, length) if self.number < length else None
            case "nearest_weekday":
                # A month without the date has no weekday near it either: 31W does not mean 30 June.
                return _nearest_weekday(year, month, self.number, length) if self.number <= length else None
            case "nth_of_week":
                day = 1 + (self.number - _weekday(year, month, 1)) % 7 + 7 * (self.nth - 1)
                return day if day <= length else None
            case "last_of_week":
                return length - (_weekday(year, month, length) - self.number) % 7


def _nearest_weekday(year: int, month: int, day: int, length: int) -> int:
    """Never in another month: 1W is Monday the 3rd when the 1st is a Saturday."""
    weekday = _weekday(year, month, day)
    if weekday == _SATURDAY:
        return day - 1 if day > 1 else day + 2
    if weekday == _SUNDAY:
        return day + 1 if day < length else day - 2
    return day


def _weekday(year: int, month: int, day: int) -> int:
    return date(year, month, day).isoweekday() % 7
