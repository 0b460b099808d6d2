"""Several schedules in one command: all that somebody suspended within a span (row CD-019), all or none (row CD-016)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.tidegate_cli.conftest import RECEIPT, SCHEDULE, FakeApi
from tidegate_cli import main

SINCE = "2026-11-20T22:00:00.250Z"
SPAN = ["--suspended-from", "2026-11-20T22:00:00Z", "--suspended-to", "2026-11-20T23:00:00Z"]
REFUSAL = {"title": "t", "status": 409, "detail": "flights/b: is not that suspend"}


def suspended(name: str) -> dict[str, Any]:
    suspension = {"since": SINCE, "requested": True, "actor": "ana", "reason": "repair"}
    return {
        "namespace": "flights",
        "name": name,
        "status": "suspended",
        "mode": "hold",
        "version": 1,
        "suspension": suspension,
    }


@pytest.fixture
def two(api: FakeApi) -> FakeApi:
    pages = [{"items": [suspended("a")], "next_page_token": "1"}, {"items": [suspended("b")]}]
    api.answers["GET /schedules"] = [(200, page) for page in pages]
    for name in ("a", "b"):
        api.answers[f"POST /schedules/flights/{name}/resume"] = (200, {**RECEIPT, "name": name})
    return api


def test_given_a_span_then_the_list_says_since_when_by_whom_and_why(
    two: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.run(["schedule", "list", *SPAN]) == 0
    heading, row, _ = capsys.readouterr().out.splitlines()
    assert heading.split() == ["NAMESPACE", "NAME", "SINCE", "MODE", "ACTOR", "REASON"]
    assert row.split() == ["flights", "a", "2026-11-20", "22:00:00Z", "hold", "ana", "repair"]
    asked = two.asked[0].url.params
    assert (asked["suspended_from"], asked["suspended_to"]) == ("2026-11-20T22:00:00Z", "2026-11-20T23:00:00Z")


def test_given_a_span_then_each_is_resumed_by_the_suspend_that_was_listed(
    two: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    """CD-019."""
    assert main.run(["schedule", "resume", *SPAN, "-n", "flights", "--reason", "repaired", "--backlog", "all"]) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["NAME", "a", "b"]
    assert [request.url.params.get("namespace") for request in two.asked if request.method == "GET"] == ["flights"] * 2
    sent = [json.loads(request.content) for request in two.asked if request.method == "POST"]
    assert [body["suspended_at"] for body in sent] == [SINCE, SINCE]
    assert {(body["reason"], body["backlog"]) for body in sent} == {("repaired", "all")}


def test_given_one_that_somebody_else_has_moved_then_the_others_go_on_and_the_exit_code_says_so(
    two: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    two.answers["POST /schedules/flights/a/resume"] = (409, REFUSAL)
    assert main.run(["schedule", "resume", *SPAN]) == 4
    captured = capsys.readouterr()
    assert [line.split()[1] for line in captured.out.splitlines()] == ["NAME", "b"]
    assert "flights/a" in captured.err
    assert "1 schedules stay suspended" in captured.err


def test_given_an_api_that_goes_away_then_what_was_resumed_is_shown(
    two: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    two.answers["POST /schedules/flights/b/resume"] = (503, {"title": "t", "status": 503, "detail": "down"})
    assert main.run(["schedule", "resume", *SPAN]) == 75
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["NAME", "a"]


@pytest.mark.parametrize(
    "command",
    [
        ["resume"],
        ["resume", "flights/a", *SPAN],
        ["resume", *SPAN[:2]],
        ["resume", *SPAN[2:]],
        ["resume", *SPAN, "--id", "one"],
        ["resume", "flights/a", "-n", "flights"],
        ["list", "--suspended-from", "yesterday"],
    ],
)
def test_given_half_a_span_or_too_much_then_nothing_is_asked(api: FakeApi, command: list[str]) -> None:
    assert main.run(["schedule", *command]) == 2
    assert api.asked == []


# -- all or none ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def two_files(tmp_path: Path) -> Path:
    for name in ("a", "b"):
        (tmp_path / f"{name}.yaml").write_text(SCHEDULE.replace("name: land", f"name: {name}"))
    return tmp_path


def receipts(**statuses: str) -> dict[str, Any]:
    return {"items": [{**RECEIPT, "name": name, "status": status} for name, status in statuses.items()]}


def test_given_all_or_none_then_the_files_are_one_request(api: FakeApi, two_files: Path) -> None:
    api.answers["POST /schedules"] = (200, receipts(a="accepted", b="unchanged"))
    assert main.run(["schedule", "apply", "-f", str(two_files), "--all-or-none", "--reason", "r"]) == 0
    (request,) = api.asked
    assert [spec["name"] for spec in json.loads(request.content)] == ["a", "b"]
    assert json.loads(request.content)[0]["target"]["program"]["file"] == str(two_files / "jobs" / "land.py")
    assert (request.url.params["reason"], "create_only" in request.url.params) == ("r", False)


def test_given_create_only_and_one_that_exists_then_nothing_is_applied_and_the_exit_code_says_so(
    api: FakeApi, two_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """CD-016."""
    api.answers["POST /schedules"] = (409, {"title": "t", "status": 409, "detail": "flights/b: exists"})
    assert main.run(["schedule", "apply", "-f", str(two_files), "--create-only"]) == 4
    assert "flights/b: exists" in capsys.readouterr().err
    assert api.asked[0].url.params["create_only"] == "true"


def test_given_create_only_as_a_dry_run_then_each_is_expected_not_to_exist(api: FakeApi, two_files: Path) -> None:
    would = {"namespace": "flights", "name": "a", "would": "create"}
    for name in ("a", "b"):
        api.answers[f"PUT /schedules/flights/{name}"] = (200, would)
    assert main.run(["schedule", "apply", "-f", str(two_files), "--create-only", "--dry-run"]) == 0
    assert [request.url.params["expected_version"] for request in api.asked] == ["0", "0"]


def test_given_mistakes_then_each_is_shown_where_it_is_written(
    api: FakeApi, two_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    errors = [{"field": "[1].trigger.triggers[1].count", "problem": "is no number"}, {"field": "[0]", "problem": "x"}]
    problem = {"title": "t", "status": 400, "detail": "d", "errors": errors}
    api.answers["POST /schedules"] = (400, problem)
    assert main.run(["schedule", "apply", "-f", str(two_files), "--all-or-none"]) == 2
    told = capsys.readouterr().err.splitlines()
    assert told[0] == f"{two_files}/b.yaml:13: schedule flights/b: trigger.triggers[1].count: is no number"
    assert told[1] == f"{two_files}/a.yaml:1: schedule flights/a: x"
    assert "none of 2 schedules was applied" in told[2]


@pytest.mark.parametrize(("status", "code"), [("conflict", 4), ("rejected", 2)])
def test_given_one_that_was_refused_after_all_then_it_is_told(
    api: FakeApi, two_files: Path, capsys: pytest.CaptureFixture[str], status: str, code: int
) -> None:
    api.answers["POST /schedules"] = (200, receipts(a="accepted", b=status))
    assert main.run(["schedule", "apply", "-f", str(two_files), "--all-or-none"]) == code
    captured = capsys.readouterr()
    assert "accepted" in captured.out
    assert f"flights/b: {status}" in captured.err


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ({"a": "accepted", "b": "pending"}, 5),
        ({"a": "conflict", "b": "pending"}, 4),
        ({"a": "rejected", "b": "pending"}, 2),
    ],
)
@pytest.mark.parametrize("command", ["apply", "delete"])
def test_given_some_that_are_not_answered_yet_then_what_became_of_the_others_is_told_all_the_same(
    api: FakeApi,
    two_files: Path,
    capsys: pytest.CaptureFixture[str],
    command: str,
    statuses: dict[str, str],
    code: int,
) -> None:
    """One shard of them had no owner at that moment: nothing was said of the others, not even that one of them was refused."""
    api.answers["POST /schedules"] = api.answers["POST /schedules/delete"] = (202, receipts(**statuses))
    arguments = {"apply": ["-f", str(two_files), "--all-or-none"], "delete": ["flights/a", "flights/b"]}
    assert main.run(["schedule", command, *arguments[command]]) == code
    captured = capsys.readouterr()
    rows = [line.split() for line in captured.out.splitlines()[1:]]
    assert {row[1]: row[2] for row in rows} == statuses
    assert "flights/b: pending: request r-1 is stored" in captured.err
    assert "1 of 2 requests have no answer so far" in captured.err
    assert (f"flights/a: {statuses['a']}" in captured.err) == (statuses["a"] != "accepted")


def test_given_one_that_the_broker_did_not_take_then_how_it_is_repeated_is_told(
    api: FakeApi, two_files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = receipts(a="accepted", b="pending")
    error = {"field": "", "problem": "the broker did not take it", "hint": "send it again with the id r-1"}
    told["items"][1] = {**told["items"][1], "errors": [error]}
    api.answers["POST /schedules"] = (202, told)
    assert main.run(["schedule", "apply", "-f", str(two_files), "--all-or-none"]) == 5
    captured = capsys.readouterr()
    assert "accepted" in captured.out
    assert "flights/b: pending: the broker did not take it; send it again with the id r-1" in captured.err


def test_given_several_names_then_they_are_deleted_in_one_request(api: FakeApi) -> None:
    api.answers["POST /schedules/delete"] = (200, receipts(a="accepted", b="accepted"))
    assert main.run(["schedule", "delete", "flights/a", "flights/b", "--cancel-running"]) == 0
    assert [each["name"] for each in json.loads(api.asked[0].content)] == ["a", "b"]
    assert api.asked[0].url.params["cancel_running"] == "true"
    api.answers["POST /schedules/delete"] = (404, {"title": "t", "status": 404, "detail": "flights/b: is not there"})
    assert main.run(["schedule", "delete", "flights/a", "flights/b"]) == 3


@pytest.mark.parametrize(
    "command",
    [
        ["delete", "flights/a", "flights/b", "--id", "x"],
        ["delete", "flights/a", "flights/b", "--expected-version", "1"],
        ["delete"],
        ["apply", "-f", ".", "--create-only", "--expected-version", "1"],
    ],
)
def test_given_what_is_for_one_schedule_then_several_are_refused(api: FakeApi, command: list[str]) -> None:
    assert main.run(["schedule", *command]) == 2
    assert api.asked == []
