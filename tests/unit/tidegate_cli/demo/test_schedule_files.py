from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from tidegate_cli.demo.demo_plan import DAILY, LANDING, MINIMUM_PERIOD_MS, NAMESPACE, plan_from
from tidegate_cli.demo.schedule_files import filled_in, schedule_documents
from tidegate_core.language.definitions.schedule_validation import check_schedule
from tidegate_core.language.formats.parsing import parse_schedule
from tidegate_core.language.values.instants import from_datetime
from tidegate_pipelines.input_data import Source

NOW = datetime(2026, 3, 3, 5, 0, 0, tzinfo=UTC)
PLAN = plan_from(NOW, 3)
SOURCE = Source(Path('/data/"odd" folder/flights.csv'), Path("/data/weather.csv"))


@pytest.mark.parametrize("name", [*LANDING, *DAILY])
def test_given_a_schedule_of_the_demo_then_it_is_valid_and_its_program_is_there(name: str) -> None:
    (document,) = schedule_documents((name,), PLAN, SOURCE, Path("/lake"))
    spec = parse_schedule(document)
    assert (spec.namespace, spec.name) == (NAMESPACE, name)
    assert check_schedule(spec, now=from_datetime(NOW), minimum_period_ms=MINIMUM_PERIOD_MS) == ()
    assert Path(spec.program.file).is_file()
    assert "{{" not in spec.canonical_json()


def test_given_a_path_with_quotes_then_it_arrives_as_it_is() -> None:
    (document,) = schedule_documents(("land-flights",), PLAN, SOURCE, Path("/lake"))
    arguments = document["target"]["program"]["args"]
    assert str(SOURCE.flights) in arguments
    assert "${nominal}" in arguments


def test_given_a_place_without_a_value_then_it_is_an_error() -> None:
    with pytest.raises(KeyError):
        filled_in({"file": ["{{unknown}}"]}, {})


def test_given_numbers_and_nothing_then_they_pass() -> None:
    assert filled_in({"count": 1, "none": None, "text": "{{a}}-{{a}}"}, {"a": "x"}) == {
        "count": 1,
        "none": None,
        "text": "x-x",
    }
