"""`tidegate simulate`: what it prints, and what it says of files that are wrong."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from tidegate_cli import main
from tidegate_core.language.values.instants import parse_instant
from tidegate_simulator import PlannedRun, happenings_of

SCHEDULES = """
kind: schedule
namespace: flights
name: load
target: {type: program, program: {type: python, file: jobs/load.py}}
trigger: {type: cron, expression: "0 */2 * * *", zone: Europe/Rome}
---
kind: schedule
namespace: flights
name: join
target: {type: program, program: {type: python, file: jobs/join.py}}
trigger:
  type: all_of
  correlate: data_partition
  triggers:
    - {type: data_partitions, dataset: flights.raw, count: 1}
    - {type: data_partitions, dataset: weather.raw, count: 1}
constraints:
  - {type: time_window, opens: "06:00", closes: "22:00", zone: Europe/Rome}
"""
EVENT = '"type": "data.partition", "namespace": "flights", "partition": "2026-01-01"'
REPEATED = '{"at": "2026-01-01T00:00:00Z", "every": "1h", "type": "custom.a", "namespace": "flights", "data": DATA}'
EVENTS = f"""
{{"at": "2026-01-01T03:00:00Z", {EVENT}, "dataset": "flights.raw"}}
{{"at": "2026-01-01T04:00:00Z", {EVENT}, "dataset": "weather.raw"}}
{{"at": "2026-01-02T04:00:00Z", {EVENT}, "dataset": "weather.raw"}}
"""
RUNS = '{"schedule": "flights/load", "duration": "90m"}\n'
SPAN = ["--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T06:00:00Z"]

TABLE = """\
SCHEDULE                   SCHEDULED                      ZONE         RESULT     WAITED FOR         STARTED               ENDED                 REMARK
flights/load               Thu 2026-01-01 02:00:00+01:00  Europe/Rome  succeeded  -                  2026-01-01 01:00:00Z  2026-01-01 02:30:00Z  -
flights/load               Thu 2026-01-01 04:00:00+01:00  Europe/Rome  succeeded  -                  2026-01-01 03:00:00Z  2026-01-01 04:30:00Z  -
flights/join (2026-01-01)  Thu 2026-01-01 04:00:00+00:00  UTC          succeeded  window_closed 1h   2026-01-01 05:00:00Z  2026-01-01 05:10:00Z  -
flights/load               Thu 2026-01-01 06:00:00+01:00  Europe/Rome  running    -                  2026-01-01 05:00:00Z  -                     -
4 occurrences: 1 running, 3 succeeded
"""
DIGEST = "sha256:7695e9528133b1721bff1f6e5520f412c502a166b4fc3e43c16e0cdc7b57374a"
"""Of this world, on every machine. It changes with `report.FORMAT`, and with what schedules do."""


@pytest.fixture
def files(tmp_path: Path) -> Path:
    for name, text in (("schedules.yaml", SCHEDULES), ("events.jsonl", EVENTS), ("runs.jsonl", RUNS)):
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def simulated(files: Path, *options: str) -> int:
    given = ["--events", str(files / "events.jsonl"), "--runs", str(files / "runs.jsonl"), "--duration", "10m"]
    return main.run(["simulate", str(files / "schedules.yaml"), *SPAN, *given, *options])


def test_given_schedules_and_events_then_each_occurrence_is_a_line_and_the_hash_is_the_last(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulated(files) == 0
    captured = capsys.readouterr()
    *lines, digest = captured.out.splitlines()
    assert [line.split() for line in lines] == [line.split() for line in TABLE.splitlines()]
    assert digest == DIGEST
    assert "1 entries are outside the simulated span" in captured.err


def test_given_schedules_that_an_apply_would_be_warned_of_then_that_is_noted(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after = "target: {program: {type: python, file: a.py}}\ntrigger: {type: run_status, schedule: OTHER}\n"
    circle = "\n---\n".join(
        f"kind: schedule\nnamespace: flights\nname: {name}\n{after.replace('OTHER', other)}"
        for name, other in (("join", "load"), ("load", "join"))
    )
    (files / "schedules.yaml").write_text(circle, encoding="utf-8")
    (files / "runs.jsonl").write_text("", encoding="utf-8")
    assert simulated(files) == 0
    notes = capsys.readouterr().err
    assert "flights/join: warning: trigger: waits for its own runs, in a cycle" in notes
    assert "flights/load: warning: " in notes


def test_given_events_that_nobody_counts_then_they_are_noted_once_with_what_may_be_meant(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A mistyped dataset, or namespace, was simulated without a word."""
    typo = EVENTS.replace("flights.raw", "flights.row")
    (files / "events.jsonl").write_text(typo + typo, encoding="utf-8")
    assert simulated(files) == 0
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "no simulated schedule counts" in line]
    assert "events.jsonl:2 and 1 further lines" in said
    assert said.endswith("counts data/flights/flights.row; did you mean data/flights/flights.raw?")


def test_given_an_error_class_of_a_run_that_succeeds_then_the_line_is_wrong(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / "runs.jsonl").write_text('{"schedule": "flights/load", "error_class": "oom"}', encoding="utf-8")
    assert simulated(files) == 2
    assert "runs.jsonl:1: error_class: is for failures only" in capsys.readouterr().err


def test_given_json_then_all_that_is_known_is_in_it(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulated(files, "-o", "json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["hash"] == DIGEST
    (wait,) = document["occurrences"][2]["waits"]
    assert (wait["from"], wait["to"], wait["codes"]) == (
        "2026-01-01T04:00:00Z",
        "2026-01-01T05:00:00Z",
        ["window_closed"],
    )
    assert wait["verdicts"][0]["until"] == "2026-01-01T05:00:00Z"


def test_given_jsonl_then_each_line_is_an_occurrence_and_the_last_one_the_hash(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulated(files, "-o", "jsonl") == 0
    *lines, last = map(json.loads, capsys.readouterr().out.splitlines())
    assert [line["result"] for line in lines] == ["succeeded"] * 3 + ["running"]
    assert last == {"occurrences": 4, "hash": DIGEST}


def test_given_another_folder_then_the_hash_is_the_same(
    files: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "elsewhere"
    other.mkdir()
    for path in files.glob("*.*"):
        (other / path.name).write_bytes(path.read_bytes())
    assert simulated(other) == 0
    assert capsys.readouterr().out.splitlines()[-1] == DIGEST


def test_given_an_outage_then_what_it_missed_is_caught_up(files: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert simulated(files, "--outage", "2026-01-01T00:30:00Z/2026-01-01T04:30:00Z") == 0
    assert "catch_up_pacing" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--from", "yesterday"], "--from yesterday: is not an RFC 3339 time"),
        (["--to", "2025-01-01T00:00:00Z"], "must be after --from"),
        (["--duration", "soon"], '--duration: "soon" is not a duration'),
        (["--duration", "9m..2m"], "write 2m..9m"),
        (["--load", "2"], "--load 2: is wrong; give a number from 0 to 1, or none"),
        (["--outage", "2026-01-01T00:30:00Z"], "write it as FROM/TO"),
        (["--outage", "2026-01-01T00:30:00Z/2027-01-01T00:30:00Z"], "must be a span within --from and --to"),
        (
            [
                *("--outage", "2026-01-01T00:30:00Z/2026-01-01T04:30:00Z"),
                *("--outage", "2026-01-01T04:00:00Z/2026-01-01T05:00:00Z"),
            ],
            "overlaps 2026-01-01T00:30:00Z/2026-01-01T04:30:00Z",
        ),
        (["--minimum-period", "x"], "--minimum-period x: is not a duration"),
        (["--events", "none.jsonl"], "none.jsonl: cannot be read"),
    ],
)
def test_given_a_wrong_option_then_usage_and_what_to_write(
    files: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulated(files, *options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "schedules.yaml",
            SCHEDULES.replace("*/2", "*/77"),
            "schedules.yaml:6: schedule flights/load: trigger.expression",
        ),
        (
            "schedules.yaml",
            SCHEDULES + "---\n" + SCHEDULES.partition("---")[0],
            "schedules.yaml:2; give each schedule its own name",
        ),
        ("events.jsonl", "\n{\n", "events.jsonl:2: is not JSON"),
        ("events.jsonl", "[" * 200_000 + "\n", "events.jsonl:1: is nested too deeply"),
        (
            "events.jsonl",
            REPEATED.replace("DATA", "[" * 900 + "]" * 900),
            "events.jsonl:1: is nested too deeply",
        ),
        ("events.jsonl", '{"a": {"b": 1, "b": 2}}', 'events.jsonl:1: is not JSON: the key "b" stands twice'),
        (
            "events.jsonl",
            '{"at": "2026-01-01T00:00:00Z", "type": "custom.a", "namespace": "flights", "subject": "\\ud800"}',
            "events.jsonl:1: has a lone surrogate",
        ),
        ("runs.jsonl", '{"outputs": {"a": "\\ud800"}}', "runs.jsonl:1: has a lone surrogate"),
        ("events.jsonl", "[]\n", "events.jsonl:1: is JSON, but not an object"),
        ("events.jsonl", f"{{{EVENT}}}\n", "events.jsonl:1: at: is missing"),
        (
            "events.jsonl",
            '{"at": "2026-01-01T00:00:00Z", "type": "data.partition"}',
            "events.jsonl:1: dataset: is missing",
        ),
        (
            "events.jsonl",
            '{"at": "2026-01-01T00:00:00Z", "type": "schedule.stop"}',
            'events.jsonl:1: type: "schedule.stop"',
        ),
        (
            "events.jsonl",
            '{"at": "2026-01-01T00:00:00Z", "type": "nope"}',
            'events.jsonl:1: type: "nope" is unknown',
        ),
        ("events.jsonl", '{"at": "2026-01-01T00:00:00Z", "type": "nope"}', "of events: data.partition, custom.<name>"),
        ("runs.jsonl", '{"state": "failed"}', "runs.jsonl:1: state: is not a field here; it is called outcome"),
        (
            "runs.jsonl",
            '\n{"schedule": "flights/laod"}',
            'runs.jsonl:2: schedule: "flights/laod" is not simulated here; did you mean flights/load?',
        ),
        (
            "runs.jsonl",
            '{"schedule": "land"}',
            'runs.jsonl:1: schedule: "land" is not simulated here; one of: flights/join',
        ),
        ("runs.jsonl", '{"nominal": "2026-01-01T00:00:00Z"}', "runs.jsonl:1: nominal: needs a schedule"),
    ],
)
def test_given_a_wrong_file_then_its_line_and_field_are_named(
    files: Path, name: str, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (files / name).write_text(text, encoding="utf-8")
    assert simulated(files) == 2
    assert message in capsys.readouterr().err


def test_given_the_lines_of_the_documentation_then_they_are_accepted_as_they_stand() -> None:
    page = (Path(__file__).parents[3] / "docs" / "schedules.md").read_text(encoding="utf-8")
    section = page.partition("\n## Simulate\n")[2].partition("\n## ")[0]
    events, runs = (
        [json.loads(line) for line in block.splitlines()]
        for block in re.findall(r"```json\n(.*?)```", section, re.DOTALL)
    )
    found = [[*happenings_of(line, parse_instant("2026-01-08T00:00:00Z"))] for line in events]
    assert [len(each) for each in found] == [7, 1]
    assert b'"2026-01-02"' in found[0][1].value
    assert [PlannedRun.read(line).about[0] for line in runs] == ["flights/land", "flights/land"]


def test_given_the_story_of_the_documentation_then_it_comes_to_what_stands_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (Path(__file__).parents[3] / "docs" / "schedules.md").read_text(encoding="utf-8")
    story = page.partition("\nMonday's weather comes on Tuesday")[2]
    found = [re.search(rf"```{kind}\n(.*?)```", story, re.DOTALL) for kind in ("yaml", "json", "console")]
    schedule, events, console = (each.group(1) for each in found if each is not None)
    (tmp_path / "morning.yaml").write_text(schedule, encoding="utf-8")
    (tmp_path / "events.jsonl").write_text(events, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    command, _, printed = console.partition("\n")
    assert main.run(shlex.split(command.removeprefix("$ tidegate"))) == 0
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == printed.splitlines()


def test_given_a_line_of_runs_about_an_occurrence_that_never_is_then_a_note_names_it(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A newcomer's failure was never simulated, and nothing said so."""
    lines = [f'{{"schedule": "flights/load", "nominal": "2026-01-01T0{hour}:00:00Z"}}\n' for hour in (3, 4)]
    (files / "runs.jsonl").write_text("".join(reversed(lines)))
    assert simulated(files) == 0
    *_, told = capsys.readouterr().err.splitlines()
    assert told == f"{files}/runs.jsonl:1: flights/load had no run for 2026-01-01T04:00:00Z"


def test_given_a_line_of_runs_about_a_schedule_that_is_applied_on_the_way_then_it_counts(files: Path) -> None:
    target = {"type": "program", "program": {"type": "python", "file": "jobs/late.py"}}
    spec = {"namespace": "flights", "name": "late", "target": target, "trigger": {"type": "every", "period": "1h"}}
    event = {"at": "2026-01-01T02:30:00Z", "type": "schedule.apply", "spec": spec}
    (files / "events.jsonl").write_text(json.dumps(event))
    (files / "runs.jsonl").write_text('{"schedule": "flights/late", "outcome": "failed"}')
    assert simulated(files) == 0


def test_given_what_expired_at_a_constraint_then_the_remark_has_its_words(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was the JSON that is kept for programs."""
    text = SCHEDULES.replace("constraints:", "pending_timeout: 30m\nconstraints:")
    (files / "schedules.yaml").write_text(text)
    assert simulated(files) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if "expired/" in line)
    assert "{" not in line
    assert "Europe/Rome opens at 2026-01-01T05:00:00Z" in line
