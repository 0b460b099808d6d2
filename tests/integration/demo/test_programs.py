"""The demo's PySpark programs on the days of the real data that have traps, against the computation without Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path

import pytest

from tidegate_cli.demo.demo_run import artefacts_in
from tidegate_pipelines.delay_report import differences, read_report
from tidegate_pipelines.independent_report import independent_report

pytest.importorskip("pyspark")
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(300)]

PROGRAMS = Path(__file__).with_name("run_programs.py")
CLOCKS_GO_BACK = 306
"""3 November: the local hour 1 happens twice."""

WEATHER_ENDS = 363
"""30 December: the weather ends in the evening, so that 156 flights have none."""

DATASETS = ("flights.raw", "weather.raw", "flights.joined", "flights.delays")


def test_given_days_with_traps_then_spark_and_the_second_opinion_agree_and_repeats_change_nothing(
    tmp_path: Path,
) -> None:
    places = [CLOCKS_GO_BACK, WEATHER_ENDS, CLOCKS_GO_BACK]
    done = subprocess.run(
        [sys.executable, str(PROGRAMS), str(tmp_path), *map(str, places)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable},
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    days = [date(2013, 11, 3), date(2013, 12, 30)]
    report = read_report(tmp_path / "lake", days)
    expected = independent_report(tmp_path / "source" / "flights.csv", tmp_path / "source" / "weather.csv", days)
    assert differences(expected, report) == []
    assert sum(delays.flights_without_weather for delays in report.values()) > 0
    assert artefacts_in(tmp_path / "lake") == {(name, day.isoformat()): 1 for name in DATASETS for day in days}
    assert json.loads(done.stdout) == [
        [name, day] for day in ("2013-11-03", "2013-12-30", "2013-11-03") for name in DATASETS
    ]
