from __future__ import annotations

from pathlib import Path

from tidegate_cli.demo.demo_run import artefacts_in


def test_given_a_lake_then_only_published_parquet_counts(tmp_path: Path) -> None:
    for file in (
        "flights.raw/day=2013-01-01/part-0.snappy.parquet",
        "flights.raw/day=2013-01-01/.part-0.snappy.parquet.crc",
        "flights.raw/day=2013-01-01/_SUCCESS",
        "flights.raw/day=2013-01-02/part-0.snappy.parquet",
        "flights.raw/day=2013-01-02/part-1.snappy.parquet",
        ".landing/flights.raw-2013-01-03-x/part-0.snappy.parquet",
    ):
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    assert artefacts_in(tmp_path) == {("flights.raw", "2013-01-01"): 1, ("flights.raw", "2013-01-02"): 2}


def test_given_no_lake_then_there_is_nothing(tmp_path: Path) -> None:
    assert artefacts_in(tmp_path / "gone") == {}
