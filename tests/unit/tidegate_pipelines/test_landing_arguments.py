from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from tidegate_pipelines.landing_arguments import landing_arguments

ARGUMENTS = ["--start", "2026-03-03T05:00:00Z", "--period-s", "8", "--source", "flights.csv", "--lake", "lake"]


def test_given_the_arguments_of_a_schedule_then_they_name_a_day() -> None:
    arguments = landing_arguments(["--nominal", "2026-03-03T05:00:16Z", *ARGUMENTS])
    assert (arguments.day, arguments.source, arguments.lake) == (date(2013, 1, 3), Path("flights.csv"), Path("lake"))


def test_given_no_instant_then_the_usage_is_printed() -> None:
    with pytest.raises(SystemExit):
        landing_arguments(ARGUMENTS)
