"""When the demo's landing schedules fire, and for which days of the data. Pure.

The pipeline turns the n-th instant into the n-th day, so all instants must lie one period apart. Eight seconds do not
divide a minute: `*/8` fires at :56 and then at :00. Up to seven days therefore fit into one minute; more days use ten
seconds, which do divide it.
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
"""The stack's setting: from :56 to :00, the shortest time between two instants that `*/8` names."""


@dataclass(frozen=True, slots=True)
class DemoPlan:
    """The demo's own list of what should happen.

    Attributes:
        days: Days of the data, one for each instant.
        start: Aware UTC instant of the first landing.
        period: Between two landings.
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
        """How many there should be of all four schedules together."""
        return (len(LANDING) + len(DAILY)) * len(self.days)


def plan_from(earliest: datetime, day_count: int) -> DemoPlan:
    """Returns the plan with the first possible start.

    Args:
        earliest: Aware UTC instant before which nothing may fire.
        day_count: How many days, 1 to 364.

    Raises:
        ValueError: There are not so many days.
    """
    wanted = days(day_count)
    period_s = SHORT_PERIOD_S if day_count * SHORT_PERIOD_S <= MINUTE_S else EVEN_PERIOD_S
    start = earliest.replace(microsecond=0) + timedelta(seconds=1)
    # Within a minute there is always a start; the second minute is for the seconds that are left of the first.
    while start.second % period_s or (period_s == SHORT_PERIOD_S and start.second + day_count * period_s > MINUTE_S):
        start += timedelta(seconds=1)
    return DemoPlan(wanted, start, timedelta(seconds=period_s))
