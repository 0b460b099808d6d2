from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from tidegate_pipelines import input_data
from tidegate_pipelines.input_data import SourceMissing, unpacked


def test_given_the_package_then_both_files_lie_ready_with_their_columns(tmp_path: Path) -> None:
    found = unpacked(tmp_path / "source")
    with found.flights.open(encoding="utf-8") as flights, found.weather.open(encoding="utf-8") as weather:
        assert next(flights).startswith("year,month,day,")
        assert next(weather).startswith("origin,year,month,day,hour,")
        assert sum(1 for _ in flights) == 336_776


def test_given_no_package_then_the_error_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(SourceMissing, match=r"tidegate\[demo\]"):
        unpacked(tmp_path)


def test_given_an_edition_without_the_files_then_it_is_as_good_as_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(input_data, "PACKAGE", "json")
    with pytest.raises(SourceMissing):
        unpacked(Path("unused"))
