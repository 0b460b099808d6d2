"""Folders of the pipeline's Parquet files, and the publication of a data partition, which may be repeated safely.

`<lake>/<dataset>/day=<day>/part-….parquet`, one file a day: a day has about 900 flights.
"""

from __future__ import annotations

import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame

LANDING = ".landing"
"""Folder for files being written. It is inside the lake, because a rename must stay on one file system."""


@dataclass(frozen=True, slots=True)
class Published:
    """Facts for a program's report of a data partition that it wrote."""

    folder: Path
    rows: int
    bytes: int


def partition_folder(lake: Path, dataset: str, day: str) -> Path:
    return lake / dataset / f"day={day}"


def publish(frame: DataFrame, lake: Path, dataset: str, day: str) -> Published:
    """Writes a day of a dataset to another folder and then renames it into place: readers see all of it or none.

    A later attempt replaces the data of an earlier one, so a retry results in the same single data partition.
    """
    landing = lake / LANDING / f"{dataset}-{day}-{uuid.uuid4().hex}"
    frame.coalesce(1).write.parquet(str(landing))
    rows = frame.sparkSession.read.parquet(str(landing)).count()
    size = sum(part.stat().st_size for part in landing.glob("*.parquet"))
    target = partition_folder(lake, dataset, day)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        shutil.rmtree(target)
    landing.rename(target)
    return Published(target, rows, size)
