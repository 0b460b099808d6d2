"""Independent check: computes the same report from the CSV files without Spark, Parquet and tidegate.

It reads every line with the standard library and shares only the report's form with the programs that it checks.
"""

from __future__ import annotations

import csv
from collections.abc import Collection
from datetime import date
from pathlib import Path

from tidegate_pipelines.delay_report import Delays, Report

UNKNOWN = "NA"


def independent_report(flights: Path, weather: Path, days: Collection[date]) -> Report:
    """Computes departure delays per carrier and origin over the given local days.

    Args:
        flights: CSV with one line per flight.
        weather: CSV with one line per airport and hour.
        days: Local calendar days.
    """
    wanted = {(str(day.year), str(day.month), str(day.day)) for day in days}
    rain = _rain_by_hour(weather, wanted)
    report: dict[tuple[str, str], Delays] = {}
    with flights.open(encoding="utf-8", newline="") as lines:
        for flight in csv.DictReader(lines):
            if _day(flight) not in wanted or flight["dep_delay"] == UNKNOWN:
                continue
            hour = (flight["origin"], flight["time_hour"])
            key = (flight["carrier"], flight["origin"])
            one = Delays(1, int(flight["dep_delay"]), int(rain.get(hour, False)), int(hour not in rain))
            report[key] = report.get(key, Delays()).plus(one)
    return report


def _rain_by_hour(weather: Path, wanted: Collection[tuple[str, str, str]]) -> dict[tuple[str, str], bool]:
    """Returns whether it rained, by airport and UTC hour; hours without data are missing."""
    with weather.open(encoding="utf-8", newline="") as lines:
        return {
            (hour["origin"], hour["time_hour"]): hour["precip"] != UNKNOWN and float(hour["precip"]) > 0
            for hour in csv.DictReader(lines)
            if _day(hour) in wanted
        }


def _day(row: dict[str, str]) -> tuple[str, str, str]:
    return row["year"], row["month"], row["day"]
