"""Output into a pipe that nobody reads any more (`tidegate run list | head -1`), or onto a disk that is full."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.tidegate_cli.conftest import RECEIPT, RUN, FakeApi, a_run
from tests.unit.tidegate_cli.test_following import a_piece
from tidegate_cli import main

FULL = Path("/dev/full")
CONFLICT = {"title": "Conflict", "status": 409, "detail": "somebody was quicker"}
LETTER = "requests-0-1"


@contextmanager
def unread() -> Iterator[None]:
    """Makes stdout a pipe that nobody reads. Within a test only: between its phases pytest puts its own stream there."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", encoding="utf-8") as stdout, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", stdout)
        yield


@pytest.mark.parametrize("output", ["table", "json", "yaml", "name"])
def test_given_a_list_whose_reader_has_seen_enough_then_that_is_no_failure(
    api: FakeApi, capfd: pytest.CaptureFixture[str], output: str
) -> None:
    """Under `set -o pipefail` a script ended, because typer makes 1 of it before anybody else hears of it."""
    api.answers["GET /runs"] = (200, {"items": [a_run(), a_run()]})
    with unread():
        assert main.run(["run", "list", "-o", output]) == 0
    assert capfd.readouterr().err == ""


def test_given_the_value_of_a_letter_whose_reader_has_gone_then_that_is_no_failure(api: FakeApi) -> None:
    api.answers[f"GET /dlq/{LETTER}/value"] = (200, {"base64": "AAAA"})
    with unread():
        assert main.run(["dlq", "show", LETTER, "--value"]) == 0


def test_given_a_refusal_and_no_reader_then_the_exit_code_still_tells_it(
    api: FakeApi, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """What was applied is shown first: nobody reads it, and the conflict of the other one is what a script has to know."""
    definition = "namespace: flights\nname: {name}\n"
    (tmp_path / "all.yaml").write_text("---\n".join(definition.format(name=name) for name in ("land", "join")))
    api.answers["PUT /schedules/flights/land"] = (200, RECEIPT)
    api.answers["PUT /schedules/flights/join"] = (409, CONFLICT)
    with unread():
        assert main.run(["schedule", "apply", "-f", str(tmp_path)]) == 4
    assert "1 of 2 schedules were not applied" in capfd.readouterr().err


def test_given_a_log_that_is_followed_and_no_reader_then_it_ends(api: FakeApi) -> None:
    api.answers[f"GET /runs/{RUN}/logs"] = [a_piece("line\n", 0, 5, ended=False)]
    with unread():
        assert main.run(["run", "logs", "-f", RUN]) == 0


@pytest.mark.skipif(not FULL.exists(), reason="this system has no /dev/full")
def test_given_a_full_disk_then_one_line_says_so(
    api: FakeApi, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    api.answers["GET /runs"] = (200, {"items": [a_run()]})
    with FULL.open("w", encoding="utf-8") as stdout:
        monkeypatch.setattr(sys, "stdout", stdout)
        assert main.run(["run", "list"]) == 1
    assert capfd.readouterr().err == "tidegate: the output cannot be written: No space left on device\n"
