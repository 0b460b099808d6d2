"""A judge that cannot fail is worthless: each fault is invented once, and seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.checkers.runs import judge_blackout, judge_follow_ups, judge_instants, judge_joins, judge_limit
from tests.support.cluster.evidence import ManifestEntry, ProgramRun

NOMINALS = [8_000, 16_000, 24_000]


def a_run(schedule: str, nominal: int, number: int = 1, lasts_ms: int = 500) -> ProgramRun:
    start = nominal + 100
    return ProgramRun(
        run_id=f"0001-{schedule}-{nominal}",
        attempt=1,
        schedule=schedule,
        nominal=nominal,
        correlation=None,
        upstream=None,
        manifest=(),
        pid=number,
        started_at=start,
        started_ns=start * 1_000_000,
        ended_at=start + lasts_ms,
        ended_ns=(start + lasts_ms) * 1_000_000,
    )


def a_join(correlation: str, *sources: tuple[str, ProgramRun]) -> ProgramRun:
    manifest = tuple(
        ManifestEntry(dataset, correlation, f"{source.run_id}/{dataset}/{correlation}/1") for dataset, source in sources
    )
    return replace(a_run("join", int(correlation) * 1_000 + 2_000), correlation=correlation, manifest=manifest)


ALL = [a_run("land", nominal) for nominal in NOMINALS]
WEATHER = [a_run("weather", nominal) for nominal in NOMINALS]
JOINS = [
    a_join(str(nominal // 1_000), ("raw", flights), ("sky", weather))
    for nominal, flights, weather in zip(NOMINALS, ALL, WEATHER, strict=True)
]
SOURCES = {"raw": "land", "sky": "weather"}


@pytest.mark.parametrize(
    ("runs", "kinds"),
    [
        pytest.param(ALL, [], id="all as expected"),
        pytest.param(ALL[1:], ["lost"], id="the first is missing"),
        pytest.param([*ALL, a_run("land", 32_000)], ["extra"], id="an instant that nobody asked for"),
        pytest.param([*ALL, replace(ALL[0], pid=2)], ["doubled"], id="the same attempt twice"),
        pytest.param([*ALL[:2], replace(ALL[2], ended_ns=None)], ["incomplete"], id="no end"),
        pytest.param([*ALL[:2], replace(ALL[2], started_at=23_999)], ["early"], id="a millisecond early"),
    ],
)
def test_given_starts_of_a_time_schedule_then_the_faults_are_named(runs: list[ProgramRun], kinds: list[str]) -> None:
    assert [fault.kind for fault in judge_instants("land", NOMINALS, runs)] == kinds


@pytest.mark.parametrize(
    ("joins", "kinds"),
    [
        pytest.param(JOINS[1:], ["lost"], id="one never came"),
        pytest.param(
            [*JOINS[1:], replace(JOINS[0], manifest=JOINS[0].manifest[:1])], ["wrong_input"], id="half of its inputs"
        ),
    ],
)
def test_given_joins_then_the_faults_are_named(joins: list[ProgramRun], kinds: list[str]) -> None:
    assert [fault.kind for fault in judge_joins("join", SOURCES, [*ALL, *WEATHER, *joins])] == kinds


@pytest.mark.parametrize(
    ("upstreams", "kinds"),
    [pytest.param([run.run_id for run in ALL[1:]], ["lost"], id="one is missing")],
)
def test_given_follow_ups_then_the_faults_are_named(upstreams: list[str], kinds: list[str]) -> None:
    follow_ups = [replace(a_run("report", 50_000 + number), upstream=run) for number, run in enumerate(upstreams)]

    assert [fault.kind for fault in judge_follow_ups("report", "land", [*ALL, *follow_ups])] == kinds


def test_given_overlapping_runs_then_the_limit_was_exceeded_once() -> None:
    runs = [a_run("report", 0), a_run("report", 400), a_run("report", 2_000)]

    assert [fault.kind for fault in judge_limit("report", 1, runs)] == ["overlap"]
    assert judge_limit("report", 2, runs) == []


def test_given_a_start_within_a_blackout_then_it_is_unguarded() -> None:
    faults = judge_blackout("the broker is away", 16_000, 20_000, ALL)

    assert [fault.kind for fault in faults] == ["unguarded"]
