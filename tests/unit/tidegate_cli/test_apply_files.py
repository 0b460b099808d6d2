"""Files of definitions: how they are read, what is sent of them, and where a problem is shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.tidegate_cli.conftest import RECEIPT, SCHEDULE, FakeApi
from tidegate_cli import main
from tidegate_cli.yaml_documents import read_documents, steps_of


def test_given_apply_then_the_file_is_absolute_from_the_yamls_folder(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers["PUT /schedules/flights/land"] = (200, RECEIPT)
    file = tmp_path / "land.yaml"
    file.write_text(SCHEDULE + "---\n")
    assert main.run(["schedule", "apply", "-f", str(file), "--reason", "first"]) == 0
    sent = json.loads(api.asked[0].content)
    assert sent["target"]["program"]["file"] == str(tmp_path / "jobs" / "land.py")
    assert api.asked[0].url.params["reason"] == "first"
    assert "accepted" in capsys.readouterr().out


TIMED = """\
namespace: flights
name: land
target:
  type: program
  program: {type: python, file: /jobs/land.py, args: [--day, 2013-01-01, --until, 2013-01-02 03:04:05]}
trigger: {type: every, period: 1h, start: 2026-01-01T00:00:00+01:00, end: 2026-12-24T18:00:00Z}
"""


def test_given_times_and_dates_without_quotes_then_they_are_sent_as_they_are_written(
    api: FakeApi, tmp_path: Path
) -> None:
    api.answers["PUT /schedules/flights/land"] = (200, RECEIPT)
    (tmp_path / "land.yaml").write_text(TIMED)
    assert main.run(["schedule", "apply", "-f", str(tmp_path)]) == 0
    sent = json.loads(api.asked[0].content)
    assert sent["trigger"]["start"] == "2026-01-01T00:00:00+01:00"
    assert sent["trigger"]["end"] == "2026-12-24T18:00:00Z"
    assert sent["target"]["program"]["args"] == ["--day", "2013-01-01", "--until", "2013-01-02 03:04:05"]


UNQUOTED = """\
namespace: flights
name: land
labels: {1: first, on: time}
target:
  type: program
  program:
    type: python
    file: /jobs/land.py
    args: [--until, 22:00, --month, 07, --next, 08, --after, -1:30, --span, 10:00:00.5, --share, 0.5, --most, 10, --mask, 0x10]
    env: {ON: yes, NO: 1}
trigger: {type: every, period: 1h}
constraints:
  - {type: time_window, opens: 22:00, closes: 06:00}
"""


def test_given_keys_and_times_without_quotes_then_they_are_the_texts_that_stand_there(
    api: FakeApi, tmp_path: Path
) -> None:
    """YAML 1.1 reads `22:00` as 1320, `07` as an octal, `yes` as true, and a variable ON as one that is called true."""
    api.answers["PUT /schedules/flights/land"] = (200, RECEIPT)
    file = tmp_path / "land.yaml"
    file.write_text(UNQUOTED)
    assert main.run(["schedule", "apply", "-f", str(file)]) == 0
    sent = json.loads(api.asked[0].content)
    program = sent["target"]["program"]
    assert sent["labels"] == {"1": "first", "on": "time"}
    assert program["env"] == {"ON": "yes", "NO": "1"}
    assert dict(zip(program["args"][::2], program["args"][1::2], strict=True)) == {
        "--until": "22:00",
        "--month": "07",
        "--next": "08",
        "--after": "-1:30",
        "--span": "10:00:00.5",
        "--share": "0.5",
        "--most": "10",
        "--mask": "0x10",
    }
    assert sent["constraints"] == [{"type": "time_window", "opens": "22:00", "closes": "06:00"}]
    assert main.run(["schedule", "next", "-f", str(file), "--count", "1"]) == 0


@pytest.mark.parametrize("value", [".nan", "!!binary aGk=", "!!timestamp 2026-12-24T18:00:00Z", "&a [*a]"])
def test_given_yaml_that_is_no_json_then_the_document_is_named_and_nothing_is_sent(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    file = tmp_path / "land.yaml"
    file.write_text(f"namespace: flights\nname: land\ntarget: {{payload: {value}}}\n")
    assert main.run(["schedule", "apply", "-f", str(file)]) == 2
    assert f"{file}:1: this cannot be sent as JSON" in capsys.readouterr().err
    assert api.asked == []


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("!!int foo", "cannot be read as !!int"),
        ("!!float foo", "cannot be read as !!float"),
        ("!!bool foo", "cannot be read as !!bool"),
        ("!!timestamp foo", "cannot be read as !!timestamp"),
        ("!!int 0x_", "cannot be read as !!int"),
        ("9" * 5_000, "cannot be read as !!int"),
        ('"\\ud800"', "has a lone surrogate"),
    ],
)
def test_given_a_value_that_is_not_what_it_says_then_its_line_is_named(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str, problem: str
) -> None:
    file = tmp_path / "land.yaml"
    file.write_text(f"namespace: flights\nname: land\ntarget: {{payload: {value}}}\n")
    for command in (["schedule", "apply"], ["schedule", "next"]):
        assert main.run([*command, "-f", str(file)]) == 2
        assert f"{file}:3: {problem}" in capsys.readouterr().err
    assert api.asked == []


def test_given_links_in_a_programs_path_then_they_stay(tmp_path: Path) -> None:
    """A deployment turns `current` to its next release, and the schedule has to run that one."""
    release = tmp_path / "releases" / "1"
    release.mkdir(parents=True)
    (release / "land.py").write_text("")
    (tmp_path / "current").symlink_to(release)
    for file in (f"{tmp_path}/current/land.py", "current/land.py", "./x/../current/land.py"):
        (tmp_path / "a.yaml").write_text(SCHEDULE.replace("jobs/land.py", file))
        (document,) = read_documents(tmp_path / "a.yaml")
        assert document.spec["target"]["program"]["file"] == f"{tmp_path}/current/land.py"


def test_given_merged_keys_then_own_ones_replace_them_and_are_no_repetition(tmp_path: Path) -> None:
    text = "x: [[&inner {<<: &base {name: a, namespace: n}, name: b}]]\n<<: *inner\nname: c\n"
    (tmp_path / "a.yaml").write_text(text)
    (document,) = read_documents(tmp_path / "a.yaml")
    assert (document.spec["name"], document.spec["namespace"]) == ("c", "n")
    assert document.spec["x"] == [[{"name": "b", "namespace": "n"}]]


def test_given_dry_run_and_expected_version_then_both_are_asked_for(api: FakeApi, tmp_path: Path) -> None:
    api.answers["PUT /schedules/flights/land"] = (200, {"namespace": "flights", "name": "land", "would": "create"})
    (tmp_path / "a.yaml").write_text(SCHEDULE)
    command = ["schedule", "apply", "-f", str(tmp_path), "--expected-version", "0"]
    assert main.run([*command, "--dry-run", "--on-update", "carry"]) == 0
    assert dict(api.asked[0].url.params) == {"dry_run": "true", "expected_version": "0", "on_update": "carry"}
    api.answers["PUT /schedules/flights/land"] = (200, RECEIPT)
    assert main.run(command) == 0
    assert api.asked[1].url.params["expected_version"] == "0"


def test_given_an_id_then_it_is_the_request_s_and_names_no_more_than_one(api: FakeApi, tmp_path: Path) -> None:
    """The remedy of an apply that may have been taken: under its id a repeat acts once."""
    api.answers["PUT /schedules/flights/land"] = (200, RECEIPT)
    (tmp_path / "land.yaml").write_text(TIMED)
    command = ["schedule", "apply", "-f", str(tmp_path), "--id", "mine"]
    assert main.run(command) == 0
    assert api.asked[0].headers["Idempotency-Key"] == "mine"
    assert main.run([*command, "--dry-run"]) == main.run([*command, "--create-only"]) == 2
    (tmp_path / "other.yaml").write_text(TIMED.replace("name: land", "name: other"))
    assert main.run(command) == 2
    assert len([request for request in api.asked if request.method == "PUT"]) == 1


def test_given_expected_version_of_several_schedules_then_usage_and_nothing_is_sent(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "all.yaml").write_text(SCHEDULE + "---\n" + SCHEDULE.replace("name: land", "name: other"))
    assert main.run(["schedule", "apply", "-f", str(tmp_path), "--expected-version", "1"]) == 2
    assert "has 2 schedules" in capsys.readouterr().err
    assert api.asked == []


def test_given_unchanged_then_the_next_instant_is_that_of_the_schedule(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers["PUT /schedules/flights/land"] = (200, {**RECEIPT, "status": "unchanged"})
    view = {"namespace": "flights", "name": "land", "status": "active", "version": 2, "next": ["2026-11-20T22:00:00Z"]}
    api.answers["GET /schedules/flights/land"] = (200, view)
    (tmp_path / "a.yaml").write_text(SCHEDULE)
    assert main.run(["schedule", "apply", "-f", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[2:] == ["unchanged", "2", "2026-11-20", "22:00:00Z"]


@pytest.mark.parametrize("name", ["a/b", "../hello/count", "Land", "x" * 129])
def test_given_name_that_breaks_the_rule_then_the_rule_and_its_line_are_told_with_exit_2(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(SCHEDULE.replace("name: land", f"name: {name}"))
    assert main.run(["schedule", "apply", "-f", str(file)]) == 2
    error = capsys.readouterr().err
    assert f"{file}:3: schedule flights/{name}: name: " in error
    assert "is not a name: 1 to 128 of a-z 0-9 - _ ." in error
    assert api.asked == []


def test_given_spec_then_only_what_can_be_applied_again_is_printed(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Texts that YAML would read as something else come back as texts."""
    odd = {"args": ["2013-01-01", "on", "22:00", "1e3", "0x1f", "", " x ", "a: b", "é\u2028\x85"]}
    program = {"type": "python", "file": "/jobs/land.py", **odd}
    spec = {"namespace": "flights", "name": "land", "target": {"type": "program", "program": program}}
    view = {"namespace": "flights", "name": "land", "status": "suspended", "version": 1, "spec": spec}
    api.answers["GET /schedules/flights/land"] = (200, view)
    for number, output in enumerate(([], ["-o", "json"])):
        assert main.run(["schedule", "get", "flights/land", "--spec", *output]) == 0
        file = tmp_path / f"{number}.yaml"
        file.write_text(capsys.readouterr().out, encoding="utf-8")
        (document,) = read_documents(file)
        assert document.spec == spec
    assert main.run(["schedule", "get", "flights/land", "--spec", "-o", "table"]) == 2


def test_given_api_goes_away_half_way_then_what_was_applied_is_shown(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    down = {"title": "Service Unavailable", "status": 503, "detail": "no broker"}
    api.answers["PUT /schedules/flights/land"] = (200, RECEIPT)
    api.answers["PUT /schedules/flights/other"] = (503, down)
    (tmp_path / "all.yaml").write_text(SCHEDULE + "---\n" + SCHEDULE.replace("name: land", "name: other"))
    assert main.run(["schedule", "apply", "-f", str(tmp_path)]) == 75
    captured = capsys.readouterr()
    assert "land" in captured.out
    assert "no broker" in captured.err


def test_given_problem_then_its_line_is_named_and_the_other_documents_are_applied(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = [
        {"field": "trigger.triggers[1].count", "problem": "is not a whole number"},
        {"field": "overlapp", "problem": "is unknown", "hint": "did you mean overlap?"},
    ]
    problem = {"title": "Bad Request", "status": 400, "detail": "no", "errors": errors}
    api.answers["PUT /schedules/flights/land"] = (400, problem)
    api.answers["PUT /schedules/flights/other"] = (200, {**RECEIPT, "name": "other"})
    file = tmp_path / "all.yaml"
    file.write_text(SCHEDULE + "---\n" + SCHEDULE.replace("name: land", "name: other"))
    assert main.run(["schedule", "apply", "-f", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert f"{file}:13: schedule flights/land: trigger.triggers[1].count: is not a whole number" in captured.err
    assert f"{file}:1: schedule flights/land: overlapp: is unknown; did you mean overlap?" in captured.err
    assert "1 of 2 schedules were not applied" in captured.err
    assert "other" in captured.out


def test_given_dry_run_then_it_says_what_would_happen(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers["PUT /schedules/flights/land"] = (
        200,
        {"namespace": "flights", "name": "land", "would": "replace", "version": 2, "changed": ["trigger"]},
    )
    (tmp_path / "a.yaml").write_text(SCHEDULE)
    assert main.run(["schedule", "apply", "-f", str(tmp_path / "a.yaml"), "--dry-run"]) == 0
    assert api.asked[0].url.params["dry_run"] == "true"
    assert "would replace" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1\nb: 2\n", ":2:"),
        ("- 1\n", ":1: is not a mapping"),
        ("kind: schedule\n", "namespace and name is missing"),
        ("name: a39\nkind: schedule\nname: twice\n", ':3: the key "name" stands twice'),
        ("name: a\ntrigger:\n  - {type: at, type: cron}\n", ':3: the key "type" stands twice'),
        ('{"name": "a", "namespace": "b", "name": "a"}', ':1: the key "name" stands twice'),
        ("", "no schedule"),
        ("a: \x00", "is not YAML"),
    ],
)
def test_given_file_that_is_no_schedule_then_usage_with_its_line(
    tmp_path: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(text)
    assert main.run(["schedule", "apply", "-f", str(file)]) == 2
    assert message in capsys.readouterr().err


def test_given_path_of_a_problem_then_its_steps_and_place() -> None:
    assert steps_of("trigger.triggers[0].count") == ["trigger", "triggers", 0, "count"]
    assert steps_of("") == []


def test_given_url_as_file_then_it_stays(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(SCHEDULE.replace("jobs/land.py", "s3://bucket/land.py"))
    (document,) = read_documents(file)
    assert document.spec["target"]["program"]["file"] == "s3://bucket/land.py"
