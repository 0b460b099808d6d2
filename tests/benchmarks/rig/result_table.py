"""Results as a table for people, in Markdown; the columns of `COMMON` first, what only one workload has behind them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tests.benchmarks.rig.results import Result

COMMON = {
    "delivered": "delivered",
    "per_s": "per s",
    "late_p50_ms": "late p50 ms",
    "late_p99_ms": "p99 ms",
    "late_max_ms": "max ms",
    "drained_s": "drained s",
    "cpu_s": "CPU s",
    "cpu_us_each": "CPU µs each",
    "write_units_each": "write units each",
    "read_units_each": "read units each",
    "rss_mib": "RSS MiB",
}
"""Figures that have a column of their own, with its head."""
LEFT_OUT = frozenset({"write_units", "read_units"})
"""In the JSON lines alone: the column beside says it for each."""


def table(results: Sequence[Result]) -> list[str]:
    """Returns the lines of the table, sorted as the results are."""
    heads = ["workload", *COMMON.values(), "more", "load", "revision", "date"]
    rows = [_row(result) for result in results]
    return [_line(heads), _line(["---"] * len(heads)), *map(_line, rows)]


def shown(value: float | None) -> str:
    """Returns a figure as a person wants it; `-` where nothing was measured."""
    if value is None:
        return "-"
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _row(result: Result) -> list[str]:
    figures = dict(result.figures)
    common = [shown(figures.pop(name, None)) for name in COMMON]
    more = ", ".join(f"{name} {shown(value)}" for name, value in figures.items() if name not in LEFT_OUT)
    load = f"{result.load_before:g} to {result.load_after:g}"
    size = "" if result.size == "full" else " (smoke)"
    return [result.name + size, *common, more, load, result.revision, result.at[:10]]


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
