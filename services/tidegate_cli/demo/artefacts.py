"""Counts what the pipeline has left on disk."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tidegate_cli.demo.accounting import Artefacts

DAY_PREFIX = "day="


def artefacts_in(lake: Path) -> Artefacts:
    """Returns the number of Parquet files of each dataset and day; what is still being written is not among them."""
    parts = lake.glob(f"[!.]*/{DAY_PREFIX}*/[!.]*.parquet")
    return Counter((part.parent.parent.name, part.parent.name.removeprefix(DAY_PREFIX)) for part in parts)
