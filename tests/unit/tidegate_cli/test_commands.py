"""Commands against an API that a test plays: what is asked, what is printed where, and the exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tidegate_cli import context, main, watching
from tidegate_cli.documents import read_documents, steps_of
from tidegate_cli.exits import CommandFailed
from tidegate_client import Client

Answer = tuple[int, Any]
RUN = "0001-mfrggzdfmztwq2lkn5wg63tqoe"
RECEIPT = {
    "request_id": "r-1",
    "status": "accepted",
    "namespace": "flights",
    "name": "land",
    "version": 2,
    "at": "2026-11-20T22:00:00Z",
}
SCHEDULE = """\
kind: schedule
namespace: flights
name: land
target:
  type: program
  program: {type: python, file: jobs/land.py}
trigger:
  type: all_of
  triggers:
    - {type: data_partitions, dataset: a, count: 1}
    - type: data_partitions
      dataset: b
      count: zero
"""


class FakeApi:
    """Answers by method and path; remembers what was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, Answer | list[Answer]] = {}
        self.asked: list[httpx2.Request] = []

    def handle(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        answer = self.answers.get(f"{request.method} {request.url.path.removeprefix('/api/v1')}")
        if answer is None:
            return httpx2.Response(404, json={"title": "Not Found", "status": 404, "detail": "there is none"})
        status, body = answer.pop(0) if isinstance(answer, list) else answer
        return httpx2.Response(status, json=body)


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> FakeApi:
    fake = FakeApi()

    def client() -> Client:
        return Client("http://api:1", transport=httpx2.MockTransport(fake.handle))

    for module in ("schedules", "jobs", "runs", "events", "messages"):
        monkeypatch.setattr(f"tidegate_cli.commands.{module}.api_client", client)
    return fake


def a_run(**fields: Any) -> dict[str, Any]:
    given = {
        "id": RUN,
        "namespace": "flights",
        "schedule": "land",
        "version": 1,
        "state": "running",
        "trigger": "time",
        "nominal": "2026-11-20T22:00:00Z",
    }
    return {**given, **fields}


def test_given_schedules_then_they_are_a_plain_table_or_json_or_yaml(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    view = {
        "namespace": "flights",
        "name": "land",
        "status": "active",
        "version": 2,
        "next": ["2026-11-20T22:00:00Z"],
        "spec": {"trigger": {"type": "cron", "expression": "@daily"}},
    }
    api.answers["GET /schedules"] = (200, {"items": [view]})
    assert main.run(["schedule", "list"]) == 0
    table = capsys.readouterr().out.splitlines()
    assert table[0].split() == ["NAMESPACE", "NAME", "STATUS", "VERSION", "TRIGGER", "NEXT"]
    assert table[1].split() == ["flights", "land", "active", "2", "cron", "@daily", "2026-11-20", "22:00:00Z"]
    assert main.run(["schedule", "list", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "land"
    assert main.run(["schedule", "list", "-o", "yaml"]) == 0
    assert "- namespace: flights" in capsys.readouterr().out


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


@pytest.mark.parametrize("value", [".nan", "!!binary aGk=", "!!timestamp 2026-12-24T18:00:00Z", '"\\ud800"', "&a [*a]"])
def test_given_yaml_that_is_no_json_then_the_document_is_named_and_nothing_is_sent(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    file = tmp_path / "land.yaml"
    file.write_text(f"namespace: flights\nname: land\nlabels: {{x: {value}}}\n")
    assert main.run(["schedule", "apply", "-f", str(file)]) == 1
    assert f"{file}:1: this cannot be sent as JSON" in capsys.readouterr().err
    assert api.asked == []


@pytest.mark.parametrize("payload", ["NaN", '"\\ud800"'])
def test_given_payload_that_is_no_json_then_one_line_says_so(
    api: FakeApi, capsys: pytest.CaptureFixture[str], payload: str
) -> None:
    assert main.run(["message", "send", "-n", "a", "-t", "t", "--payload", payload]) == 1
    assert "cannot be sent as JSON" in capsys.readouterr().err
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


def test_given_api_goes_away_half_way_then_what_was_applied_is_shown(
    api: FakeApi, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    down = {"title": "Service Unavailable", "status": 503, "detail": "no broker"}
    api.answers["PUT /schedules/flights/land"] = (200, RECEIPT)
    api.answers["PUT /schedules/flights/other"] = (503, down)
    (tmp_path / "all.yaml").write_text(SCHEDULE + "---\n" + SCHEDULE.replace("name: land", "name: other"))
    assert main.run(["schedule", "apply", "-f", str(tmp_path)]) == 1
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
    assert main.run(["schedule", "apply", "-f", str(tmp_path)]) == 1
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


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (["schedule", "get", "flights/none"], 3),
        (["run", "get", RUN], 3),
        (["schedule", "get", "no-slash"], 2),
        (["schedule", "nonsense"], 2),
        (["nonsense"], 2),
        (["run", "list", "-n", "a", "-s", "b/c"], 2),
        (["message", "send", "-n", "a", "-t", "t"], 2),
        (["message", "send", "-n", "a", "-t", "t", "--payload", "{"], 2),
        (["message", "cancel", "-n", "a"], 2),
        (["event", "send", "-n", "a"], 2),
        (["version"], 0),
    ],
)
def test_given_command_then_its_exit_code_can_be_relied_on(api: FakeApi, command: list[str], code: int) -> None:
    assert main.run(command) == code


@pytest.mark.parametrize(("status", "code"), [(409, 4), (412, 4), (404, 3), (400, 1), (503, 1), (202, 5)])
def test_given_refusal_then_its_exit_code(
    api: FakeApi, status: int, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    body = {**RECEIPT, "status": "pending"} if status == 202 else {"title": "t", "status": status, "detail": "words"}
    api.answers["POST /schedules/flights/land/suspend"] = (status, body)
    assert main.run(["schedule", "suspend", "flights/land"]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tidegate: ")
    assert len(captured.err.splitlines()) == 1


def test_given_message_then_its_fields_are_those_of_the_request(api: FakeApi) -> None:
    api.answers["POST /requests"] = (200, RECEIPT)
    command = ["message", "send", "-n", "orders", "-t", "orders.reminders", "--after", "90s", "--payload", "null"]
    assert main.run([*command, "--header", "a=b=c", "--key", "k", "--id", "m-1"]) == 0
    sent = json.loads(api.asked[0].content)
    assert sent == {
        "type": "message.send",
        "namespace": "orders",
        "topic": "orders.reminders",
        "after": "90s",
        "key": "k",
        "headers": {"a": "b=c"},
        "payload": None,
        "id": "m-1",
    }


def test_given_event_then_only_what_was_given_is_sent(api: FakeApi) -> None:
    item = {"id": "e-1", "type": "data.partition", "namespace": "flights"}
    api.answers["POST /events"] = (200, {"items": [item]})
    assert main.run(["event", "send", "-n", "flights", "--dataset", "d", "--partition", "p", "--rows", "3"]) == 0
    assert json.loads(api.asked[0].content) == {
        "type": "data.partition",
        "namespace": "flights",
        "dataset": "d",
        "partition": "p",
        "rows": 3,
    }


def a_piece(text: str, offset: int, size: int, *, ended: bool) -> Answer:
    piece = {
        "run_id": RUN,
        "attempt": 1,
        "stream": "stdout",
        "offset": offset,
        "next_offset": offset + len(text),
        "size": size,
        "text": text,
        "ended": ended,
    }
    return 200, piece


def test_given_follow_then_the_log_is_printed_until_the_run_has_ended(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(watching.print_log, "__kwdefaults__", {"pause": lambda _: None})
    api.answers[f"GET /runs/{RUN}/logs"] = [
        a_piece("one\n", 0, 8, ended=False),
        a_piece("two\n", 4, 8, ended=False),
        a_piece("", 8, 8, ended=False),
        a_piece("end\n", 8, 12, ended=True),
    ]
    assert main.run(["run", "logs", "-f", RUN]) == 0
    assert capsys.readouterr().out == "one\ntwo\nend\n"
    assert [request.url.params["offset"] for request in api.asked] == ["0", "4", "8", "8"]


def test_given_schedule_instead_of_a_run_then_its_newest_run_is_meant(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    api.answers["GET /runs"] = (200, {"items": [a_run()]})
    api.answers[f"GET /runs/{RUN}/logs"] = a_piece("one\n", 0, 4, ended=True)
    api.answers[f"GET /runs/{RUN}"] = (200, a_run())
    assert main.run(["run", "logs", "flights/land"]) == 0
    assert capsys.readouterr().out == "one\n"
    asked = api.asked[0].url.params
    assert (asked["namespace"], asked["schedule"], asked["limit"]) == ("flights", "land", "1")
    assert main.run(["run", "get", "flights/land", "-o", "name"]) == 0
    assert capsys.readouterr().out == f"{RUN}\n"


def test_given_schedule_without_a_run_then_exit_3_or_follow_waits_for_the_first(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule = {"namespace": "flights", "name": "land", "status": "active", "version": 1, "spec": {}}
    api.answers["GET /schedules/flights/land"] = (200, schedule)
    none: Answer = (200, {"items": []})
    api.answers["GET /runs"] = none
    assert main.run(["run", "logs", "flights/land"]) == 3
    assert "flights/land has no run yet" in capsys.readouterr().err
    monkeypatch.setitem(watching.run_meant.__kwdefaults__ or {}, "pause", lambda _: None)
    api.answers["GET /runs"] = [none, none, (200, {"items": [a_run()]})]
    api.answers[f"GET /runs/{RUN}/logs"] = a_piece("one\n", 0, 4, ended=True)
    assert main.run(["run", "logs", "-f", "flights/land"]) == 0
    captured = capsys.readouterr()
    assert captured.out == "one\n"
    assert captured.err.count("waiting for the first") == 1


def test_given_schedule_that_is_not_there_then_follow_does_not_wait_for_its_runs(api: FakeApi) -> None:
    api.answers["GET /runs"] = (200, {"items": []})
    assert main.run(["run", "logs", "-f", "flights/none"]) == 3
    assert main.run(["run", "logs", "flights/"]) == 2


def test_given_output_name_then_only_what_other_commands_take_is_printed(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    schedule = {"namespace": "flights", "name": "land", "status": "active", "version": 1, "spec": {}}
    api.answers["GET /runs"] = (200, {"items": [a_run(), a_run(id=RUN.replace("0001", "0002"))]})
    api.answers["GET /schedules"] = (200, {"items": [schedule]})
    assert main.run(["run", "list", "--schedule", "flights/land", "-o", "name"]) == 0
    assert capsys.readouterr().out == f"{RUN}\n{RUN.replace('0001', '0002')}\n"
    assert main.run(["schedule", "list", "-o", "name"]) == 0
    assert capsys.readouterr().out == "flights/land\n"


@contextmanager
def waiting(api: FakeApi) -> Iterator[Client]:
    with Client("http://api:1", transport=httpx2.MockTransport(api.handle)) as client:
        yield client


def test_given_job_that_waits_then_wait_goes_on_until_its_run_has_ended(api: FakeApi) -> None:
    missing = (404, {"title": "Not Found", "status": 404, "detail": "none"})
    job = {
        "id": RUN,
        "namespace": "flights",
        "schedule": "land",
        "version": 1,
        "state": "pending_constraint",
        "trigger": "time",
    }
    ended = a_run(state="failed", ended_at="2026-11-20T22:01:00Z", reason="exit code 3")
    api.answers[f"GET /runs/{RUN}"] = [missing, (200, a_run()), (200, ended)]
    api.answers[f"GET /jobs/{RUN}"] = (200, job)
    with waiting(api) as client:
        run = watching.await_end(client, RUN, 60, clock=lambda: 0.0, pause=lambda _: None)
    with pytest.raises(CommandFailed, match="exit code 3") as found:
        watching.require_success(run)
    assert found.value.code == 1


def test_given_run_takes_too_long_then_exit_5(api: FakeApi) -> None:
    api.answers[f"GET /runs/{RUN}"] = (200, a_run())
    assert main.run(["run", "wait", RUN, "--timeout", "0"]) == 5
    assert main.run(["run", "wait", RUN.replace("0001", "0002"), "--timeout", "0"]) == 3


def test_given_running_local_stack_then_its_address_is_used(tmp_path: Path) -> None:
    environment = {"TIDEGATE_STATE_DIR": str(tmp_path)}
    assert context.dev_url(environment) is None
    (tmp_path / "dev.json").write_text('{"api_url": "http://127.0.0.1:4711"}')
    assert context.dev_url(environment) == "http://127.0.0.1:4711"
    (tmp_path / "dev.json").write_text("[]")
    assert context.dev_url(environment) is None
    assert context.state_dir({"XDG_STATE_HOME": "/x"}) == Path("/x/tidegate")


def test_given_path_of_a_problem_then_its_steps_and_place() -> None:
    assert steps_of("trigger.triggers[0].count") == ["trigger", "triggers", 0, "count"]
    assert steps_of("") == []


def test_given_url_as_file_then_it_stays(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(SCHEDULE.replace("jobs/land.py", "s3://bucket/land.py"))
    (document,) = read_documents(file)
    assert document.spec["target"]["program"]["file"] == "s3://bucket/land.py"


def test_given_help_then_nothing_heavy_is_imported() -> None:
    """Keeps `tidegate --help` at a fraction of a second, whatever a machine's speed."""
    code = (
        "import sys; from tidegate_cli.main import run; run(['--help']);"
        "heavy = {'pydantic', 'httpx2', 'fastapi', 'botocore', 'confluent_kafka', 'yaml', 'tidegate_core'} & set(sys.modules);"
        "sys.exit(f'imported: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_given_nothing_listens_then_one_line_says_what_to_do(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TIDEGATE_STATE_DIR", str(tmp_path))
    # Port 9 of loopback: nothing listens on "discard" any more, and connecting there sends nothing.
    assert main.run(["--api", "http://127.0.0.1:9", "run", "list"]) == 1
    error = capsys.readouterr().err
    assert "no tidegate API answers at http://127.0.0.1:9; start one" in error
    assert len(error.splitlines()) == 1
