"""Runs the demo's programs one after the other in one Spark session, as a schedule would, but without a stack.

Started by `test_programs.py`: `run_programs.py <folder> <place of the day>…`. Prints what the programs reported.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

from pyspark.sql import SparkSession

from tidegate_pipelines import delays, join_day, land_flights, land_weather
from tidegate_pipelines.calendar_days import days
from tidegate_pipelines.input_data import unpacked

START = datetime(2026, 3, 3, 5, 0, 0, tzinfo=UTC)
PERIOD = timedelta(seconds=8)

reported: list[tuple[str, str]] = []


def record(dataset: str, partition: str, **_sizes: Any) -> str:
    reported.append((dataset, partition))
    return f"{dataset}/{partition}"


def run(program: Callable[[], None], *arguments: str) -> None:
    sys.argv = ["program", *arguments]
    program()


def main(folder: Path, places: list[int]) -> None:
    SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config(
        "spark.sql.shuffle.partitions", "2"
    ).getOrCreate()
    with ExitStack() as patches:  # There is no gate to report to.
        for module in (land_flights, land_weather, join_day, delays):
            patches.enter_context(patch.object(module, "report_partition", record))
        patches.enter_context(patch.object(join_day, "set_output"))
        run_days(folder, places)
    sys.stdout.write(json.dumps(reported))


def run_days(folder: Path, places: list[int]) -> None:
    source, lake = unpacked(folder / "source"), str(folder / "lake")
    for place in places:
        instant = START + place * PERIOD
        landing = ["--nominal", instant.isoformat(), "--start", START.isoformat(), "--period-s", "8", "--lake", lake]
        run(land_flights.main, *landing, "--source", str(source.flights))
        run(land_weather.main, *landing, "--source", str(source.weather))
        day = days(place + 1)[-1].isoformat()
        run(join_day.main, "--day", day, "--lake", lake)
        run(delays.main, "--day", day, "--lake", lake)


if __name__ == "__main__":
    main(Path(sys.argv[1]), [int(place) for place in sys.argv[2:]])
