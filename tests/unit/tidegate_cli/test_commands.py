"""Commands against an API that a test plays: what is asked, what is printed where, and the exit codes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.tidegate_cli.conftest import RECEIPT, RUN, FakeApi, a_ready, a_run
from tidegate_cli import api_context, local_stacks, main
from tidegate_cli.dev.stack import Pointer
from tidegate_core.language.values.instants import parse_instant


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


@pytest.mark.parametrize("payload", ["NaN", '"\\ud800"'])
def test_given_payload_that_is_no_json_then_one_line_says_so(
    api: FakeApi, capsys: pytest.CaptureFixture[str], payload: str
) -> None:
    assert main.run(["message", "send", "-n", "a", "-t", "t", "--payload", payload]) == 2
    assert "cannot be sent as JSON" in capsys.readouterr().err
    assert api.asked == []


def test_given_expected_version_then_a_trigger_carries_it(api: FakeApi) -> None:
    api.answers["POST /schedules/flights/land/trigger"] = (200, RECEIPT)
    assert main.run(["schedule", "trigger", "flights/land", "--expected-version", "3"]) == 0
    assert json.loads(api.asked[0].content)["expected_version"] == 3


@pytest.mark.parametrize(
    ("flags", "typed", "code", "sent"),
    [
        pytest.param(["--yes"], "", 0, 1, id="not asked"),
        pytest.param([], "y\n", 0, 1, id="yes"),
        pytest.param([], "n\n", 1, 0, id="no"),
        pytest.param([], "\n", 1, 0, id="no is what a return means"),
        pytest.param([], "", 1, 0, id="nobody to ask"),
        pytest.param([], None, 1, 0, id="no standard input"),
    ],
)
def test_given_a_release_then_it_is_sent_once_somebody_says_that_the_program_is_gone(
    api: FakeApi,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    typed: str | None,
    code: int,
    sent: int,
) -> None:
    api.answers[f"POST /runs/{RUN}/release"] = (200, RECEIPT)
    monkeypatch.setattr("sys.stdin", None if typed is None else io.StringIO(typed))
    command = ["run", "release", RUN, "--reason", "its host was scrapped", "--actor", "ana", "-o", "json", *flags]
    assert main.run(command) == code
    told = capsys.readouterr()
    assert [json.loads(each.content) for each in api.asked] == [
        {"reason": "its host was scrapped", "actor": "ana"}
    ] * sent
    assert (json.loads(told.out)["status"] == "accepted") if sent else told.out == ""
    assert (f"Is the program of run {RUN} gone for good?" in told.err) == (not flags)


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
        (["message", "send", "-n", "a", "-t", "t", "--text", "x", "--at", "2026-11-20T22:00:00Z", "--after", "1h"], 2),
        (["event", "send", "-n", "a"], 2),
        (["version"], 0),
    ],
)
def test_given_command_then_its_exit_code_can_be_relied_on(api: FakeApi, command: list[str], code: int) -> None:
    assert main.run(command) == code


@pytest.mark.parametrize(("status", "code"), [(409, 4), (412, 4), (404, 3), (400, 2), (503, 75), (202, 5)])
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


def test_given_an_id_that_a_script_left_empty_then_no_command_makes_another_one_of_its_own(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    message = ["message", "send", "-n", "a", "-t", "t", "--text", "x"]
    for command in (message, ["schedule", "trigger", "a/b"]):
        assert main.run([*command, "--id", ""]) == 2
        assert "request id ''" in capsys.readouterr().err
    assert api.asked == []


def test_given_event_then_only_what_was_given_is_sent(api: FakeApi) -> None:
    item = {"id": "e-1", "type": "data.partition", "namespace": "flights"}
    api.answers["POST /events"] = (200, {"items": [item]})
    given = ["--dataset", "d", "--partition", "p", "--rows", "3"]
    assert main.run(["event", "send", "-n", "flights", "--id", "e-1", *given]) == 0
    assert json.loads(api.asked[0].content) == {
        "id": "e-1",
        "type": "data.partition",
        "namespace": "flights",
        "dataset": "d",
        "partition": "p",
        "rows": 3,
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ["message", "send", "-n", "a", "-t", "t", "--payload", '{"a": 1, "b": {"c": 1, "c": 2}}'],
        ["message", "send", "-n", "a", "-t", "t", "--text", "x", "--header", "c=1", "--header", "c=2"],
        ["event", "send", "-n", "a", "--type", "custom.a", "--data", '{"c": 1, "c": 2}'],
    ],
)
def test_given_a_name_that_stands_twice_then_it_is_refused_as_the_api_refuses_it(
    api: FakeApi, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    assert main.run(arguments) == 2
    assert 'the key "c" stands twice' in capsys.readouterr().err
    assert api.asked == []


def test_given_null_as_data_then_it_is_sent(api: FakeApi) -> None:
    api.answers["POST /events"] = (200, {"items": [{"id": "e-1", "type": "custom.a", "namespace": "a"}]})
    assert main.run(["event", "send", "-n", "a", "--type", "custom.a", "--data", "null"]) == 0
    assert json.loads(api.asked[0].content)["data"] is None


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


def test_given_schedules_as_their_shards_give_them_then_the_list_is_sorted_by_namespace_and_name(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """CD-167."""
    given = [("flights", "land"), ("cargo", "weigh"), ("flights", "board"), ("cargo", "load")]
    views = [{"namespace": each, "name": name, "status": "active", "version": 1, "spec": {}} for each, name in given]
    pages = [{"items": views[:2], "next_page_token": "more"}, {"items": views[2:]}]
    api.answers["GET /schedules"] = [(200, page) for page in pages]
    assert main.run(["schedule", "list", "-o", "name"]) == 0
    assert capsys.readouterr().out.split() == ["cargo/load", "cargo/weigh", "flights/board", "flights/land"]


def test_given_a_night_then_what_failed_is_asked_for_in_one_call_and_a_cut_list_says_so(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [a_run(id=RUN.replace("0001", f"{number:04}"), state="failed") for number in range(3)]
    api.answers["GET /runs"] = (200, {"items": runs, "next_page_token": "more"})
    asked = ["run", "list", "--state", "failed", "--state", "timed_out", "--since", "2026-03-01T18:00:00Z"]
    assert main.run([*asked, "--limit", "2", "-o", "name"]) == 0
    said = capsys.readouterr()
    assert (len(said.out.splitlines()), "the first 2; there are more: --limit" in said.err) == (2, True)
    (request,) = api.asked
    assert request.url.params.get_list("state") == ["failed", "timed_out"]
    assert (request.url.params["since"], request.url.params["page_size"]) == ("2026-03-01T18:00:00Z", "3")


def test_given_very_many_jobs_then_the_list_is_cut_and_says_so(
    api: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    job = {"namespace": "flights", "schedule": "land", "version": 1, "state": "pending_constraint", "trigger": "time"}
    jobs = [{**job, "id": RUN.replace("0001", f"{number:04}")} for number in range(200)]
    api.answers["GET /jobs"] = (200, {"items": jobs, "next_page_token": "more"})
    assert main.run(["job", "list", "--state", "pending_constraint", "-o", "name"]) == 0
    said = capsys.readouterr()
    assert (len(said.out.splitlines()), "the first 100; there are more: --limit" in said.err) == (100, True)
    assert [request.url.params["state"] for request in api.asked] == ["pending_constraint"]


def test_given_a_duration_then_the_list_begins_so_long_ago(api: FakeApi) -> None:
    api.answers["GET /runs"] = (200, {"items": []})
    assert main.run(["run", "list", "--since", "12h", "--until", "90m"]) == 0
    asked = api.asked[0].url.params
    assert parse_instant(asked["until"]) - parse_instant(asked["since"]) == pytest.approx(10.5 * 3_600_000, abs=60_000)
    assert main.run(["run", "list", "--since", "99999999d"]) == main.run(["run", "list", "--since", "yesterday"]) == 2


def test_given_running_local_stack_then_its_address_is_used(tmp_path: Path) -> None:
    environment = {"TIDEGATE_STATE_DIR": str(tmp_path)}
    assert api_context.dev_url(environment) is None
    pointer = Pointer(tmp_path / "dev")
    pointer.write(a_ready("http://127.0.0.1:4711", "/somewhere"))
    assert api_context.dev_url(environment) == "http://127.0.0.1:4711"
    pointer.remove()
    (tmp_path / "dev" / "broken.json").write_text("[]")
    assert api_context.dev_url(environment) is None
    assert local_stacks.state_dir({"XDG_STATE_HOME": "/x"}) == Path("/x/tidegate")


def test_given_several_local_stacks_then_the_one_of_this_folder_is_meant_and_without_it_none_is_guessed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Commands went to the stack that had started last, silently."""
    monkeypatch.setenv("TIDEGATE_STATE_DIR", str(tmp_path / "state"))
    pointers = [Pointer(tmp_path / "state" / "dev") for _ in range(3)]
    folders = [tmp_path / name for name in ("a", "b", "elsewhere")]
    for folder in folders:
        folder.mkdir()
    for pointer, folder, port in zip(pointers[:2], folders, (4711, 4712), strict=False):
        pointer.write(a_ready(f"http://127.0.0.1:{port}", str(folder)))
    for folder, url in zip(folders, ("http://127.0.0.1:4711", "http://127.0.0.1:4712"), strict=False):
        monkeypatch.chdir(folder)
        assert api_context.dev_url(os.environ) == url
    monkeypatch.chdir(folders[2])
    assert main.run(["schedule", "list"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert "2 local stacks run, and none of them was started from this folder" in said[0]
    assert "--api" in said[0]
    assert said[1] == f"  http://127.0.0.1:4711  started from {folders[0]} (process 17, data in /data)"
    assert said[2].startswith("  http://127.0.0.1:4712 ")
    assert main.run(["--api", "http://127.0.0.1:9", "schedule", "list"]) == 75
    pointers[2].write(a_ready("http://127.0.0.1:4713", str(folders[0])))
    monkeypatch.chdir(folders[0])
    assert main.run(["schedule", "list"]) == 2
    assert "3 local stacks run, and 2 of them were started from this folder" in capsys.readouterr().err
    for pointer in pointers[1:]:
        pointer.remove()
    monkeypatch.chdir(folders[2])
    assert api_context.dev_url(os.environ) == "http://127.0.0.1:4711"


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
    assert main.run(["--api", "http://127.0.0.1:9", "run", "list"]) == 75
    error = capsys.readouterr().err
    assert "no tidegate API answers at http://127.0.0.1:9; start one" in error
    assert len(error.splitlines()) == 1


def test_given_a_payload_with_decimals_then_their_digits_are_sent(api: FakeApi) -> None:
    assert main.run(["message", "send", "-n", "a", "-t", "t", "--after", "1h", "--payload", '{"price": 19.90}']) in {
        0,
        3,
    }
    assert b'"price":19.90' in api.asked[0].content
