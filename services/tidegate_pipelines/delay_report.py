"""The demo's report: departure delays per carrier and origin, summed over the days; and the comparison of two reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import date
from pathlib import Path
from typing import Self, TypeAlias

import pyarrow
import pyarrow.parquet as parquet

DATASET = "flights.delays"


@dataclass(frozen=True, slots=True)
class Delays:
    """Departed flights of one carrier from one airport.

    Attributes:
        flights: Number of departed flights.
        delay_minutes: Sum of their departure delays; early departures count below zero.
        flights_in_rain: Flights in an hour with measured rain.
        flights_without_weather: Flights in an hour without weather data.
    """

    flights: int = 0
    delay_minutes: int = 0
    flights_in_rain: int = 0
    flights_without_weather: int = 0

    def plus(self, other: Delays) -> Delays:
        return Delays(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def mean_minutes(self) -> float:
        """Mean departure delay in minutes; 0 without flights."""
        return self.delay_minutes / self.flights if self.flights else 0.0

    @classmethod
    def of(cls, row: Mapping[str, object]) -> Self:
        return cls(**{field.name: _whole(row[field.name]) for field in fields(cls)})


Report: TypeAlias = Mapping[tuple[str, str], Delays]
"""Delays by carrier and origin."""


def report_of(rows: Iterable[Mapping[str, object]]) -> Report:
    """Adds up rows with carrier, origin and the fields of `Delays`."""
    report: dict[tuple[str, str], Delays] = {}
    for row in rows:
        key = (str(row["carrier"]), str(row["origin"]))
        report[key] = report.get(key, Delays()).plus(Delays.of(row))
    return report


def read_report(lake: Path, days: Sequence[date]) -> Report:
    """Adds up the data that the `delays` program published for the days.

    Raises:
        FileNotFoundError: A day was not published.
    """
    folders = [lake / DATASET / f"day={day.isoformat()}" for day in days]
    parts = [part for folder in folders for part in _parts(folder)]
    return report_of(row for part in parts for row in parquet.ParquetFile(part).read().to_pylist())


def write_report(report: Report, path: Path) -> None:
    """Writes the report as Parquet, largest mean delay first."""
    rows = [{"carrier": carrier, "origin": origin, **asdict(delays)} for (carrier, origin), delays in ranked(report)]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)


def ranked(report: Report) -> list[tuple[tuple[str, str], Delays]]:
    """Returns the report's rows by mean delay, the largest first, then by name."""
    return sorted(report.items(), key=lambda row: (-row[1].mean_minutes, row[0]))


def differences(expected: Report, found: Report) -> list[str]:
    """Returns one sentence for each row in which the reports differ; empty if they are equal."""
    sentences = []
    for key in sorted(expected.keys() | found.keys()):
        ours, theirs = expected.get(key), found.get(key)
        if ours != theirs:
            sentences.append(f"{key[0]} from {key[1]}: the pipeline says {theirs}, the independent computation {ours}")
    return sentences


def _parts(folder: Path) -> list[Path]:
    parts = sorted(folder.glob("*.parquet"))
    if not parts:
        raise FileNotFoundError(f"{folder} holds no Parquet; the day was not published")
    return parts


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r} is no whole number")
    return value
