"""`schedule list` and `schedule resume` of a span: all that somebody suspended then (row CD-019)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.unit.tidegate_cli.conftest import RECEIPT, FakeApi

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
    assert "1 stay suspended" in captured.err


def test_given_an_api_that_goes_away_then_what_was_resumed_is_shown(
    two: FakeApi, capsys: pytest.CaptureFixture[str]
) -> None:
    two.answers["POST /schedules/flights/b/resume"] = (503, {"title": "t", "status": 503, "detail": "down"})
    assert main.run(["schedule", "resume", *SPAN]) == 1
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
