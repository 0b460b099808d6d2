"""`tidegate dlq`: what is asked of the API, and that nothing of a record reaches the terminal unescaped."""

from __future__ import annotations

import base64
import json

import pytest

from tests.unit.tidegate_cli.conftest import FakeApi
from tidegate_cli import main
from tidegate_client import ApiUnreachable, Client

LETTER = {
    "id": "requests-0-1",
    "queue": "requests",
    "at": "2026-11-20T22:00:00Z",
    "topic": "orders.out",
    "error_class": "undeliverable",
    "message": "no\x1b[2J such topic",
    "size_bytes": 7,
}
ANSWER = {**LETTER, "status": "accepted", "mark": {"state": "replayed", "letter": "requests-0-1", "at": LETTER["at"]}}
CONFLICT = {"title": "Conflict", "status": 409, "detail": "it was dropped by ana; say --again"}


def test_given_letters_then_they_are_listed_by_the_filters(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.answers["GET /dlq"] = (200, {"items": [LETTER], "next_page_token": ""})
    filters = ["-q", "requests", "--error-class", "undeliverable", "-t", "orders.out", "-n", "flights", "--all"]
    assert main.run(["dlq", "list", *filters, "--since", "2026-11-20T00:00:00Z"]) == 0
    asked = dict(api.asked[0].url.params)
    assert asked == {
        "queue": "requests",
        "error_class": "undeliverable",
        "topic": "orders.out",
        "namespace": "flights",
        "since": "2026-11-20T00:00:00Z",
        "all": "true",
        "page_size": "200",
    }
    out = capsys.readouterr().out
    assert "requests-0-1" in out
    assert "\x1b" not in out
    assert main.run(["dlq", "list", "-o", "name"]) == 0
    assert capsys.readouterr().out == "requests-0-1\n"


def test_given_more_than_the_limit_then_it_says_so(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.answers["GET /dlq"] = (200, {"items": [LETTER, LETTER], "next_page_token": ""})
    assert main.run(["dlq", "list", "--limit", "1", "-o", "name"]) == 0
    said = capsys.readouterr()
    assert (said.out, "the first 1; there are more: --limit" in said.err) == ("requests-0-1\n", True)


def test_given_a_letter_then_its_value_comes_out_as_it_is(
    api: FakeApi, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    api.answers["GET /dlq/requests-0-1"] = (200, {**LETTER, "value": {"text": "pay\nload"}})
    assert main.run(["dlq", "show", "requests-0-1"]) == 0
    assert b"\x1b" not in capfdbinary.readouterr().out
    api.answers["GET /dlq/requests-0-1/value"] = (200, {"base64": base64.b64encode(b"\xff\x00\n").decode()})
    assert main.run(["dlq", "show", "requests-0-1", "--value"]) == 0
    assert capfdbinary.readouterr().out == b"\xff\x00\n"


def test_given_several_then_one_that_fails_holds_up_none(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    api.answers["POST /dlq/requests-0-0/replay"] = (409, CONFLICT)
    api.answers["POST /dlq/requests-0-1/replay"] = (200, ANSWER)
    assert main.run(["dlq", "replay", "requests-0-0", "requests-0-1", "--reason", "mended"]) == 4
    said = capsys.readouterr()
    assert "1 of 2 dead letters are not done" in said.err
    assert "it was dropped by ana" in said.err
    assert "requests-0-1" in said.out
    assert json.loads(api.asked[1].content)["reason"] == "mended"


def test_given_an_api_that_is_not_there_then_the_others_are_not_tried(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A list of a thousand would wait a thousand times."""
    asked: list[str] = []

    def nobody(_self: object, letter: str, **_fields: object) -> None:
        asked.append(letter)
        raise ApiUnreachable("nothing answers at http://there")

    monkeypatch.setattr(Client, "replay_dead_letter", nobody)
    assert main.run(["dlq", "replay", "requests-0-0", "requests-0-1", "requests-0-2"]) == 75
    assert asked == ["requests-0-0"]
    assert "3 of 3 dead letters are not done" in capsys.readouterr().err


def test_given_a_drop_again_then_it_says_so(api: FakeApi) -> None:
    api.answers["POST /dlq/requests-0-1/drop"] = (200, ANSWER)
    assert main.run(["dlq", "drop", "requests-0-1", "--again"]) == 0
    assert json.loads(api.asked[0].content)["again"] is True


def test_given_no_letters_id_then_nothing_is_asked(api: FakeApi, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["dlq", "show", "../schedules"]) == 2
    assert api.asked == []
    assert "such as requests-3-17" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["dlq", "replay", "requests-0-1"], ["dlq", "show", "requests-0-1"]])
def test_given_a_refusal_that_holds_another_users_text_then_the_terminal_takes_it_for_no_order(
    api: FakeApi, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    """Whoever drops a letter says by which name; only what goes to stdout was escaped."""
    detail = "it was dropped by \x1b]0;mine\x07\x9b2J\nsay --again"
    refusal = (409, {"title": "t", "status": 409, "detail": detail})
    api.answers["POST /dlq/requests-0-1/replay"] = api.answers["GET /dlq/requests-0-1"] = refusal
    assert main.run(command) == 4
    told = capsys.readouterr().err
    assert r"it was dropped by \x1b]0;mine\x07\x9b2J" in told
    assert all(line.isprintable() for line in told.split("\n"))
    assert "\nsay --again" in told
