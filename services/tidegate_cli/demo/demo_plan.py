"""Plans when the demo's landing schedules fire, and for which days of the data. Pure functions.

The pipeline maps the n-th instant to the n-th day, so all instants must be one period apart. Eight seconds do not divide a
minute: `*/8` fires at :56 and then at :00. So up to seven days fit into one minute; for more days the period is ten seconds,
which divides a minute.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta

from tidegate_pipelines.calendar_days import days

NAMESPACE = "flights"
LANDING = ("land-flights", "land-weather")
"""Schedules that fire at instants."""

DAILY = ("join-day", "delays")
"""Schedules that events fire, once for each day."""

DATASET_OF = {
    "land-flights": "flights.raw",
    "land-weather": "weather.raw",
    "join-day": "flights.joined",
    "delays": "flights.delays",
}
MINUTE_S = 60
SHORT_PERIOD_S = 8
EVEN_PERIOD_S = 10
MINIMUM_PERIOD_MS = 4_000
"""Setting of the stack: shortest time between two instants of `*/8`, from :56 to :00."""


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """Expected occurrences of the demo.

    Attributes:
        days: Days of the data, one for each instant.
        start: Instant of the first landing, aware UTC.
        period: Time between two landings.
    """

    days: tuple[date, ...]
    start: datetime
    period: timedelta

    @property
    def end(self) -> datetime:
        return self.start + len(self.days) * self.period

    @property
    def expression(self) -> str:
        """The cron expression, seconds first."""
        return f"*/{self.period.seconds} * * * * *"

    @property
    def instants(self) -> tuple[datetime, ...]:
        return tuple(self.start + place * self.period for place in range(len(self.days)))

    @property
    def occurrences(self) -> int:
        """Expected number of occurrences of all four schedules."""
        return (len(LANDING) + len(DAILY)) * len(self.days)


def plan_from(earliest: datetime, day_count: int) -> DemoPlan:
    """Returns the plan with the first possible start.

    Args:
        earliest: Aware UTC instant before which nothing may fire.
        day_count: Number of days, 1 to 364.

    Raises:
        ValueError: The data have fewer days.
    """
    wanted = days(day_count)
    period_s = SHORT_PERIOD_S if day_count * SHORT_PERIOD_S <= MINUTE_S else EVEN_PERIOD_S
    start = earliest.replace(microsecond=0) + timedelta(seconds=1)
    # Each minute has a possible start, so the search ends in this minute or the next.
    while start.second % period_s or (period_s == SHORT_PERIOD_S and start.second + day_count * period_s > MINUTE_S):
        start += timedelta(seconds=1)
    return DemoPlan(wanted, start, timedelta(seconds=period_s))
