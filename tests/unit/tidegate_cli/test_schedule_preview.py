"""`tidegate schedule next`: what a time trigger will do, of a schedule that exists or of a file."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.unit.tidegate_cli.conftest import FakeApi
from tidegate_cli import main

NIGHTLY = """
kind: schedule
namespace: flights
name: night-load
target: {type: program, program: {type: python, file: jobs/load.py}}
trigger: {type: cron, expression: "30 2 * * *", zone: Europe/Rome, dst_gap: skip}
"""
SPRING = ["--from", "2026-03-28T12:00:00Z", "--count", "1"]


@pytest.fixture
def nightly(tmp_path: Path) -> str:
    path = tmp_path / "nightly.yaml"
    path.write_text(NIGHTLY, encoding="utf-8")
    return str(path)


def test_given_file_then_instants_are_shown_with_what_a_clock_change_leaves_out(
    nightly: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["schedule", "next", "-f", nightly, *SPRING]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()

    assert lines[0].split() == ["SCHEDULE", "INSTANT", "LOCAL", "ZONE", "RESULT", "NOTE"]
    assert "2026-03-29T01:00:00Z" in lines[1]
    assert "skipped/dst_gap" in lines[1]
    assert "Mon 2026-03-30 02:30:00+02:00" in lines[2]
    assert "dst_gap skip" in captured.err


def test_given_schedule_then_its_stored_definition_is_asked(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    trigger = {"type": "every", "period": "1h"}
    target = {"type": "program", "program": {"type": "python", "file": "/a.py"}}
    spec = {"namespace": "flights", "name": "land", "target": target, "trigger": trigger}
    view = {"namespace": "flights", "name": "land", "status": "active", "version": 1, "next": [], "spec": spec}
    api.answers["GET /schedules/flights/land"] = (200, view)

    assert (
        main.run(["schedule", "next", "flights/land", "-o", "json", "--from", "2026-01-01T00:00:00Z", "-c", "2"]) == 0
    )
    shown = json.loads(capsys.readouterr().out)
    assert [line["instant"] for line in shown] == ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"]


@pytest.mark.parametrize(
    "arguments", [[], ["flights/land", "-f", "a.yaml"], ["-f", "none.yaml"], ["flights/land", "--from", "tomorrow"]]
)
def test_given_wrong_arguments_then_usage_is_told(api: FakeApi, arguments: list[str]) -> None:
    view = {"namespace": "flights", "name": "land", "status": "active", "version": 1, "next": [], "spec": {}}
    api.answers["GET /schedules/flights/land"] = (200, view)

    assert main.run(["schedule", "next", *arguments]) == 2


def test_given_a_time_trigger_among_others_then_its_instants_are_shown_with_what_they_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "both.yaml"
    data = "{type: data_partitions, dataset: flights.raw}"
    leaf = NIGHTLY.partition("trigger: ")[2].strip()
    path.write_text(NIGHTLY.replace(leaf, f"{{type: all_of, triggers: [{leaf}, {data}]}}"), encoding="utf-8")
    assert main.run(["schedule", "next", "-f", str(path), "--from", "2026-03-30T12:00:00Z", "--count", "1"]) == 0
    captured = capsys.readouterr()

    assert captured.out.splitlines()[1].split()[1:] == [
        *("2026-03-31T00:30:00Z", "Tue", "2026-03-31", "02:30:00+02:00", "Europe/Rome", "latches", "triggers[0]")
    ]
    assert "triggers[0]: dialect unix5" in captured.err


def a_file(tmp_path: Path, trigger: str) -> str:
    path = tmp_path / "a.yaml"
    target = "{type: program, program: {type: python, file: jobs/load.py}}"
    path.write_text(f"namespace: n\nname: a\ntarget: {target}\ntrigger: {trigger}\n")
    return str(path)


def test_given_max_fires_then_no_more_instants_are_shown_than_are_left(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`next` went on with `fires` where `why` said max_fires_reached."""
    file = a_file(tmp_path, "{type: every, period: 1h, max_fires: 2}")
    assert main.run(["schedule", "next", "-f", file, "--count", "5"]) == 0
    captured = capsys.readouterr()
    assert len(captured.out.splitlines()) == 1 + 2
    assert captured.err == "n/a: max_fires is 2, and 2 of them are left\n"
    spec = {
        "namespace": "n",
        "name": "a",
        "target": {"type": "program", "program": {"type": "python", "file": "/a.py"}},
    }
    spec["trigger"] = {"type": "every", "period": "1h", "max_fires": 4}
    for left in (1, 0):
        view = {"namespace": "n", "name": "a", "status": "active", "version": 1, "fires_left": left, "spec": spec}
        api.answers["GET /schedules/n/a"] = (200, view)
        assert main.run(["schedule", "next", "n/a", "-o", "json"]) == 0
        captured = capsys.readouterr()
        assert len(json.loads(captured.out)) == left
        assert captured.err == f"n/a: max_fires is 4, and {left} of them are left\n"


@pytest.mark.parametrize(
    ("days", "shown", "said"),
    [
        (1, 2, "max_fires is 4, and 2 of them are left"),
        (30, 0, "max_fires is 4, and all fires are used before "),
    ],
)
def test_given_from_in_the_future_then_what_fires_before_it_is_of_max_fires_as_well(
    api: FakeApi, capsys: pytest.CaptureFixture[str], days: int, shown: int, said: str
) -> None:
    program = {"type": "python", "file": "/a.py"}
    spec = {"namespace": "n", "name": "a", "target": {"type": "program", "program": program}}
    begin = datetime.now(UTC)
    start = (begin + timedelta(minutes=1)).isoformat()
    spec["trigger"] = {"type": "every", "period": "12h", "start": start, "max_fires": 4}
    view = {"namespace": "n", "name": "a", "status": "active", "version": 1, "fires_left": 4, "spec": spec}
    api.answers["GET /schedules/n/a"] = (200, view)
    later = (begin + timedelta(days=days)).isoformat()
    assert main.run(["schedule", "next", "n/a", "--from", later, "--count", "5", "-o", "json"]) == 0
    captured = capsys.readouterr()
    assert len(json.loads(captured.out)) == shown
    assert captured.err.startswith(f"n/a: {said}")


def test_given_many_fires_before_from_then_all_of_them_are_of_max_fires(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the first 1,000 were: of 1,500 that had all fired by then 500 were still shown."""
    program = {"type": "python", "file": "/a.py"}
    spec = {"namespace": "n", "name": "a", "target": {"type": "program", "program": program}}
    spec["trigger"] = {"type": "every", "period": "1m", "max_fires": 1_500}
    view = {"namespace": "n", "name": "a", "status": "active", "version": 1, "fires_left": 1_500, "spec": spec}
    api.answers["GET /schedules/n/a"] = (200, view)
    later = (datetime.now(UTC) + timedelta(days=2)).isoformat()
    assert main.run(["schedule", "next", "n/a", "--from", later, "-o", "json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == []
    assert captured.err.startswith("n/a: max_fires is 1500, and all fires are used before ")


def test_given_a_suspended_schedule_then_it_says_that_nothing_starts(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    program = {"type": "python", "file": "/a.py"}
    spec = {"namespace": "n", "name": "a", "target": {"type": "program", "program": program}}
    spec["trigger"] = {"type": "every", "period": "1h"}
    view = {"namespace": "n", "name": "a", "status": "suspended", "mode": "drop", "version": 1, "spec": spec}
    for until, said in (
        (None, "until it is resumed"),
        ("2100-01-01T00:00:00Z", "until 2100-01-01T00:00:00+00:00"),
    ):
        api.answers["GET /schedules/n/a"] = (200, {**view, "until": until})
        assert main.run(["schedule", "next", "n/a"]) == 0
        assert capsys.readouterr().err == f"n/a: is suspended (drop) {said}; it starts nothing before\n"


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_given_a_stream_that_is_closed_then_nobody_reads_it_and_that_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, closed: str
) -> None:
    """`tidegate schedule next -f a.yaml >&-` ended in a traceback."""
    monkeypatch.setattr(sys, closed, None)
    file = a_file(tmp_path, "{type: every, period: 1h, max_fires: 2}")
    assert main.run(["schedule", "next", "-f", file]) == 0


@pytest.mark.parametrize(
    ("trigger", "told"),
    [
        ("{type: every, period: 5s}", "fires every 5s, the minimum period is 10s"),
        ('{type: cron, dialect: quartz, expression: "0 0 0 1 1 ? 2020"}', "names no time in the next ten years"),
        ('{type: cron, dialect: quartz, expression: "0 0 0 1 1 ? 2020"}', "n/a: names no instant from "),
    ],
)
def test_given_a_file_that_an_apply_would_refuse_then_that_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], trigger: str, told: str
) -> None:
    assert main.run(["schedule", "next", "-f", a_file(tmp_path, trigger), "--count", "2"]) == 0
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(("given", "refused"), [([], True), (["--minimum-period", "5s"], False)])
def test_given_a_short_period_then_it_is_judged_by_what_the_cluster_takes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], given: list[str], refused: bool
) -> None:
    """It said that an apply would refuse what a cluster with another setting takes."""
    path = tmp_path / "often.yaml"
    path.write_text(
        NIGHTLY.replace(
            '{type: cron, expression: "30 2 * * *", zone: Europe/Rome, dst_gap: skip}', "{type: every, period: 5s}"
        )
    )
    assert main.run(["schedule", "next", "-f", str(path), "-c", "1", *given]) == 0
    assert ("an apply would be refused" in capsys.readouterr().err) == refused


def test_given_a_minimum_period_that_is_none_then_it_is_a_mistake_of_use(nightly: str) -> None:
    assert main.run(["schedule", "next", "-f", nightly, "--minimum-period", "often"]) == 2


def test_given_files_that_are_wrong_then_each_problem_has_its_file_and_line(
    nightly: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It named neither, of a folder not even the schedule."""
    path = tmp_path / "wrong.yaml"
    path.write_text(NIGHTLY.replace("30 2 * * *", "30 25 * * *").replace("night-load", "other"), encoding="utf-8")
    assert main.run(["schedule", "next", "-f", str(tmp_path)]) == 2
    assert f"{path}:6: schedule flights/other: trigger.expression: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("days_ago", "said"), [(1, "an apply runs it at once"), (8, "warning: trigger.instant: has passed longer ago than")]
)
def test_given_an_instant_that_has_passed_then_it_says_what_an_apply_makes_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], days_ago: int, said: str
) -> None:
    path = tmp_path / "once.yaml"
    instant = (datetime.now(UTC) - timedelta(days=days_ago)).isoformat(timespec="seconds")
    trigger = f'{{type: at, instant: "{instant}"}}'
    path.write_text(NIGHTLY.partition("trigger:")[0] + f"trigger: {trigger}\n", encoding="utf-8")
    assert main.run(["schedule", "next", "-f", str(path)]) == 0
    assert said in capsys.readouterr().err


def test_given_a_flexible_window_then_the_place_of_each_occurrence_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "flexible.yaml"
    path.write_text(NIGHTLY.replace("dst_gap: skip", "flexible: 15m"), encoding="utf-8")
    assert main.run(["schedule", "next", "-f", str(path), "--from", "2026-01-01T00:00:00Z", "-c", "2"]) == 0
    _, *lines = capsys.readouterr().out.splitlines()
    assert ["(flexible)" in line and "starts at 2026-01-0" in line for line in lines] == [True, True]
