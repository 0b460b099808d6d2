"""Arguments of both landing programs, which their schedules pass."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

from tidegate_pipelines.calendar_days import day_of


@dataclass(frozen=True, slots=True)
class LandingArguments:
    """Day to land, source file and target lake."""

    day: date
    source: Path
    lake: Path


def landing_arguments(argv: Sequence[str] | None = None) -> LandingArguments:
    """Parses the command line, and computes the day from its instants.

    Args:
        argv: Arguments; the process's own by default.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--nominal", type=datetime.fromisoformat, required=True, help="instant of this occurrence")
    parser.add_argument("--start", type=datetime.fromisoformat, required=True, help="instant of the first occurrence")
    parser.add_argument("--period-s", type=float, required=True, help="seconds between two occurrences")
    parser.add_argument("--source", type=Path, required=True, help="the CSV file with all days")
    parser.add_argument("--lake", type=Path, required=True, help="folder of all datasets")
    given = parser.parse_args(argv)
    day = day_of(given.nominal, given.start, timedelta(seconds=given.period_s))
    return LandingArguments(day, given.source, given.lake)
