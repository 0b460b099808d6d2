"""`tidegate apply`, applies that are interrupted, and definitions from standard input."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
from pathlib import Path

import httpx2
import pytest

from tests.unit.tidegate_cli.commands.test_dlq import ANSWER
from tests.unit.tidegate_cli.commands.test_sources import SOURCE
from tests.unit.tidegate_cli.conftest import RECEIPT, SCHEDULE, FakeApi
from tidegate_cli import main
from tidegate_cli.apply_order import in_order_of_dependence
from tidegate_cli.yaml_documents import read_documents

DOWN = (503, {"title": "Service Unavailable", "status": 503, "detail": "no broker"})
HOURLY = """\
kind: schedule
namespace: flights
name: land
target: {type: program, program: {type: python, file: jobs/land.py}}
trigger: {type: every, period: 1h}
"""


def waiting(name: str, upstream: str) -> str:
    trigger = f"trigger: {{type: run_status, schedule: {upstream}, states: [succeeded]}}\n"
    return HOURLY.replace("name: land", f"name: {name}").replace("trigger: {type: every, period: 1h}\n", trigger)


def accepted(api: FakeApi, *names: str) -> None:
    for name in names:
        api.answers[f"PUT /schedules/flights/{name}"] = (200, {**RECEIPT, "name": name})


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def put_names(api: FakeApi) -> list[str]:
    return [request.url.path.removeprefix("/api/v1/") for request in api.asked if request.method == "PUT"]


# -- standard input -----------------------------------------------------------------------------------------------------


def test_given_a_schedule_on_standard_input_then_it_is_applied_and_its_file_counts_from_the_current_folder(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    accepted(api, "land")
    monkeypatch.chdir(tmp_path)
    typed(monkeypatch, HOURLY)
    assert main.run(["schedule", "apply", "-f", "-"]) == 0
    sent = json.loads(api.asked[0].content)
    assert sent["target"]["program"]["file"] == str(tmp_path / "jobs" / "land.py")


def test_given_a_mistake_on_standard_input_then_its_line_is_told(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = [{"field": "trigger.triggers[1].count", "problem": "is not a whole number"}]
    api.answers["PUT /schedules/flights/land"] = (400, {"title": "t", "status": 400, "detail": "d", "errors": errors})
    typed(monkeypatch, SCHEDULE)
    assert main.run(["schedule", "apply", "-f", "-"]) == 2
    assert "standard input:13: schedule flights/land: trigger.triggers[1].count" in capsys.readouterr().err
    typed(monkeypatch, "a: [1\nb: 2\n")
    assert main.run(["schedule", "apply", "-f", "-"]) == 2
    assert "standard input:2: " in capsys.readouterr().err
    typed(monkeypatch, "")
    assert main.run(["schedule", "apply", "-f", "-"]) == 2
    assert "standard input: has no schedule" in capsys.readouterr().err


def test_given_standard_input_then_each_command_that_takes_a_file_reads_it(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers["PUT /sources/flights/landed"] = (200, {**RECEIPT, "name": "landed"})
    span = ["--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T03:00:00Z"]
    for text, command in (
        (SOURCE, ["source", "apply", "-f", "-"]),
        (SOURCE, ["apply", "-f", "-"]),
        (HOURLY, ["schedule", "next", "-f", "-", "--count", "1"]),
        (HOURLY, ["simulate", "-", *span]),
        ("\n", ["simulate", "README.md", "--events", "-", *span]),
    ):
        typed(monkeypatch, text)
        if "README.md" in command:
            command[1] = str(_a_file(HOURLY))
        assert main.run(command) == 0, capsys.readouterr().err
    typed(monkeypatch, HOURLY)
    assert main.run(["simulate", "-", "--runs", "-", *span]) == 2
    assert "FILE and --runs both read standard input" in capsys.readouterr().err


def _a_file(text: str) -> Path:
    path = Path.cwd() / "one.yaml"
    path.write_text(text)
    return path


@pytest.fixture(autouse=True)
def _folder_of_ones_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_given_no_standard_input_or_too_much_of_it_then_one_line_says_so(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main.run(["schedule", "apply", "-f", "-"]) == 2
    assert capsys.readouterr().err == "tidegate: standard input is closed; give a file\n"
    monkeypatch.setattr("tidegate_cli.yaml_documents.FILE_BYTES_MAX", 10)
    typed(monkeypatch, HOURLY)
    assert main.run(["schedule", "apply", "-f", "-"]) == 2
    assert capsys.readouterr().err == "tidegate: standard input: has more than 10 bytes\n"
    assert api.asked == []


def test_given_a_pipe_as_file_then_a_programs_file_counts_from_the_current_folder(tmp_path: Path) -> None:
    """`-f <(helm template ...)` looked for the program in `/dev/fd`."""
    (tmp_path / "fd").mkdir()
    pipe = tmp_path / "fd" / "63"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=(HOURLY,))
    writer.start()
    (document,) = read_documents(pipe)
    writer.join()
    assert document.spec["target"]["program"]["file"] == str(tmp_path / "jobs" / "land.py")


# -- all kinds ----------------------------------------------------------------------------------------------------------


def test_given_a_file_of_all_kinds_then_sources_come_first_and_each_schedule_after_those_it_waits_for(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accepted(api, "land", "join", "report")
    api.answers["PUT /sources/flights/landed"] = (200, {**RECEIPT, "name": "landed"})
    file = tmp_path / "all.yaml"
    file.write_text("---\n".join([waiting("report", "join"), waiting("join", "land"), HOURLY, SOURCE]))
    assert main.run(["apply", "-f", str(file)]) == 0
    assert put_names(api) == [
        "sources/flights/landed",
        "schedules/flights/land",
        "schedules/flights/join",
        "schedules/flights/report",
    ]
    lines = [line.split()[:4] for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["KIND", "NAMESPACE", "NAME", "RESULT"]
    assert lines[1:3] == [["source", "flights", "landed", "accepted"], ["schedule", "flights", "land", "accepted"]]
    assert main.run(["apply", "-f", str(file), "-o", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [(each["kind"], each["name"], each["status"]) for each in shown[:2]] == [
        ("source", "landed", "accepted"),
        ("schedule", "land", "accepted"),
    ]


def test_given_schedules_that_wait_for_each_other_then_all_are_applied_in_the_order_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("---\n".join([waiting("a", "b"), waiting("b", "c"), waiting("c", "a"), HOURLY]))
    ordered = in_order_of_dependence(read_documents(tmp_path / "a.yaml"))
    assert [document.spec["name"] for document in ordered] == ["c", "b", "a", "land"]


def test_given_a_chain_of_a_thousand_then_the_first_one_is_applied_first(tmp_path: Path) -> None:
    texts = [waiting(f"s{number}", f"s{number + 1}") for number in range(1_200)]
    (tmp_path / "a.yaml").write_text("---\n".join(texts))
    ordered = in_order_of_dependence(read_documents(tmp_path / "a.yaml"))
    assert [document.spec["name"] for document in ordered] == [f"s{number}" for number in reversed(range(1_200))]


@pytest.mark.parametrize(
    ("command", "text", "message"),
    [
        (["apply"], HOURLY.replace("kind: schedule\n", ""), ":1: kind is missing; write `kind: schedule` or"),
        (["apply"], HOURLY.replace("kind: schedule", "kind: shedule"), ':1: kind "shedule" is unknown; write'),
        (["apply"], "---\n", ": has no definition"),
        (
            ["schedule", "apply"],
            HOURLY + "---\n" + SOURCE,
            ":7: flights/landed is a source, not a schedule; use `tidegate",
        ),
        (["source", "apply"], SOURCE + "---\n" + HOURLY, ":9: flights/land is a schedule, not a source; use `tidegate"),
    ],
)
def test_given_a_kind_that_the_command_does_not_take_then_nothing_is_applied(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str], text: str, message: str
) -> None:
    (tmp_path / "all.yaml").write_text(text)
    assert main.run([*command, "-f", str(tmp_path / "all.yaml")]) == 2
    assert f"all.yaml{message}" in capsys.readouterr().err
    assert api.asked == []


def test_given_a_source_and_a_schedule_of_one_name_then_both_are_applied(api: FakeApi, tmp_path: Path) -> None:
    accepted(api, "landed")
    api.answers["PUT /sources/flights/landed"] = (200, {**RECEIPT, "name": "landed"})
    (tmp_path / "all.yaml").write_text(HOURLY.replace("name: land", "name: landed") + "---\n" + SOURCE)
    assert main.run(["apply", "-f", str(tmp_path)]) == 0
    assert put_names(api) == ["sources/flights/landed", "schedules/flights/landed"]


def test_given_a_file_of_all_kinds_then_next_and_simulate_are_about_its_schedules(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "all.yaml").write_text(SOURCE + "---\n" + HOURLY)
    span = ["--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T03:00:00Z"]
    assert main.run(["schedule", "next", "-f", str(tmp_path), "--count", "1"]) == 0
    assert main.run(["simulate", str(tmp_path), *span]) == 0
    assert "occurrences" in capsys.readouterr().out


def test_given_a_dry_run_of_all_kinds_then_nothing_is_written_and_a_sources_mistake_has_its_line(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    would = {"namespace": "flights", "name": "land", "would": "create"}
    api.answers["PUT /schedules/flights/land"] = (200, would)
    file = tmp_path / "all.yaml"
    file.write_text(HOURLY + "---\n" + SOURCE)
    assert main.run(["apply", "-f", str(file), "--dry-run"]) == 0
    assert [line.split()[3:5] for line in capsys.readouterr().out.splitlines()[1:]] == [["would", "create"]] * 2
    assert {request.url.params.get("dry_run") for request in api.asked if request.method == "PUT"} == {"true"}
    file.write_text(SOURCE.replace("pointer: /day", "pointer: day"))
    assert main.run(["source", "apply", "-f", str(file), "--dry-run"]) == 2
    assert f"{file}:7: source flights/landed: event.partition" in capsys.readouterr().err


def test_given_a_dry_run_of_a_source_that_exists_then_it_says_what_would_change(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import yaml

    view = {"namespace": "flights", "name": "landed", "status": "open", "version": 2, "topic": "t"}
    api.answers["GET /sources/flights/landed"] = (200, {**view, "spec": yaml.safe_load(SOURCE)})
    file = tmp_path / "a.yaml"
    for text, said in ((SOURCE, ["unchanged", "2", "-"]), (SOURCE.replace("lake", "sea"), ["replace", "2", "topic"])):
        file.write_text(text)
        assert main.run(["source", "apply", "-f", str(file), "--dry-run"]) == 0
        assert capsys.readouterr().out.splitlines()[1].split()[3:6] == said
    assert main.run(["source", "apply", "-f", str(file), "--dry-run", "--expected-version", "1"]) == 4
    assert put_names(api) == []


# -- interrupted --------------------------------------------------------------------------------------------------------


@pytest.fixture
def four(tmp_path: Path) -> Path:
    names = ("a", "b", "c", "d")
    (tmp_path / "all.yaml").write_text("---\n".join(HOURLY.replace("name: land", f"name: {name}") for name in names))
    return tmp_path / "all.yaml"


def test_given_an_api_that_goes_away_half_way_then_it_says_what_was_applied_and_what_is_open(
    api: FakeApi, four: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accepted(api, "a")
    api.answers["PUT /schedules/flights/b"] = (404, {"title": "t", "status": 404, "detail": "no such group"})
    api.answers["PUT /schedules/flights/c"] = DOWN
    assert main.run(["schedule", "apply", "-f", str(four)]) == 75
    captured = capsys.readouterr()
    assert [line.split()[1] for line in captured.out.splitlines()] == ["NAME", "a"]
    *told, last = captured.err.splitlines()
    assert last.startswith("tidegate: no broker")
    assert told == [
        f"{four}:7: no such group",
        "1 of 4 schedules were applied, 1 refused; 2 are open:",
        f"  {four}:13: schedule flights/c: sent, and may have been applied",
        f"  {four}:19: schedule flights/d: not applied",
        "run the same command again: applied definitions stay unchanged",
    ]


@pytest.mark.parametrize(
    ("number", "code"), [pytest.param(signal.SIGINT, 130, id="ctrl-c"), pytest.param(signal.SIGTERM, 143, id="sigterm")]
)
def test_given_an_interrupt_half_way_then_it_says_what_was_applied_and_what_is_open(
    api: FakeApi,
    four: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    number: int,
    code: int,
) -> None:
    """A build server's time limit left nothing but half of the schedules."""
    accepted(api, "a", "b", "c", "d")
    handle = api.handle

    def interrupted(request: httpx2.Request) -> httpx2.Response:
        if request.url.path.endswith("/b"):
            os.kill(os.getpid(), number)
        return handle(request)

    monkeypatch.setattr(api, "handle", interrupted)
    before = signal.getsignal(signal.SIGTERM)
    # A suite that a shell starts in the background inherits an ignored SIGINT, and Python keeps it.
    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main.run(["apply", "-f", str(four)]) == code
    finally:
        signal.signal(signal.SIGINT, inherited)
    assert signal.getsignal(signal.SIGTERM) is before
    captured = capsys.readouterr()
    assert [line.split()[2] for line in captured.out.splitlines()] == ["NAME", "a"]
    assert captured.err.splitlines()[:3] == [
        "interrupted: 1 of 4 definitions were applied; 3 are open:",
        f"  {four}:7: schedule flights/b: sent, and may have been applied",
        f"  {four}:13: schedule flights/c: not applied",
    ]


def test_given_an_interrupt_of_all_or_none_then_each_may_have_been_applied(
    api: FakeApi, four: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers["POST /schedules"] = DOWN
    assert main.run(["schedule", "apply", "-f", str(four), "--all-or-none"]) == 75
    said = capsys.readouterr().err
    assert "0 of 4 schedules were applied; 4 are open:" in said
    assert said.count("may have been applied") == 4


def test_given_a_request_that_is_not_answered_yet_then_it_is_not_counted_as_refused(
    api: FakeApi, four: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    accepted(api, "a", "b", "c")
    api.answers["PUT /schedules/flights/d"] = (202, {**RECEIPT, "status": "pending"})
    assert main.run(["schedule", "apply", "-f", str(four)]) == 5
    assert "tidegate: 1 of 4 have no answer so far" in capsys.readouterr().err


def test_given_one_schedule_and_no_api_then_one_line_says_so(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers["PUT /schedules/flights/land"] = DOWN
    (tmp_path / "a.yaml").write_text(HOURLY)
    assert main.run(["schedule", "apply", "-f", str(tmp_path)]) == 75
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("tidegate: no broker")


def test_given_thousands_that_are_open_then_a_hundred_are_listed_and_the_others_counted(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts = [HOURLY.replace("name: land", f"name: s{number}") for number in range(150)]
    (tmp_path / "a.yaml").write_text("---\n".join(texts))
    api.answers["PUT /schedules/flights/s0"] = DOWN
    assert main.run(["schedule", "apply", "-f", str(tmp_path)]) == 75
    assert "  and 50 more that were not applied" in capsys.readouterr().err.splitlines()
    assert len(api.asked) == 1


def test_given_an_interrupt_of_a_replay_of_letters_then_it_says_which_are_open(
    api: FakeApi, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    api.answers["POST /dlq/requests-0-0/replay"] = (200, {**ANSWER, "id": "requests-0-0"})
    handle = api.handle

    def interrupted(request: httpx2.Request) -> httpx2.Response:
        if "requests-0-1" in request.url.path:
            os.kill(os.getpid(), signal.SIGTERM)
        return handle(request)

    monkeypatch.setattr(api, "handle", interrupted)
    assert main.run(["dlq", "replay", "requests-0-0", "requests-0-1", "requests-0-2"]) == 143
    captured = capsys.readouterr()
    assert "requests-0-0" in captured.out
    assert captured.err.splitlines() == [
        "interrupted: 1 of 3 dead letters are done; requests-0-1 is uncertain",
        "not tried: requests-0-2",
    ]
