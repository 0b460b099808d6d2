from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pyarrow
import pyarrow.parquet as parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_pipelines.delay_report import Delays, differences, ranked, read_report, report_of, write_report

FIRST, SECOND = date(2013, 1, 1), date(2013, 1, 2)


def row(carrier: str = "UA", origin: str = "EWR", flights: int = 1, delay_minutes: int = 0) -> dict[str, object]:
    return {
        "carrier": carrier,
        "origin": origin,
        "flights": flights,
        "delay_minutes": delay_minutes,
        "flights_in_rain": 0,
        "flights_without_weather": 0,
    }


ROWS = st.lists(
    st.builds(
        row,
        st.sampled_from(["UA", "AA"]),
        st.sampled_from(["EWR", "JFK"]),
        st.integers(min_value=0, max_value=10**6),
        st.integers(min_value=-(10**6), max_value=10**6),
    ),
    max_size=20,
)


def published(lake: Path, day: date, rows: list[dict[str, object]], part: str = "part-0.parquet") -> None:
    folder = lake / "flights.delays" / f"day={day.isoformat()}"
    folder.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / part)


@given(rows=ROWS)
def test_given_days_in_any_order_then_the_report_is_the_same(rows: list[Mapping[str, object]]) -> None:
    assert report_of(rows) == report_of(reversed(rows))


@given(rows=ROWS)
def test_given_any_rows_then_no_flight_is_lost_in_the_sum(rows: list[Mapping[str, object]]) -> None:
    total = sum(delays.flights for delays in report_of(rows).values())
    assert total == sum(int(str(one["flights"])) for one in rows)


def test_given_published_days_then_the_report_reads_the_wanted_ones(tmp_path: Path) -> None:
    published(tmp_path, FIRST, [row(delay_minutes=5)])
    published(tmp_path, SECOND, [row(delay_minutes=7), row("AA")])
    published(tmp_path, date(2013, 1, 3), [row("DL")])
    report = read_report(tmp_path, [FIRST, SECOND])
    assert report == {("UA", "EWR"): Delays(2, 12, 0, 0), ("AA", "EWR"): Delays(1, 0, 0, 0)}


def test_given_a_day_that_was_not_published_then_it_is_named(tmp_path: Path) -> None:
    published(tmp_path, FIRST, [row()])
    with pytest.raises(FileNotFoundError, match="2013-01-02"):
        read_report(tmp_path, [FIRST, SECOND])


def test_given_a_report_then_it_is_written_with_the_largest_mean_delay_first(tmp_path: Path) -> None:
    report = report_of([row("AA", flights=2, delay_minutes=20), row("UA", flights=1, delay_minutes=15)])
    write_report(report, tmp_path / "report.parquet")
    rows = parquet.ParquetFile(tmp_path / "report.parquet").read().to_pylist()
    assert [one["carrier"] for one in rows] == ["UA", "AA"]


def test_given_equal_means_then_the_order_is_by_name() -> None:
    report = report_of([row("UA"), row("AA"), row("AA", "JFK")])
    assert [key for key, _ in ranked(report)] == [("AA", "EWR"), ("AA", "JFK"), ("UA", "EWR")]


def test_given_equal_reports_then_there_is_no_difference() -> None:
    assert differences(report_of([row(), row("AA")]), report_of([row("AA"), row()])) == []


def test_given_reports_that_differ_then_each_row_is_named_with_both_values() -> None:
    expected, found = report_of([row(delay_minutes=5), row("AA")]), report_of([row(delay_minutes=6), row("DL")])
    sentences = differences(expected, found)
    assert [sentence.partition(":")[0] for sentence in sentences] == ["AA from EWR", "DL from EWR", "UA from EWR"]
    assert "delay_minutes=5" in sentences[2]
    assert "delay_minutes=6" in sentences[2]


def test_given_a_number_that_is_not_whole_then_it_is_an_error() -> None:
    """A null or a float would mean that the programs and this report do not agree on the columns."""
    with pytest.raises(TypeError):
        report_of([{**row(), "delay_minutes": None}])


def test_given_no_flights_then_the_mean_is_zero() -> None:
    assert Delays().mean_minutes == 0
